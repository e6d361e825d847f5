// A server whose answers take long to compute, on the thread that answers all.
const http = require('http');

const orders = Array.from({ length: 60000 }, (_, number) => ({ number, price: (number * 7919) % 10007 }));

function sortOrders() {
    return [...orders].sort((one, other) => one.price - other.price || one.number - other.number);
}

const server = http.createServer((request, response) => {
    response.end(String(sortOrders()[0].price));
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.error('ready'));
