"""Debian's redis, whose binary has no frame pointers, with an instance of its own and clients that keep it busy."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAM = "redis-check-rdb"
"""The server under another name: of the package redis-tools, which starts no daemon, as redis-server would."""
_PATIENCE = 20


def installed() -> bool:
    return bool(shutil.which(PROGRAM) and shutil.which("redis-benchmark"))


@contextlib.contextmanager
def redis() -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A server and the socket that it listens on; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        path = Path(folder, "socket")
        options = ["--port", "0", "--unixsocket", str(path), "--dir", folder, "--save", "", "--io-threads", "2"]
        server = subprocess.Popen(
            ["redis-server", *options], executable=shutil.which(PROGRAM), stdout=subprocess.DEVNULL
        )
        try:
            _await(path)
            yield server, path
        finally:
            server.kill()
            server.wait()


def _await(path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            return
        assert time.monotonic() < deadline, "redis does not listen"
        time.sleep(0.01)


@contextlib.contextmanager
def load(path: Path) -> Iterator[None]:
    """Twenty clients that set, get, push and sort until the end of the block."""
    tests = "set,get,incr,lpush,lrange_100,mset,zadd"
    command = ["redis-benchmark", "-s", str(path), "-t", tests, "-c", "20", "-n", "100000000", "-q", "-l"]
    clients = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        clients.kill()
        clients.wait()
