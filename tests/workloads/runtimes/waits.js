// Two threads of JavaScript that compute and wait, and the pool that hashes and reads for them. Until it is killed.
const fs = require('fs');
const crypto = require('crypto');
const {Worker, isMainThread} = require('worker_threads');
function nap(ms) { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms); }
function busy() { let s = 0; for (let i = 0; i < 200000; i++) s += Math.sqrt(i); return s; }
if (!isMainThread) { for (;;) { nap(1); busy(); } }
new Worker(__filename);
setInterval(() => { busy(); nap(0.5); }, 1);
function again() { crypto.pbkdf2('a', 'b', 500, 16, 'sha1', again); }
again();
function file() { fs.readFile(__filename, file); }
file();
