"""Objects of waits beside descriptors: page faults, limits of control groups, accept queues, event loops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.model.wait_objects import FILE, LIMIT, MEMORY, PIPE, TCP

Require = Callable[[bool, str], None]

MAPS = """
import mmap, os, sys
file = open(sys.argv[1], "r+b")
print(flush=True)
while True:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        mapped.madvise(mmap.MADV_RANDOM)
        for at in range(0, len(mapped), 4096): mapped[at]
"""
LATE = """
# Memory whose pages another thread fills, 20 ms late: userfaultfd(2), include/uapi/linux/userfaultfd.h.
import ctypes, fcntl, mmap, os, struct, threading, time
pages = 512
memory = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fd = ctypes.CDLL(None, use_errno=True).syscall(323, os.O_CLOEXEC)
assert fd >= 0, os.strerror(ctypes.get_errno())
fcntl.ioctl(fd, 0xc018aa3f, struct.pack("QQQ", 0xaa, 0, 0))
fcntl.ioctl(fd, 0xc020aa00, struct.pack("QQQQ", at, pages * 4096, 1, 0))
def fill():
    for page in range(pages):
        os.read(fd, 32)
        time.sleep(0.02)
        fcntl.ioctl(fd, 0xc020aa04, struct.pack("QQQq", at + page * 4096, 4096, 0, 0))
threading.Thread(target=fill, daemon=True).start()
print(flush=True)
load = ctypes.CDLL(None).memchr
load.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
for page in range(pages): load(at + page * 4096, 1, 1)
"""
LATE_IN_CALLS = (
    LATE[: LATE.index("load =")]
    + """
# The memory is written into a pipe whose reader is late, too: each call waits for both.
child = os.fork() if (ends := os.pipe()) else 0
if not child:
    os.close(ends[1])
    while os.read(ends[0], 4096): time.sleep(0.02)
    os._exit(0)
write = ctypes.CDLL(None).write
write.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
while write(ends[1], at, pages * 4096) > 0: pass
"""
)
WRITES_MEMORY = """
import mmap, os, sys
file = open(sys.argv[1], "r+b")
os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
open(sys.argv[2], "w").write(str(os.getpid()))
print(flush=True)
mapped = mmap.mmap(file.fileno(), 0)
while True:
    for at in range(0, len(mapped), 4096): mapped[at : at + 1] = b"x"
"""
READS = """
import os, sys
open(sys.argv[2], "w").write(str(os.getpid()))
fd = os.open(sys.argv[1], os.O_RDONLY)
print(flush=True)
while True:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.lseek(fd, 0, 0)
    while os.read(fd, 1 << 17): pass
"""
SERVER = """
import selectors, socket, sys, time
late, backlog = float(sys.argv[1]), int(sys.argv[2])
server = socket.create_server(("127.0.0.1", 0), backlog=backlog)
print(server.getsockname()[1], flush=True)
selector = selectors.DefaultSelector()
if late >= 0: selector.register(server, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is server:
            selector.register(server.accept()[0], selectors.EVENT_READ)
        elif key.fileobj.recv(1):
            time.sleep(late)
            key.fileobj.send(b"x")
        else:
            selector.unregister(key.fileobj)
"""
LOOP = """
import selectors, socket, sys
kinds = {"epoll": selectors.EpollSelector, "poll": selectors.PollSelector}
selector = kinds[sys.argv[1]]()
connections = [socket.create_connection(("127.0.0.1", int(port))) for port in sys.argv[2:] for _ in range(3)]
for each in connections: selector.register(each, selectors.EVENT_READ)
print(flush=True)
while True:
    for each in connections: each.send(b"x")
    left = len(connections)
    while left:
        for key, _ in selector.select():
            key.fileobj.recv(1)
            left -= 1
"""
FORKS = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
print(flush=True)
while True:
    try: os.fork() or os._exit(0)
    except BlockingIOError: time.sleep(0.02)
"""
ASKS_SLOWLY = """
import socket, sys, time
made = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(flush=True)
while True: made.send(b"x"); made.recv(1); time.sleep(0.05)
"""
CONNECTS = """
import socket, sys, time
kept = [socket.socket() for _ in range(4)]
for each in kept:
    each.setblocking(False)
    each.connect_ex(("127.0.0.1", int(sys.argv[1])))
time.sleep(0.2)
print(flush=True)
socket.socket().connect(("127.0.0.1", int(sys.argv[1])))
"""


@contextmanager
def program(source: str, *arguments: object) -> Iterator[tuple[int, str]]:
    """A program that has begun: its pid and what it said."""
    command = [sys.executable, "-I", "-c", source, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout
            yield child.pid, child.stdout.readline().strip()
        finally:
            child.kill()


def traced(command: str, pid: int, folder: Path, seconds: int = 3) -> dict[str, Any]:
    """Summary of a trace, by its JSON."""
    path = str(Path(sys.executable).with_name(command))
    args = [path, "-p", str(pid), "-d", str(seconds), "--json", "-o", str(folder / "capture.pb.gz")]
    if command == "trace-scan":
        args += ["--budget", "100%"]  # else who ends waits may be left out
    done = subprocess.run(args, check=True, capture_output=True, timeout=120)
    said: dict[str, Any] = json.loads(done.stdout)
    return said.get("summary", said)


def longest(said: dict[str, Any], call: str) -> dict[str, Any]:
    """Object that most of the time in a system call, or in page faults, is on."""
    waits = [wait for wait in said["waits"] if call in wait["frames"] and wait["state"] != "runnable"]
    on: dict[str, Any] = max(waits, key=lambda wait: int(wait["time_ns"]))["on"]
    return on


@pytest.fixture
def data(tmp_path: Path, require: Require) -> Path:
    """A file of 64 MiB on a disk."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 20) * 64)
    device = os.stat(path).st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    require(block.exists(), "the temporary folder is not on a disk")
    os.sync()
    return path


@contextmanager
def group(controller: str, require: Require) -> Iterator[Path]:
    """A control group of version 1 with this controller."""
    top = Path("/sys/fs/cgroup") / controller
    require((top / "cgroup.procs").exists(), f"no version 1 hierarchy with {controller}")
    folder = top / f"stallscope-test-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        folder.rmdir()


def test_the_file_of_page_faults(live: None, data: Path, tmp_path: Path) -> None:
    with program(MAPS, data) as (pid, _):
        said = traced("trace-wall", pid, tmp_path)
    on = longest(said, "page fault")
    assert (on["kind"], on["name"], on["inode"]) == (FILE, str(data), data.stat().st_ino)
    assert on["filesystem"]


def test_memory_without_a_file(live: None, tmp_path: Path, require: Require) -> None:
    require(Path("/proc/sys/vm/unprivileged_userfaultfd").exists(), "the kernel has no userfaultfd")
    with program(LATE) as (pid, _):
        said = traced("trace-wall", pid, tmp_path, 2)
    on = longest(said, "page fault")
    assert (on["kind"], on["ends"]) == (MEMORY, [])
    assert "page fault of memory without a file" in " ".join(said["answer"])


def test_page_faults_in_system_calls(live: None, tmp_path: Path, require: Require) -> None:
    """Page faults are on memory; what the call waits for afterwards is the pipe."""
    require(Path("/proc/sys/vm/unprivileged_userfaultfd").exists(), "the kernel has no userfaultfd")
    with program(LATE_IN_CALLS) as (pid, _):
        said = traced("trace-wall", pid, tmp_path, 2)
    waits = [wait for wait in said["waits"] if "write" in wait["frames"] and wait["on"]]
    kinds = {(wait["frames"][-1], wait["on"]["kind"]) for wait in waits}
    assert kinds >= {("page fault", MEMORY), ("write", PIPE)}
    assert not kinds & {("page fault", PIPE), ("write", MEMORY)}


def test_the_limit_of_memory(live: None, data: Path, tmp_path: Path, require: Require) -> None:
    with group("memory", require) as folder:
        (folder / "memory.limit_in_bytes").write_text(str(32 << 20))
        with program(WRITES_MEMORY, data, folder / "cgroup.procs") as (pid, _):
            said = traced("trace-wall", pid, tmp_path)
        (limit,) = [each for each in said["group_limits"] if each["cgroup"].endswith(folder.name)]
        assert (limit["name"], limit["limit"], limit["pids"]) == ("memory.limit_in_bytes", 32 << 20, [pid])
        assert limit["used"] > 100
        on = [wait["on"] for wait in said["waits"] if wait["on"] and wait["on"]["kind"] == LIMIT]
        assert on and all(each["limit"]["cgroup"] == limit["cgroup"] for each in on)


@contextmanager
def overlay(below: Path) -> Iterator[Path]:
    """A folder as an overlay has it, with all layers on one disk."""
    layers = [below.with_name(name) for name in ("upper", "work", "merged")]
    for each in layers:
        each.mkdir()
    upper, work, merged = layers
    options = f"lowerdir={below},upperdir={upper},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", str(merged)], check=True, timeout=60)
    try:
        yield merged
    finally:
        subprocess.run(["umount", str(merged)], check=True, timeout=60)


@pytest.mark.parametrize("place", ["disk", "overlay"])
def test_the_limit_of_a_disk(live: None, data: Path, tmp_path: Path, require: Require, place: str) -> None:
    device = os.stat(data).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    if place == "disk":
        reads_at_the_limit(data, number, tmp_path, require)
        return
    below = tmp_path / "lower"
    below.mkdir()
    data = data.rename(below / "data")
    with overlay(below) as merged:
        reads_at_the_limit(merged / "data", number, tmp_path, require)


def reads_at_the_limit(data: Path, number: str, tmp_path: Path, require: Require) -> None:
    """The sentence tells the limit of the disk with this number for the file; also of the capture alone."""
    with group("blkio", require) as folder:
        (folder / "blkio.throttle.read_bps_device").write_text(f"{number} {1 << 20}\n")
        with program(READS, data, folder / "cgroup.procs") as (pid, _):
            said = traced("trace-wall", pid, tmp_path)
        on = longest(said, "read")
        assert (on["kind"], on["name"]) == (FILE, str(data))
        assert (on["limit"]["limit"], on["limit"]["devices"][0]) == (1 << 20, number)
        told = f"(control group {on['limit']['cgroup']} may read 1 MiB/s there: blkio.throttle.read_bps_device, "
        assert told in said["answer"][0]
        # Without root, of the capture alone.
        convert = str(Path(sys.executable).with_name("trace-convert"))
        args = [convert, "--answer", str(tmp_path / "capture.pb.gz"), "--json"]
        again = json.loads(subprocess.run(args, check=True, capture_output=True).stdout)
        assert (again["group_limits"], again["answer"]) == (said["group_limits"], said["answer"])


def test_processes_that_are_refused(live: None, tmp_path: Path, require: Require) -> None:
    with group("pids", require) as folder:
        (folder / "pids.max").write_text("1")
        with program(FORKS, folder / "cgroup.procs") as (pid, _):
            said = traced("trace-wall", pid, tmp_path, 2)
        (limit,) = [each for each in said["group_limits"] if each["cgroup"].endswith(folder.name)]
        assert (limit["kind"], limit["limit"], limit["pids"]) == ("processes", 1, [pid])
        assert limit["used"] > 10
        assert any(f"{folder.name} may have 1 process and threads (pids.max)" in text for text in said["comments"])


def test_an_accept_queue_that_is_full(live: None, tmp_path: Path) -> None:
    with program(SERVER, -1, 1) as (server, port), program(CONNECTS, port) as (client, _):
        said = traced("trace-wall", client, tmp_path, 2)
    on = longest(said, "connect")
    assert (on["kind"], on["remote"], on["queued"], on["backlog"]) == (TCP, f"127.0.0.1:{port}", 2, 1)
    assert [end["pid"] for end in on["ends"]] == [server]
    assert f"(pid {server}, 127.0.0.1:{port}), whose accept queue is full" in said["answer"][0]


@pytest.mark.parametrize("kind", ["epoll", "poll"])
def test_whom_an_event_loop_waits_for(live: None, tmp_path: Path, kind: str) -> None:
    """Three servers, of which one answers late."""
    with (
        program(SERVER, 0, 9) as (soon, first),
        program(SERVER, 0.05, 9) as (late, second),
        program(SERVER, 0, 9) as (_, third),
        program(LOOP, kind, first, second, third) as (client, _),
    ):
        said = traced("trace-scan", client, tmp_path)
    on = longest(said, "epoll_wait" if kind == "epoll" else "poll")
    assert (on["kind"], on["remote"], [end["pid"] for end in on["ends"]]) == (TCP, f"127.0.0.1:{second}", [late])
    assert on["woken_ns"] >= 0.8 * on["time_ns"]
    assert {late, soon} <= {peer["pid"] for peer in on["peers"]}
    assert f"(pid {late}, 127.0.0.1:{second})" in said["answer"][0]


def test_an_event_loop_that_waits_for_requests(live: None, tmp_path: Path) -> None:
    """The server of a slow client is told with it, and waits for work."""
    with program(SERVER, 0, 9) as (server, port), program(ASKS_SLOWLY, port) as (client, _):
        said = traced("trace-scan", server, tmp_path)
    waits = [wait for wait in said["waits"] if "epoll_wait" in wait["frames"]]
    assert all(wait["kind"] != "peer" for wait in waits)
    assert client in {peer["pid"] for wait in waits if wait["on"] for peer in wait["on"].get("peers", [])} | {
        end["pid"] for wait in waits if wait["on"] for end in wait["on"]["ends"]
    }
