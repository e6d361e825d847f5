from __future__ import annotations

import os
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.engines.ebpf import metering
from stallscope.tracers.engines.ebpf.metering import (
    PAUSE,
    STEP,
    TRAP,
    WINDOW,
    Clocks,
    Helpers,
    Meter,
    Spent,
    Window,
    beyond_idle,
    parts_of,
    together,
)
from stallscope.tracers.kernel.run_times import Runs

SECOND = 1_000_000_000


class Times:
    """Run times that a test sets."""

    def __init__(self, _: object) -> None:
        self.runs: dict[str, Runs] = {"sched_switch": Runs()}
        self.counts = False
        self.refused: OSError | None = None

    def begin(self) -> None:
        if self.refused:
            raise self.refused
        self.counts = True

    def end(self) -> None:
        self.counts = False

    def read(self) -> dict[str, Runs]:
        return dict(self.runs)


class Bench:
    """A meter whose clocks a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metering, "RunTimes", Times)
        self.now = 100.0
        self.clocks = Clocks(0, 0, 0)
        loaded: Any = SimpleNamespace(programs={})
        self.meter = Meter(loaded, lambda: (), lambda: 0, lambda: self.now)
        monkeypatch.setattr(self.meter, "_clocks", lambda: self.clocks)
        self.times: Any = self.meter._times

    def pass_time(self, seconds: float, traced: float, *, own: float = 0, idle: float = 0, ns: int = 0) -> None:
        self.now += seconds
        moved = (round(each * SECOND) for each in (traced, own, idle))
        self.clocks = Clocks(*(before + more for before, more in zip(self.clocks, moved, strict=True)))
        if self.times.counts:
            before = self.times.runs["sched_switch"]
            self.times.runs["sched_switch"] = Runs(before.ns + ns, before.number + (1 if ns else 0))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_parts_of_programs() -> None:
    runs = {
        "sched_switch": Runs(1000, 10),
        "scope_exec": Runs(100, 1),
        "scope_fork": Runs(300, 1),
        "oncpu_sample_raw": Runs(500, 2),
        "calls_session": Runs(5000, 4),
        "wakeup_waking": Runs(0, 0),
        "python_freed": Runs(7, 1),
    }
    assert parts_of(runs, 3) == {
        "waits": 1000 + 10 * 40 + 100 + 40,
        "samples": 500 + 2 * 1000,
        "calls": 5000 + 4 * TRAP + 3 * STEP,
        "wakers": 340,
        "others": 47,
    }
    assert parts_of({}, 0) == {}


def test_the_tracers_own_time_counts_where_no_core_is_idle() -> None:
    assert beyond_idle(Clocks(0, 100, 50), Clocks(0, 400, 50)) == 300
    assert beyond_idle(Clocks(0, 100, 50), Clocks(0, 400, 250)) == 100
    assert beyond_idle(Clocks(0, 100, 50), Clocks(0, 400, 9000)) == 0
    assert beyond_idle(Clocks(0, 100, 50), Clocks(0, 90, 40)) == 0, "a helper has ended"


def test_a_window_is_a_part_of_the_time_and_its_share_holds_until_the_next(bench: Bench) -> None:
    meter = bench.meter
    assert meter.poll() is None, "the trace has not begun"
    meter.begin()
    assert meter.poll() is None
    assert bench.times.counts
    bench.pass_time(WINDOW / 2, 0.05, ns=1_000_000)
    assert meter.poll() is None
    bench.pass_time(WINDOW / 2, 0.05, own=0.01, ns=999_920)
    window = meter.poll()
    assert window
    assert not bench.times.counts, "nothing is timed between two windows"
    assert window.share == pytest.approx(0.02)
    assert meter.parts["waits"] == pytest.approx(0.002 * SECOND)
    assert meter.parts["tracer"] == pytest.approx(0.01 * SECOND)
    bench.pass_time(PAUSE / 2, 1.0)
    assert meter.poll() is None
    assert not bench.times.counts
    meter.finish()
    assert meter.parts["waits"] == pytest.approx(0.022 * SECOND), "2 % of a second more"
    assert meter.traced == pytest.approx(1.1 * SECOND)
    assert not meter.measured, "a single window tells little"


def windows(bench: Bench, *each: tuple[float, int]) -> None:
    """Windows with so many seconds of traced threads on cores, and so many ns of a program; nothing runs between."""
    for traced, ns in each:
        bench.meter.poll()
        bench.pass_time(WINDOW, traced, ns=ns)
        assert bench.meter.poll()
        bench.pass_time(PAUSE, 0)


def test_a_window_in_which_hardly_anything_ran_does_not_decide(bench: Bench) -> None:
    bench.meter.begin()
    windows(bench, (0.1, 1_999_960), (0.1, 1_999_960), (0.001, 1_999_960))
    assert bench.meter.measured
    assert bench.meter._shares["waits"] == pytest.approx(0.006 / 0.201, rel=1e-3)


def test_what_was_left_out_does_not_count_any_more(bench: Bench) -> None:
    bench.meter.begin()
    windows(bench, (0.1, 9_999_960))
    bench.meter.forget()
    windows(bench, (0.1, 999_960), (0.1, 999_960))
    assert bench.meter._shares["waits"] == pytest.approx(0.01)
    assert bench.meter.measured


def test_each_interval_has_its_own_cost(bench: Bench) -> None:
    meter = bench.meter
    meter.begin()
    windows(bench, (0.1, 9_999_960), (0.1, 9_999_960), (0.1, 9_999_960))
    first = meter.cut()
    assert first.parts["waits"] == pytest.approx(0.03 * SECOND)
    assert (first.traced, first.length) == (pytest.approx(0.3 * SECOND), pytest.approx(3 * (WINDOW + PAUSE) * SECOND))
    bench.pass_time(0.2, 0.1, own=0.05)
    assert meter.cut().parts == {
        "waits": pytest.approx(0.01 * SECOND),
        "tracer": pytest.approx(0.05 * SECOND),
    }, "without a window of its own: the share of the last one"
    windows(bench, (0.1, 999_960))
    meter.finish()
    last = meter.cut()
    assert last.parts["waits"] == pytest.approx(0.001 * SECOND)
    assert meter.cut() == Spent({}, 0, 0)


def test_a_window_that_may_begin_at_once(bench: Bench) -> None:
    bench.meter.begin()
    bench.meter.poll()
    bench.pass_time(WINDOW, 0.1, ns=1)
    assert bench.meter.poll()
    bench.meter.hurry()
    bench.meter.poll()
    assert bench.times.counts


def test_windows_together() -> None:
    both = together([Window(100, {"waits": 10}, 50), Window(20, {"waits": 5, "locks": 3}, 200)])
    assert both == Window(120, {"waits": 15, "locks": 3}, 250)
    assert both.share == 18 / 250


def test_the_time_of_helpers_that_have_ended_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {1: 5, 2: 7}
    monkeypatch.setattr(metering, "_cpu_of", lambda pid: times[pid])
    helpers = Helpers(lambda: times)
    assert helpers.time() == 12
    times[2] = 9
    del times[1]
    assert helpers.time() == 14
    times.update({1: 2, 2: 1})
    assert helpers.time() == 5 + 9 + 2 + 1, "both ids have come back"


def test_a_trace_without_a_whole_window(bench: Bench) -> None:
    bench.meter.begin()
    bench.meter.poll()
    bench.pass_time(WINDOW / 2, 0.01)
    bench.meter.finish()
    assert not bench.meter.measured
    assert not bench.times.counts


def test_nothing_traced_ran(bench: Bench) -> None:
    bench.meter.begin()
    bench.meter.poll()
    bench.pass_time(WINDOW, 0, ns=1000)
    window = bench.meter.poll()
    assert window
    assert window.share == 0.0
    assert not bench.meter.measured


def test_a_kernel_that_times_no_programs(bench: Bench) -> None:
    bench.times.refused = PermissionError(1, "Operation not permitted")
    bench.meter.begin()
    assert bench.meter.poll() is None
    assert bench.meter.problem == "the kernel does not time the probes (Operation not permitted)"
    bench.pass_time(9, 1)
    assert bench.meter.poll() is None
    bench.meter.finish()
    assert not bench.meter.measured


def test_clocks_of_cores() -> None:
    now = metering.time.monotonic_ns()
    cores = [struct.pack("<QQ", 0, 5), struct.pack("<QQ", now - SECOND, 7), struct.pack("<QQ", now + SECOND, 1)]
    loaded: Any = SimpleNamespace(programs={}, find_map=lambda _: SimpleNamespace(percpu=lambda _: cores))
    clocks = Meter(loaded, lambda: (os.getpid(), 1 << 22), lambda: 0)._clocks()
    assert SECOND + 13 <= clocks.traced < 30 * SECOND
    assert clocks.own > 0
    assert clocks.idle > 0
