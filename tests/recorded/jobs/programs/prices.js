// Asks a slow service for one price after the other: the event loop waits for its answers. The port is the argument.
const http = require('http');

const agent = new http.Agent({ keepAlive: true });
let fetched = 0;

function fetchPrice() {
    http.get({ host: '127.0.0.1', port: Number(process.argv[2]), path: '/price', agent }, (answer) => {
        answer.resume();
        answer.on('end', () => {
            if (++fetched === 5) {
                console.error('ready');
            }
            fetchPrice();
        });
    });
}

fetchPrice();
