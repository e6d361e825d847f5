"""A server in JavaScript reads a file for each request, and the file (a FIFO) is always late."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SCRIPT = """const fs = require('fs');
function loadSession(path) {
  const file = fs.openSync(path, 'r');
  const text = fs.readFileSync(file);
  fs.closeSync(file);
  return text;
}
function answerRequest(path) { return loadSession(path); }
console.log('ready');
for (;;) answerRequest(process.argv[2]);
"""

node = shutil.which("node")
if not node:
    print("cannot run here: no node (Debian's package nodejs)")
    sys.exit()


def write_late(path: str) -> None:
    while True:
        time.sleep(0.02)
        Path(path).write_bytes(b"session")


with tempfile.TemporaryDirectory() as folder:
    path, script = f"{folder}/session", Path(folder, "server.js")
    os.mkfifo(path)
    script.write_text(SCRIPT)
    line = [node, "--perf-basic-prof", script, path]
    server = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert server.stdout
        server.stdout.readline()
        threading.Thread(target=write_late, args=(path,), daemon=True).start()
        time.sleep(1)  # so that its functions are compiled and named
        print(server.pid, flush=True)
        sys.stdin.read()
    finally:
        server.kill()
        server.wait()
        Path(f"/tmp/perf-{server.pid}.map").unlink(missing_ok=True)
