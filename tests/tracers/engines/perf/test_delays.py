from __future__ import annotations

import os
import time

import pytest
from stallscope.tracers.base import procfs
from stallscope.tracers.engines.perf import delays
from stallscope.tracers.engines.perf.delays import Looks


def test_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that are gone are left out, as are those for which the kernel counts nothing."""
    times = {2: (5, 7), 3: (0, 0), 4: (9, 0)}
    monkeypatch.setattr(procfs, "schedstat", lambda _pid, tid: times.get(tid))
    ((when, found),) = Looks().look([(1, 2), (1, 3), (1, 4), (1, 5)], 77)
    assert (when, found) == (77, {2: (5, 7), 4: (9, 0)})


def test_what_the_kernel_counts_here() -> None:
    before = time.monotonic_ns()
    ((when, counted),) = Looks().look([(os.getpid(), os.getpid())])
    assert before <= when <= time.monotonic_ns()
    (found,) = counted.values()
    assert found[0] > 0
    assert found[1] >= 0


def test_long_looks_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that take much time on a core are rare; how long they take in a crowd does not count."""
    now, used = [100.0], [0.0]

    def slow(_pid: int, _tid: int) -> tuple[int, int]:
        now[0] += 1
        used[0] += 0.5
        return 1, 1

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "thread_time", lambda: used[0])
    looks = Looks()
    assert looks.is_due
    looks.look([])
    now[0] += delays._OFTEN - 0.1
    assert not looks.is_due
    now[0] += 0.1
    assert looks.is_due
    monkeypatch.setattr(procfs, "schedstat", slow)
    looks.look([(1, 2), (1, 3)])
    now[0] += delays._SELDOM - 1
    assert not looks.is_due
    now[0] += 1
    assert looks.is_due


def test_many_threads_are_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last thread's time meanwhile would count as if it was after the look."""
    monkeypatch.setattr(delays, "_TOGETHER", 2)
    monkeypatch.setattr(procfs, "schedstat", lambda _pid, tid: (tid, tid))
    assert [list(found) for _, found in Looks().look([(1, tid) for tid in range(1, 6)])] == [[1, 2], [3, 4], [5]]
