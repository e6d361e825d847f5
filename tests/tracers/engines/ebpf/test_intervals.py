"""Boundaries and writers. For real: tests/live/test_intervals.py."""

from __future__ import annotations

import errno
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from stallscope.tracers.engines.ebpf import intervals as module
from stallscope.tracers.engines.ebpf.intervals import Intervals, started_by
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import ThreadRecord

EVERY = 0.6


@pytest.fixture
def made(loaded: Object) -> Iterator[tuple[Intervals, Object]]:
    intervals = Intervals(SimpleNamespace(object=loaded, began=time.monotonic_ns()), EVERY)  # type: ignore[arg-type]
    yield intervals, loaded
    intervals.close()


def cuts(loaded: Object) -> tuple[int, ...]:
    """Cuts as the programs see them."""
    return struct.unpack("QQ", loaded.find_map("cuts").lookup(bytes(4)) or b"")


def test_boundaries_are_announced_before_their_time(made: tuple[Intervals, Object]) -> None:
    intervals, loaded = made
    assert cuts(loaded) == (0, 0)
    assert intervals.due() == 0
    announced = time.monotonic_ns()
    last, first = cuts(loaded)
    assert last == 0
    # Later than the interval's length only if there was no core until then.
    assert intervals._engine.began + EVERY * 1e9 - 1 <= first <= announced + EVERY * 1e9
    time.sleep(1.1 * EVERY)
    assert intervals.due() == first
    intervals.passed()
    assert cuts(loaded) == (first, first)
    assert intervals.boundary == first
    assert intervals.due() == 0
    last, second = cuts(loaded)
    assert last == first
    assert abs(second - first - EVERY * 1e9) <= 1
    assert first & 1 != second & 1  # each has tables of its own


def test_a_boundary_that_is_late_is_not_in_the_past(made: tuple[Intervals, Object]) -> None:
    intervals, loaded = made
    time.sleep(2 * EVERY)
    intervals.due()
    assert cuts(loaded)[1] > time.monotonic_ns() + module._NOTICE // 2


def test_a_boundary_that_was_announced_after_its_time_is_told(
    made: tuple[Intervals, Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    intervals, _ = made
    intervals.due()
    assert intervals.remarks() == []
    monkeypatch.setattr(intervals, "_announce", lambda boundary: time.sleep(0.9))
    time.sleep(EVERY)
    intervals.passed()
    intervals.due()
    assert 0.2e9 < intervals.late < 2e9
    (remark,) = intervals.remarks()
    assert remark.startswith("the tracer had no core when an interval ended: its accounts are inexact by up to ")


def test_a_boundary_is_withdrawn_or_waited_for(made: tuple[Intervals, Object]) -> None:
    intervals, loaded = made
    assert intervals.withdraw() == 0
    intervals.due()
    assert intervals.withdraw() == 0
    assert cuts(loaded) == (0, 0)
    intervals.due()
    at = cuts(loaded)[1]
    time.sleep(max(at - time.monotonic_ns() - 5_000_000, 0) / 1e9)
    assert intervals.withdraw() == at
    assert time.monotonic_ns() > at


def test_writers_are_waited_for(made: tuple[Intervals, Object]) -> None:
    intervals, loaded = made
    read, write = os.pipe()
    for _ in range(2):
        intervals.write(lambda: os.read(read, 1) and None)
    assert len(intervals.ours) == 2
    time.sleep(1.1 * EVERY)
    assert intervals.due() == 0
    assert cuts(loaded) == (0, 0), "none is announced while two profiles are being written"
    os.write(write, b"..")
    intervals._reap(0)
    assert intervals.due() == 0
    assert cuts(loaded)[1]
    assert intervals.failed == 0


def test_failures_are_counted(made: tuple[Intervals, Object], capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise SystemExit(1)

    intervals, _ = made
    intervals.write(fail)
    intervals.write(lambda: None)
    intervals._reap(0)
    assert intervals.failed == 1
    assert capfd.readouterr().err == ""


def _no_space() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (_no_space, "an interval is missing: [Errno 28] No space left on device\n"),
        (_killed, "an interval is missing: the process that wrote it was killed by signal 9\n"),
    ],
)
def test_why_an_interval_is_missing_is_told(
    work: Callable[[], None], told: str, made: tuple[Intervals, Object], capfd: pytest.CaptureFixture[str]
) -> None:
    intervals, _ = made
    intervals.write(work)
    intervals.close()
    assert intervals.failed == 1
    assert capfd.readouterr().err == told


def test_the_id_of_a_writer_that_ended_is_not_kept(made: tuple[Intervals, Object]) -> None:
    """The id may be another process's by then."""
    intervals, _ = made
    intervals.write(lambda: None)
    (first,) = intervals.ours
    intervals._reap(0)
    assert intervals.ours == {first}, "it had waits in this interval"
    intervals.write(lambda: None)
    assert first not in intervals.ours
    assert len(intervals.ours) == 1


def test_there_are_few_writers_and_one_that_takes_much_is_alone(made: tuple[Intervals, Object]) -> None:
    intervals, _ = made
    intervals._engine.options = SimpleNamespace(memory=400)  # type: ignore[assignment]
    end, write = os.pipe()

    def wait() -> None:
        os.close(write)
        os.read(end, 1)

    for size, more in ((99, True), (1, False)):
        intervals.write(wait, size)
        assert intervals._may_write() is more
    assert intervals.taken == 100
    os.close(write)
    intervals._reap(0)
    assert (intervals.taken, intervals.failed) == (0, 0)
    intervals.write(lambda: None, 100)
    assert not intervals._may_write()
    intervals._reap(0)
    assert intervals._may_write()


def test_a_number_of_writers_of_the_user(loaded: Object) -> None:
    engine = SimpleNamespace(object=loaded, began=time.monotonic_ns(), options=SimpleNamespace(memory=400))
    intervals = Intervals(engine, EVERY, most=1)  # type: ignore[arg-type]
    end, write = os.pipe()

    def wait() -> None:
        os.close(write)
        os.read(end, 1)

    intervals.write(wait, 1)
    assert not intervals._may_write()
    os.close(write)
    intervals.close()


def test_a_writer_ends_when_nobody_reads_what_it_says(made: tuple[Intervals, Object]) -> None:
    """A writer that did not end would go on as a second tracer."""
    intervals, _ = made

    def publish() -> None:
        end, write = os.pipe()
        os.close(end)
        sys.stdout = os.fdopen(write, "w")
        sys.stdout.write("a line")

    intervals.write(publish)
    intervals._reap(0)
    assert intervals.failed == 0


def life(tgid: int, creator: int = 0) -> ThreadRecord:
    key = SimpleNamespace(tgid=tgid)
    return cast(ThreadRecord, SimpleNamespace(thread=SimpleNamespace(key=key, creator=creator)))


def test_what_writers_start_is_known_with_its_descendants() -> None:
    threads = [life(5), life(7, 90), life(8, 7), life(8, 8), life(9, 5), life(10, 11)]
    assert started_by({90}, set(), threads) == {7, 8}
    assert started_by({91}, {7, 8, 11}, threads) == {7, 8, 10}, "11 has ended"
    assert started_by({91}, set(), threads) == set()
