"""Objects of waits, and who has the other end: against programs in which all of that is known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.model.wait_objects import FILE, LABEL, PIPE, READS, TCP, UNIX, WRITES, WaitObject


def command(name: str) -> str:
    """Path of a command of this checkout."""
    return str(Path(sys.executable).with_name(name))


SERVER = """
import fcntl, os, socket, sys, threading, time
os.chdir(sys.argv[1])
tcp = socket.create_server(("127.0.0.1", 0))
full = socket.socket()
full.bind(("127.0.0.1", 0))
full.listen(0)
unix = socket.socket(socket.AF_UNIX)
unix.bind("unix.sock")
unix.listen()
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
def answer(listening):
    while True:
        made, _ = listening.accept()
        threading.Thread(target=echo, args=(made,), daemon=True).start()
def echo(made):
    while made.recv(1):
        time.sleep(0.05)
        made.send(b"x")
for listening in tcp, unix:
    threading.Thread(target=answer, args=(listening,), daemon=True).start()
def locks():
    while True:
        time.sleep(0.05)
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(0.005)
        fcntl.flock(lock, fcntl.LOCK_EX)
threading.Thread(target=locks, daemon=True).start()
print(tcp.getsockname()[1], full.getsockname()[1], flush=True)
while os.read(0, 1):  # a slow reader of the pipe
    time.sleep(0.05)
"""

CLIENT = """
import ctypes, fcntl, os, select, socket, sys, threading, time
os.chdir(sys.argv[1])
port, full = map(int, sys.argv[2:4])
out, pipe = int(sys.argv[4]), None
def connected(blocking=True):
    made = socket.create_connection(("127.0.0.1", port))
    made.setblocking(blocking)
    return made
def tcp():
    made = connected()
    while True: made.send(b"x"); made.recv(1)
def unix():
    made = socket.socket(socket.AF_UNIX)
    made.connect("unix.sock")
    while True: made.send(b"x"); made.recv(1)
def polls():
    made = connected()
    made.settimeout(9)
    while True: made.send(b"x"); made.recv(1)
def selects():
    made = connected(False)
    while True: made.send(b"x"); select.select([made], [], []); made.recv(1)
def epolls():
    made, epoll, (ours, theirs) = connected(False), select.epoll(), os.pipe()
    epoll.register(ours); epoll.register(made, select.EPOLLIN)
    while True: made.send(b"x"); epoll.poll(); made.recv(1)
def locks():
    made = open("lock")
    while True: fcntl.flock(made, fcntl.LOCK_EX); fcntl.flock(made, fcntl.LOCK_UN); time.sleep(0.006)
def writes():
    while True: os.write(out, bytes(1 << 16))
def own_table():
    ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES: the descriptors are copied
    made = open("lock")
    while True: fcntl.flock(made, fcntl.LOCK_EX); fcntl.flock(made, fcntl.LOCK_UN); time.sleep(0.006)
def reused():
    while True:
        made = connected(); made.send(b"x"); made.recv(1); made.close()
        made = socket.socket(socket.AF_UNIX); made.connect("unix.sock"); made.send(b"x"); made.recv(1); made.close()
def connects():
    for _ in range(4):
        made = socket.socket(); made.setblocking(False); made.connect_ex(("127.0.0.1", full)); kept.append(made)
    time.sleep(0.1)
    made = socket.socket(); made.connect(("127.0.0.1", full))
def name(what):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file: file.write(what.__name__)
    what()
kept = []
for what in tcp, unix, polls, selects, epolls, locks, writes, own_table, reused, connects:
    threading.Thread(target=name, args=(what,), daemon=True).start()
time.sleep(0.3)
print(flush=True)
sys.stdin.read()
"""


Known = tuple[Profile, dict[str, list[WaitObject]], tuple[int, int, int, int]]


@contextmanager
def pair(folder: Path) -> Iterator[tuple[int, int, int, int]]:
    """Both programs: their pids, the port of the server, and the one that takes no more connections."""
    source = {"server": SERVER, "client": CLIENT}
    for name, text in source.items():
        (folder / f"{name}.py").write_text(text)
    reader, writer = os.pipe()
    python = [sys.executable, "-I"]
    with subprocess.Popen(
        [*python, str(folder / "server.py"), str(folder)], stdin=reader, stdout=subprocess.PIPE, text=True
    ) as server:
        os.close(reader)
        assert server.stdout
        ports = server.stdout.readline().split()
        client = subprocess.Popen(
            [*python, str(folder / "client.py"), str(folder), *ports, str(writer)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[writer],
        )  # fmt: skip
        os.close(writer)
        with client:
            try:
                assert client.stdout
                client.stdout.readline()
                yield client.pid, server.pid, int(ports[0]), int(ports[1])
            finally:
                client.kill()
                server.kill()


def by_thread(profile: Profile) -> dict[str, Counter[int]]:
    """ns of blocked time by thread and object."""
    found: dict[str, Counter[int]] = {}
    for sample in profile.samples:
        if not str(sample.label("state")).startswith("runnable"):
            of = found.setdefault(str(sample.label("thread")), Counter())
            of[int(sample.label(LABEL) or 0)] += sample.values[0]
    return found


@pytest.fixture
def traced(live: None, tmp_path: Path) -> Iterator[Known]:
    with pair(tmp_path) as known:
        output = tmp_path / "waits.pb.gz"
        args = [command("trace-offcpu"), "-p", str(known[0]), "-d", "3", "--engine", "libbpf", "-o", str(output)]
        subprocess.run(args, check=True, capture_output=True, timeout=120)
        with output.open("rb") as file:
            profile = pprof.load(file)
        objects = {each.id: each for each in profile.objects}
        threads = {
            thread: [objects[number] for number, _ in of.most_common() if number in objects]
            for thread, of in by_thread(profile).items()
        }
        yield profile, threads, known


def test_files_and_other_ends(traced: Known, tmp_path: Path) -> None:
    profile, threads, (client, server, port, full) = traced
    remote = f"127.0.0.1:{port}"
    for thread in ("tcp", "polls", "selects", "epolls"):
        first = threads[thread][0]
        assert (first.kind, first.remote) == (TCP, remote), thread
        assert [end.pid for end in first.ends] == [server], thread
        assert "server.py" in first.ends[0].process
    (first, *_) = threads["unix"]
    assert (first.kind, first.name, [end.pid for end in first.ends]) == (UNIX, "unix.sock", [server])
    for thread in ("locks", "own_table"):
        (first, *_) = threads[thread]
        assert (first.kind, first.name) == (FILE, str(tmp_path / "lock")), thread
        assert first.filesystem
    (first, *_) = threads["writes"]
    assert (first.kind, first.does) == (PIPE, READS)
    assert [end.pid for end in first.ends] == [server]
    (first, *_) = threads["connects"]
    assert (first.kind, first.remote, [end.pid for end in first.ends]) == (TCP, f"127.0.0.1:{full}", [server])
    assert first.queued
    assert client not in {end.pid for each in profile.objects if each.kind != PIPE for end in each.ends}


def test_a_number_that_is_used_again(
    traced: Known,
) -> None:
    """Connections live for 50 ms: names may be missing, but none is another one's."""
    _, threads, (_, server, port, _) = traced
    for each in threads["reused"]:
        if each.kind == TCP:
            assert each.remote == f"127.0.0.1:{port}"
        else:
            assert each.kind == UNIX
            assert each.name in ("", "unix.sock")
        assert {end.pid for end in each.ends} <= {server}


def test_the_sentence_names_the_other_end(live: None, tmp_path: Path) -> None:
    program = "import os, time\nwhile True: os.write(1, b'x'); time.sleep(0.1)"
    (tmp_path / "slow.py").write_text(program)
    with subprocess.Popen([sys.executable, "-I", str(tmp_path / "slow.py")], stdout=subprocess.PIPE) as writer:
        reads = "import os\nwhile os.read(0, 1): pass"
        with subprocess.Popen([sys.executable, "-I", "-c", reads], stdin=writer.stdout) as reader:
            try:
                args = [command("trace-wall"), "-p", str(reader.pid), "-d", "2", "--json"]
                done = subprocess.run(args, check=True, capture_output=True, timeout=120)
            finally:
                reader.kill()
                writer.kill()
    said = json.loads(done.stdout)
    assert f"from a pipe into which {os.path.basename(sys.executable)}" in said["answer"][0]
    assert f"slow.py (pid {writer.pid}) writes" in said["answer"][0]
    (wait, *_) = said["waits"]
    assert (wait["on"]["kind"], wait["on"]["ends"][0]["pid"]) == (PIPE, writer.pid)
    assert said["verdicts"][0]["subject"]["on"]["ends"][0]["pid"] == writer.pid


def test_wakeups_have_them_too(live: None, tmp_path: Path) -> None:
    with pair(tmp_path) as (client, server, port, _):
        args = [command("trace-wakeup"), "-p", str(client), "-d", "2", "-o", str(tmp_path / "wakers.pb.gz")]
        subprocess.run(args, check=True, capture_output=True, timeout=120)
        with (tmp_path / "wakers.pb.gz").open("rb") as file:
            profile = pprof.load(file)
    of = [each for each in profile.objects if each.kind == TCP and each.remote == f"127.0.0.1:{port}"]
    assert of and all(end.pid == server for each in of for end in each.ends)
    assert WRITES
