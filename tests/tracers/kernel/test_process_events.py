from __future__ import annotations

import mmap
import os
import re
import select
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from mmap import PAGESIZE

import pytest
from stallscope.tracers.kernel import perf_events, process_events
from stallscope.tracers.kernel.process_events import Exec, Exit, Fork, Mmap, ProcessEvents, _event, _Ring

LOST, COMM, EXIT, THROTTLE, FORK, MMAP2 = 2, 3, 4, 5, 7, 10
COMM_EXEC, BUILD_ID = 1 << 13, 1 << 14
WHEN = 0x0102030405060708


def when(time_ns: int = WHEN) -> bytes:
    return struct.pack("<Q", time_ns)


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def task(pid: int, ppid: int, tid: int, ptid: int, time_ns: int = WHEN) -> bytes:
    return struct.pack("<IIIIQ", pid, ppid, tid, ptid, time_ns) + when(time_ns)


def padded(name: bytes) -> bytes:
    return name + bytes(8 - len(name) % 8)


def mmap2(identity: bytes, path: bytes) -> bytes:
    head = struct.pack("<IIQQQ", 7, 8, 0x7F0000001000, 0x2000, 0x3000)
    return head + identity + struct.pack("<II", 5, 2) + padded(path) + when()


def quiet() -> ProcessEvents:
    """Process events without rings."""
    made = ProcessEvents.__new__(ProcessEvents)
    made.lost, made._pending, made._rings = 0, [], []
    return made


def test_fork_of_a_process_but_not_of_a_thread() -> None:
    assert _event(FORK, 0, task(200, 100, 200, 101)) == Fork(WHEN, 200, 100)
    assert _event(FORK, 0, task(100, 100, 102, 100)) is None


def test_exit_of_the_main_thread_alone() -> None:
    assert _event(EXIT, 0, task(200, 1, 200, 1)) == Exit(WHEN, 200)
    assert _event(EXIT, 0, task(200, 1, 201, 1)) is None


def test_name_given_by_exec_but_not_by_the_thread_itself() -> None:
    body = struct.pack("<II", 200, 200) + padded(b"s;\xff\n<b>") + when()
    assert _event(COMM, COMM_EXEC, body) == Exec(WHEN, 200, b"s;\xff\n<b>")
    assert _event(COMM, 0, body) is None


@pytest.mark.parametrize("path", [b"/lib/x.so", b"//anon", b"/a\xff\nb (deleted)", b"/eight88", b""])
def test_mapping_with_device_and_inode(path: bytes) -> None:
    identity = struct.pack("<IIQQ", 259, 3, 4711, 1)
    expected = Mmap(WHEN, 7, 0x7F0000001000, 0x2000, 0x3000, path, os.makedev(259, 3), 4711, "")
    assert _event(MMAP2, 0, mmap2(identity, path)) == expected


@pytest.mark.parametrize(("size", "shown"), [(20, "ab" * 20), (16, "ab" * 16), (0, ""), (255, "ab" * 20)])
def test_mapping_with_build_id(size: int, shown: str) -> None:
    identity = bytes([size, 0, 0, 0]) + b"\xab" * 20
    expected = Mmap(WHEN, 7, 0x7F0000001000, 0x2000, 0x3000, b"/lib/x.so", 0, 0, shown)
    assert _event(MMAP2, BUILD_ID, mmap2(identity, b"/lib/x.so")) == expected


def test_records_of_other_kinds_are_left_out() -> None:
    data = record(THROTTLE, bytes(24) + when()) + record(EXIT, task(5, 1, 5, 1)) + record(99, bytes(64))
    assert list(quiet()._parse(data)) == [Exit(WHEN, 5)]


def test_lost_records_are_counted() -> None:
    made = quiet()
    lost = record(LOST, struct.pack("<QQ", 0xFFFF, 41) + when())
    assert list(made._parse(lost + record(EXIT, task(5, 1, 5, 1)) + lost)) == [Exit(WHEN, 5)]
    assert made.lost == 82


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_truncated_record_ends_the_parsing(cut: int) -> None:
    whole, last = record(EXIT, task(5, 1, 5, 1)), record(FORK, task(6, 5, 6, 5))
    assert list(quiet()._parse(whole + last[:-cut])) == [Exit(WHEN, 5)]


@pytest.mark.parametrize("size", [0, 4, 7, 8, 15])
def test_record_too_small_for_its_time_ends_the_parsing(size: int) -> None:
    bad = struct.pack("<IHH", EXIT, 0, size) + bytes(40)
    assert list(quiet()._parse(record(EXIT, task(5, 1, 5, 1)) + bad)) == [Exit(WHEN, 5)]


class Memory:
    """A ring as the kernel would have written it, in a file."""

    def __init__(self, size: int) -> None:
        self.fd = os.memfd_create("ring")
        os.truncate(self.fd, PAGESIZE + size)
        self.ring = _Ring(os.dup(self.fd), size)
        self.size = size

    def write(self, position: int, data: bytes) -> None:
        for i, byte in enumerate(data):
            os.pwrite(self.fd, bytes([byte]), PAGESIZE + (position + i) % self.size)

    def set(self, head: int, tail: int) -> None:
        os.pwrite(self.fd, struct.pack("<QQ", head, tail), 1024)

    def tail(self) -> int:
        return int.from_bytes(os.pread(self.fd, 8, 1032), "little")


@pytest.fixture
def memory() -> object:
    made = Memory(PAGESIZE)
    yield made
    made.ring.close()
    os.close(made.fd)


@pytest.mark.parametrize(
    ("tail", "length"),
    [
        (0, 40),
        (PAGESIZE - 20, 40),  # wraps around
        (PAGESIZE - 40, 40),  # ends exactly at the end
        (7 * PAGESIZE + 16, 1000),
        ((1 << 40) + PAGESIZE - 1, 2),
        (0, PAGESIZE),  # full
        (24, PAGESIZE),
    ],
)
def test_ring(tail: int, length: int, memory: Memory) -> None:
    data = bytes(i % 251 for i in range(length))
    memory.write(tail, data)
    memory.set(tail + length, tail)
    assert memory.ring.read() == data
    assert memory.tail() == tail + length
    assert memory.ring.read() == b""
    assert memory.tail() == tail + length


class Feed:
    """A ring that gives what it is told."""

    def __init__(self) -> None:
        self.data = b""

    def read(self) -> bytes:
        data, self.data = self.data, b""
        return data


def test_events_come_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, one, two = quiet(), Feed(), Feed()
    made._rings = [one, two]  # type: ignore[list-item]
    now = 0
    monkeypatch.setattr(process_events.time, "monotonic_ns", lambda: now)

    def exits(*times: int) -> bytes:
        return b"".join(record(EXIT, task(t, 1, t, 1, t)) for t in times)

    now, one.data, two.data = 1000, exits(300, 900, 1000, 1200), exits(200, 1100)
    assert [event.time for event in made.poll()] == [200, 300, 900]  # 1000 or later: another ring may hold earlier ones
    assert made.until == 1000
    now, one.data, two.data = 2000, exits(1500, 2500), exits(1050, 1300)
    assert [event.time for event in made.poll()] == [1000, 1050, 1100, 1200, 1300, 1500]
    now, two.data = 2100, exits(2050)
    assert [event.time for event in made.poll(final=True)] == [2050, 2500]
    assert made.poll(final=True) == []


def test_refusal_is_an_oserror(monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(perf_events, "TYPE_SOFTWARE", 0xFFFF)
    with pytest.raises(OSError) as caught:
        ProcessEvents()
    assert caught.value.errno
    assert len(os.listdir("/proc/self/fd")) == before


def test_short_lived_program(root: None, require: Callable[[bool, str], None]) -> None:
    program = os.path.realpath(shutil.which("true") or "/bin/true")
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]{40})", notes)
    require(found is not None, f"{program} has no build-id")
    assert found
    made = ProcessEvents()
    try:
        begin = time.monotonic_ns()
        child = subprocess.Popen([program])
        child.wait()
        end = time.monotonic_ns()
        events = [event for event in made.poll(final=True) if event.pid == child.pid]
    finally:
        made.close()
    assert made.lost == 0
    fork, first, *_, last = events
    assert fork == Fork(fork.time, child.pid, os.getpid())
    assert first == Exec(first.time, child.pid, b"true")
    assert last == Exit(last.time, child.pid)
    assert begin < fork.time < first.time < last.time < end
    maps = [event for event in events if isinstance(event, Mmap) and os.fsdecode(event.path) == program]
    assert maps
    for event in maps:
        status = os.stat(program)
        assert event.build_id == found[1] or (event.dev, event.inode) == (status.st_dev, status.st_ino)
        assert first.time < event.time < last.time
        assert event.start % PAGESIZE == event.offset % PAGESIZE == 0 < event.length


def test_without_build_ids_the_kernel_tells_the_inode(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_events, "_BUILD_ID", 0)
    program = os.path.realpath(shutil.which("true") or "/bin/true")
    made = ProcessEvents()
    try:
        child = subprocess.Popen([program])
        child.wait()
        events = made.poll(final=True)
    finally:
        made.close()
    maps = [e for e in events if isinstance(e, Mmap) and e.pid == child.pid and os.fsdecode(e.path) == program]
    assert {(event.inode, event.build_id) for event in maps} == {(os.stat(program).st_ino, "")}


def test_a_new_program_wakes_who_listens(root: None) -> None:
    made = ProcessEvents()
    try:
        for _ in range(2):
            made.poll()
            poll = select.poll()
            for fd in made.fds:
                poll.register(fd, select.POLLIN)
            child = subprocess.Popen(["sleep", "60"])
            try:
                assert poll.poll(60_000), "without a wake-up this waits for the whole minute"
            finally:
                child.kill()
                child.wait()
    finally:
        made.close()


def test_rings_are_as_large_as_the_kernel_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of locked memory: each ring is halved until it fits, and the next ones begin there."""
    tried: list[int] = []
    real = mmap.mmap

    def limited(fd: int, size: int) -> mmap.mmap:
        tried.append(size // PAGESIZE - 1)
        if tried[-1] > 64:
            raise PermissionError(1, "Operation not permitted")
        return real(-1, size)

    monkeypatch.setattr(process_events, "_open_event", lambda cpu: os.memfd_create("event"))
    monkeypatch.setattr(process_events.perf_events, "online_cpus", lambda: [0, 1])
    monkeypatch.setattr(process_events.mmap, "mmap", limited)
    events = ProcessEvents()
    assert tried == [1024, 512, 256, 128, 64, 64]
    assert len(events.fds) == 2
    events.close()


def test_no_ring_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(fd: int, size: int) -> mmap.mmap:
        raise PermissionError(1, "Operation not permitted")

    opened: list[int] = []
    monkeypatch.setattr(
        process_events, "_open_event", lambda cpu: opened.append(os.memfd_create("event")) or opened[-1]
    )
    monkeypatch.setattr(process_events.mmap, "mmap", refused)
    with pytest.raises(PermissionError):
        ProcessEvents()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])
