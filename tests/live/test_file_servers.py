"""Waits for a file system that a process serves: a FUSE file system, mounted in a namespace of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stallscope.converters.model.wait_objects import FILE

Require = Callable[[bool, str], None]

SERVES = """
# One file, each read of which takes 20 ms. Formats and numbers: include/uapi/linux/fuse.h.
import ctypes, os, struct, subprocess, sys, time
point, ENOSYS, DIRECT_IO = sys.argv[1], 38, 1
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"slow-disk", point.encode(), b"fuse", 0, options):
    sys.exit(os.strerror(ctypes.get_errno()))
def attributes(node):
    mode = 0o40755 if node == 1 else 0o100644
    return struct.pack("<6Q10I", node, 1 << 20, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
def answer_init(node, data):
    return struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 12, 9, 1 << 17, 1, 0, 0, *[0] * 8)
def answer_lookup(node, data): return struct.pack("<4Q2I", 2, 0, 600, 600, 0, 0) + attributes(2)
def answer_attributes(node, data): return struct.pack("<Q2I", 600, 0, 0) + attributes(node)
def answer_open(node, data): return struct.pack("<Q2I", 1, DIRECT_IO, 0)
def answer_read(node, data):
    time.sleep(0.02)
    return b"x" * 512
ANSWERS = {26: answer_init, 1: answer_lookup, 3: answer_attributes, 14: answer_open, 15: answer_read}
WITHOUT_ANSWER = 2, 36, 42
reader = None
while True:
    request = os.read(device, 1 << 18)
    length, opcode, unique, node = struct.unpack_from("<IIQQ", request)
    if opcode in WITHOUT_ANSWER: continue
    answer = ANSWERS[opcode](node, request[40:]) if opcode in ANSWERS else b""
    error = 0 if opcode in ANSWERS else -ENOSYS
    os.write(device, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)
    if reader is None:
        reader = subprocess.Popen([sys.executable, sys.argv[2], f"{point}/data"])
"""
READS = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
print(os.getpid(), flush=True)
def load():
    while os.pread(file, 512, 0): pass
load()
"""


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """Pids of a server of files, and of a process that reads one."""
    server, reader, point = folder / "serves.py", folder / "reads.py", folder / "point"
    server.write_text(SERVES)
    reader.write_text(READS)
    point.mkdir()
    line = ["unshare", "--mount", "--propagation", "private", sys.executable, str(server), str(point), str(reader)]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        try:
            yield process.pid, pid
        finally:
            process.kill()  # the file system ends with its server, and reads fail


def test_who_serves_a_file_system(live: None, tmp_path: Path, require: Require) -> None:
    require(Path("/dev/fuse").exists(), "the kernel has no FUSE")
    with served(tmp_path) as (server, reader):
        info = [path.read_text() for path in Path(f"/proc/{server}/fdinfo").iterdir()]
        require(any("fuse_connection" in text for text in info), "the kernel does not tell who serves what (6.16)")
        line = [Path(sys.executable).with_name("trace-scan"), "--json", "-p", str(reader), "-d", "3"]
        told: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)["summary"]
    waits = [each for each in told["waits"] if each["on"] and each["on"]["kind"] == FILE]
    on = max(waits, key=lambda wait: int(wait["time_ns"]))["on"]
    assert (on["name"], on["filesystem"], on["source"]) == (str(tmp_path / "point" / "data"), "fuse", "slow-disk")
    assert [end["pid"] for end in on["ends"]] == [server]
    first = told["answer"][0]
    assert f"(FUSE slow-disk, which python serves.py (pid {server}) serves)" in first
    assert "meanwhile the main thread of python serves.py sleeps for" in first
    assert "answer_read" in first
