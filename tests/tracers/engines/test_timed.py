"""Calls by process and thread, from those by thread. With real processes: tests/live/test_call_tables.py."""

from __future__ import annotations

from typing import Any

import pytest
from stallscope.converters.model.call_ioctls import CallIoctls
from stallscope.converters.model.calls import BUCKETS, CallTimes
from stallscope.converters.model.copies import Copies
from stallscope.tracers.engines import timed
from stallscope.tracers.engines.rows import Timed
from stallscope.tracers.engines.timed import calls_by_process, parts_by_process
from stallscope.tracers.kernel.records import RUNNING, Origin


class Names:
    """Stands for the names of a trace: process 7, one that had this pid before, and one that stands for several."""

    def labels(self, origin: Origin, _state: str, _is_open: bool) -> tuple[tuple[str, str | int], ...]:
        ids: dict[int, dict[str, int]] = {7: {"pid": 7, "pid-life": 2}, 1 << 30: {"pid": 7}, 2 << 30: {"pid-life": 2}}
        own: dict[str, str | int] = {**ids[origin.tgid], "process": f"p{origin.tgid >> 30}", "thread": f"t{origin.tid}"}
        if origin.tid:
            own |= {"tid": origin.tid, **({"tid-life": 2} if origin.life > 9 else {})}
        return tuple(own.items())

    def pid(self, number: int) -> tuple[int, int]:
        return {7: (7, 2), 1 << 30: (7, 1), 2 << 30: (0, 2)}[number]

    def process(self, number: int) -> str:
        return f"p{number >> 30}"


def call(tid: int, tgid: int, ns: int, *, life: int = 1, name: str = "f", errors: int = 0) -> Timed:
    origin = Origin(0, 0, 0, tid, tgid, life, RUNNING)
    latencies = (1,) + (0,) * (BUCKETS - 1)
    failed = {"E": errors} if errors else {}
    return Timed(origin, CallTimes(name, "", tgid, "", 1, ns, ns, ns, latencies=latencies, errors=failed, library="l"))


def by_process(*calls: Timed) -> list[CallTimes]:
    names: Any = Names()
    return calls_by_process(calls, names)


def test_threads_are_added_up_and_kept() -> None:
    (process,) = by_process(call(8, 7, 10), call(9, 7, 30, errors=1), call(8, 7, 1, life=2))
    assert (process.pid, process.pid_life, process.process, process.tid) == (7, 2, "p0", 0)
    assert (process.count, process.total, process.min, process.max, process.errors) == (3, 41, 1, 30, {"E": 1})
    assert [(each.tid, each.thread, each.count, each.total) for each in process.threads] == [
        (9, "t9", 1, 30),
        (8, "t8", 2, 11),
    ]


def test_processes_of_one_pid_and_threads_of_one_tid_are_apart() -> None:
    found = by_process(call(8, 7, 10), call(8, 7, 20, life=10), call(8, 1 << 30, 5))
    assert [(each.pid, each.pid_life, each.process, each.total) for each in found] == [
        (7, 2, "p0", 30),
        (7, 1, "p1", 5),
    ]
    assert [(each.tid, each.tid_life) for each in found[0].threads] == [(8, 2), (8, 1)]


def test_processes_that_are_added_up_have_no_ids() -> None:
    (process,) = by_process(call(0, 2 << 30, 5))
    assert (process.pid, process.pid_life, process.process, process.threads[0].tid) == (0, 2, "p2", 0)


def test_functions_are_apart() -> None:
    assert [each.name for each in by_process(call(8, 7, 1), call(8, 7, 2, name="g"))] == ["f", "g"]


def test_entries_of_threads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that are left out are added up per process: the sums stay."""
    monkeypatch.setattr(timed, "MOST", 3)
    found = by_process(*(call(tid, tgid, 10 * tid) for tid in range(1, 6) for tgid in (7, 1 << 30)))
    for process in found:
        assert sum(each.total for each in process.threads) == process.total == 150
        assert (process.threads[-1].thread, process.threads[-1].tid) == (timed.OTHERS, 0)
    assert sum(each.tid > 0 for process in found for each in process.threads) == 3


def test_what_calls_made_is_of_processes() -> None:
    def made(tid: int, tgid: int, name: str, count: int) -> tuple[Origin, CallIoctls]:
        names = name, "l", tgid, "", "TUNSETIFF", "/dev/net/tun"
        return Origin(0, 0, 0, tid, tgid, 1, RUNNING), CallIoctls(*names, count, 10 * count, count, 1, 1, 5)

    ioctls = made(8, 7, "f", 1), made(9, 7, "f", 2), made(8, 1 << 30, "f", 4), made(0, 2 << 30, "f", 8)
    names: Any = Names()
    found = parts_by_process([*ioctls, made(8, 7, "g", 16)], names)
    assert [(one.pid, one.pid_life, one.process, one.name, one.count) for one in found] == [
        (7, 2, "p0", "f", 3),
        (7, 1, "p1", "f", 4),
        (0, 2, "p2", "f", 8),
        (7, 2, "p0", "g", 16),
    ]
    one = found[0]
    assert (one.total, one.blocked, one.runnable, one.open_count, one.open_time) == (30, 3, 2, 2, 10)
    copies = [Copies("c", "l", 7, "", way, False, 1, 64, 1, 5, 3, 1) for way in ("x", "x", "y")]
    first, other = parts_by_process([(Origin(0, 0, 0, 8, 7, 1, RUNNING), each) for each in copies], names)
    assert (first.count, first.bytes, first.unknown, first.total, first.blocked, first.runnable) == (
        2,
        128,
        2,
        10,
        6,
        2,
    )
    assert (other.direction, other.count) == ("y", 1)
