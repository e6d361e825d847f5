// Hashes passwords in the four threads of the pool; the event loop waits for them.
const crypto = require('crypto');

let hashed = 0;

function hashPassword() {
    crypto.pbkdf2('secret', 'salt', 50000, 64, 'sha512', () => {
        if (++hashed === 8) {
            console.error('ready');
        }
        hashPassword();
    });
}

for (let number = 0; number < 8; number++) {
    hashPassword();
}
