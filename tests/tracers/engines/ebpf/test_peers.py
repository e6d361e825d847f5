"""Processes that join a trace, without a kernel. With one: tests/live/test_peers.py."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.model.remarks import Joined
from stallscope.tracers.base import procfs
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import peers as module
from stallscope.tracers.engines.ebpf.measures.wakeup import WakeUpCollector
from stallscope.tracers.engines.ebpf.newcomers import Newcomers
from stallscope.tracers.engines.ebpf.peers import Peers
from stallscope.tracers.kernel import records
from stallscope.tracers.kernel.records import BLOCKED, ON_CPU, ORIGIN, RECORD_CHAIN, STATES, Origin, ThreadRecord
from stallscope.tracers.measures.wakeup import WakeUp

SECOND = 1_000_000_000
CLIENT = 1 << 22
SOCKET = 0x1234567890
SLEEP = STATES.index("interruptible")


@pytest.fixture
def server() -> Iterator[int]:
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process.pid
        process.kill()


class Waits(WakeUpCollector):
    """Waits of the client that are in no table of a kernel."""

    def __init__(self) -> None:
        super().__init__(WakeUp())

    def drain(self) -> None:
        pass

    def ended_with(self, tgid: int, spent: int, tid: int = CLIENT, on: int = 0) -> None:
        waker = struct.pack("<QQ5I4x", 0, 0, tgid, tgid, 0, 0, records.BY_SOFTIRQ if tgid else records.BY_TIMER)
        self.on_record(struct.pack("<IIQ", RECORD_CHAIN, 1, tgid) + waker + bytes(40 * 15))
        origin = Origin(1, 0, on, tid, CLIENT, 1, SLEEP)
        self.totals().add(ORIGIN.pack(*origin) + struct.pack("<Q", tgid), struct.pack("<4Q", spent, 1, spent, spent))


class Tracing:
    """A trace of the client that began ten seconds ago."""

    def __init__(self, others: set[int] | None = None) -> None:
        self.waits = Waits()
        self.threads: list[ThreadRecord] = []
        self.began = time.monotonic_ns() - 10 * SECOND
        self.options = SimpleNamespace(collectors=[self.waits])
        objects: Any = SimpleNamespace(others=lambda number: others if number == SOCKET and others else set())
        engine: Any = self
        self.for_locks: dict[tuple[int, int], int] = {}
        self.peers = Peers(engine, objects, lambda: (), lambda: self.for_locks)
        self.thread(CLIENT, ON_CPU, 0)

    def thread(self, tgid: int, phase: int, waits: int, on: int = 0) -> None:
        made = records.parse_thread(records.pack_thread((tgid, tgid), 1, STATES[SLEEP], phase, 0))
        out = time.monotonic_ns() - waits
        self.threads.append(
            ThreadRecord(0, b"", made._replace(out=out, key=made.key._replace(object=on)), exited=False)
        )

    def living(self) -> list[ThreadRecord]:
        return self.threads


def test_who_ends_a_tenth_of_a_threads_time(server: int) -> None:
    traced = Tracing()
    traced.waits.ended_with(server, 2 * SECOND)
    assert traced.peers.newcomers() == {server}
    (joined,) = traced.peers.remarks(traced.began)
    assert isinstance(joined, Joined)
    assert (joined.name, joined.pid) == ("sleep", server)
    assert 10 * SECOND <= joined.at < 100 * SECOND


def test_who_delivers_what_another_has_sent(server: int) -> None:
    """A softirq that a thread lets run delivers everything that is due on its core."""
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        traced = Tracing(others={server})
        traced.waits.ended_with(server, 2 * SECOND, on=SOCKET)
        traced.waits.ended_with(other.pid, 5 * SECOND, on=SOCKET)
        assert traced.peers.newcomers() == {server}
        other.kill()


def test_who_ends_less_does_not_join(server: int) -> None:
    """Half a second of four threads each is a tenth of none of them."""
    traced = Tracing()
    for tid in range(CLIENT, CLIENT + 4):
        traced.waits.ended_with(server, SECOND // 2, tid)
    assert traced.peers.newcomers() == set()
    assert traced.peers.remarks(traced.began) == []


def test_a_wait_that_has_not_ended(server: int) -> None:
    traced = Tracing(others={server})
    traced.thread(CLIENT, BLOCKED, 9 * SECOND, SOCKET)
    assert traced.peers.newcomers() == {server}


@pytest.mark.parametrize(("seconds", "joins"), [(2, True), (0.5, False)])
def test_who_has_the_lock_of_a_file(server: int, seconds: float, joins: bool) -> None:
    traced = Tracing()
    traced.for_locks = {(CLIENT, server): int(seconds * SECOND)}
    assert traced.peers.newcomers() == ({server} if joins else set())


@pytest.mark.parametrize(("phase", "waits"), [(ON_CPU, 9), (BLOCKED, 0)])
def test_other_ends_that_are_not_waited_for(server: int, phase: int, waits: int) -> None:
    traced = Tracing(others={server})
    traced.thread(CLIENT, phase, waits * SECOND, SOCKET)
    assert traced.peers.newcomers() == set()


def test_several_other_ends(server: int) -> None:
    """Nobody knows for which of two a thread waits."""
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        traced = Tracing(others={server, other.pid})
        traced.thread(CLIENT, BLOCKED, 9 * SECOND, SOCKET)
        assert traced.peers.newcomers() == set()
        other.kill()


def test_who_is_never_traced(server: int) -> None:
    """Processes that are traced already, this one and its callers, what has ended, and threads of the kernel."""
    traced = Tracing()
    traced.thread(server, ON_CPU, 0)
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    (of_kernel,) = [pid for pid in procfs.pids() if procfs.comm(pid) == "kthreadd"] or [0]
    for pid in (server, os.getpid(), os.getppid(), gone.pid, 1, of_kernel):
        traced.waits.ended_with(pid, 5 * SECOND)
    assert traced.peers.newcomers() == set()


def test_it_looks_now_and_then(server: int) -> None:
    traced = Tracing()
    assert traced.peers.newcomers() == set()
    traced.waits.ended_with(server, 5 * SECOND)
    assert traced.peers.newcomers() == set(), "not so soon again"
    traced.began -= 2 * SECOND
    assert traced.peers.newcomers() == {server}


def test_few_join(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 1)
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        traced = Tracing()
        traced.waits.ended_with(server, 2 * SECOND)
        traced.waits.ended_with(other.pid, 3 * SECOND)
        assert traced.peers.newcomers() == {other.pid}, "who is waited for longest"
        traced.began -= 20 * SECOND
        assert traced.peers.newcomers() == set()
        other.kill()


def test_intervals(server: int) -> None:
    """Waits of the interval count. Who has joined before is there from its beginning; who has ended makes room."""
    traced = Tracing()
    traced.peers.cut(time.monotonic_ns() - SECOND)
    traced.waits.ended_with(server, SECOND // 5)
    assert traced.peers.newcomers() == {server}
    now = time.monotonic_ns()
    traced.peers.cut(now)
    (joined,) = traced.peers.remarks(now)
    assert joined == Joined("sleep", server, 0)
    os.kill(server, signal.SIGKILL)
    while procfs.state(server) not in ("", "Z"):
        time.sleep(0.01)
    traced.peers.cut(now)
    assert traced.peers.remarks(now) == []


@pytest.mark.parametrize(
    ("scope", "joins"),
    [
        (Scope(pids=[CLIENT], peers=True), True),
        (Scope(pids=[CLIENT]), False),
        (Scope(everything=True, peers=True), False),
    ],
)
def test_they_join_if_asked_for(scope: Scope, joins: bool, server: int) -> None:
    traced = Tracing()
    traced.waits.ended_with(server, 5 * SECOND)
    engine: Any = SimpleNamespace(**vars(traced), living=traced.living, seed=list)
    engine.options = SimpleNamespace(scope=scope, collectors=[traced.waits])
    following: Any = SimpleNamespace(
        spaces=SimpleNamespace(processes={server: None, CLIENT: None}),
        to_adopt=deque(),
        conditions=SimpleNamespace(look_soon=lambda _: None),
    )
    objects: Any = SimpleNamespace(others=lambda _: set())
    newcomers = Newcomers(engine, following, objects, lambda: (), dict)
    newcomers.poll(lambda: ())
    assert scope.tgids == ({server} if joins else set())
    assert len(newcomers.remarks(traced.began)) == int(joins)
