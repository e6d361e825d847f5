// Converts one picture after the other with another program, and waits for each: the event loop stands still.
const { execFileSync } = require('child_process');

let pictures = 0;

function convertPicture() {
    execFileSync('sleep', ['0.2']);
    if (++pictures === 3) {
        console.error('ready');
    }
    setImmediate(convertPicture);
}

convertPicture();
