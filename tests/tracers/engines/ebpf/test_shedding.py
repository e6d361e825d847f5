from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.model.remarks import Shed
from stallscope.tracers.engines.ebpf.measures.probed import Probe
from stallscope.tracers.engines.ebpf.metering import Window
from stallscope.tracers.engines.ebpf.shedding import _KEPT, Shedder, cost_parts, still_out
from stallscope.tracers.kernel.records import STACK_SHED

SECOND = 1_000_000_000
AT = 3 * SECOND


class Samples:
    """The collector of samples."""

    name, frequency, weight = "oncpu", 99, 1

    def halve(self) -> None:
        self.weight *= 2


class Calls:
    """The collector of calls, and what it knows of functions that leave."""

    name, slot = "calls", 0

    def __init__(self, **counts: int) -> None:
        self.gone: set[int] = set()
        names = list(counts)
        self.probed: Any = SimpleNamespace(
            functions=[Probe(name, "/lib", is_fast="slow" not in name) for name in names], keeps=False
        )
        self.leaving = self
        self._counts = Counter({names.index(name): number for name, number in counts.items()})

    def counts(self, slot: int) -> Counter[int]:
        return self._counts if slot == self.slot else Counter()

    def is_needed(self, function: int) -> bool:
        return str(self.probed.functions[function].name).startswith("asked_for")

    def leave(self, _: object, functions: Collection[int]) -> None:
        self.gone |= set(functions)


class Loaded:
    """The object of the programs."""

    def __init__(self) -> None:
        self.shed = self.storm_gap = 0

    def set_variable(self, name: str, value: int) -> None:
        assert name in ("shed", "storm_gap")
        setattr(self, name, value)


def test_numbers_are_those_of_the_programs() -> None:
    headers = Path(__file__).parents[4] / "bpf" / "include"
    assert f"#define STORM_KEPT {_KEPT}\n" in (headers / "maps.bpf.h").read_text()
    assert f"#define STACK_SHED {STACK_SHED}\n" in (headers / "records.h").read_text()


def window(**parts: float) -> Window:
    """A window of a second, with the parts' shares."""
    return Window(SECOND, {name: round(share * SECOND) for name, share in parts.items()})


def shedder(budget: float, *collectors: object) -> tuple[Shedder, Loaded]:
    loaded = Loaded()
    given: Any = loaded
    return Shedder(budget, given, list(collectors)), loaded  # type: ignore[arg-type]


def whats(of: Shedder) -> list[str]:
    return [each.what for each in of.done]


def test_nothing_goes_within_the_budget() -> None:
    of, loaded = shedder(0.05, samples := Samples())
    for _ in range(9):
        of.judge(window(samples=0.02, waits=0.03), AT)
    assert (of.done, loaded.shed, samples.weight) == ([], 0, 1)


@pytest.mark.parametrize(
    ("shares", "leaves"),
    [
        ((0.5, 0.01, 0.01, 0.05, 0.0, 0.5), False),
        ((0.0, 0.0, 0.0, 0.12, 0.12), False),
        ((0.0, 0.0, 0.0, 0.13, 0.13), True),
        ((0.5, 0.0, 0.5), True),
        ((0.051, 0.051), True),
    ],
)
def test_two_of_five_windows_are_above_the_budget_and_all_of_them_together(
    shares: Sequence[float], leaves: bool
) -> None:
    """One alone decides nothing."""
    of, loaded = shedder(0.05, Samples())
    for share in shares:
        of.judge(window(wakers=share), AT)
    assert bool(of.done) is bool(loaded.shed) is leaves


def test_the_beginning_does_not_count() -> None:
    of, _ = shedder(0.05)
    for _ in range(2):
        of.judge(window(wakers=0.5), 149_000_000)
    assert of.done == []
    for _ in range(2):
        of.judge(window(wakers=0.5), 150_000_000)
    assert of.done


def test_the_next_window_comes_soon_if_something_may_have_to_go() -> None:
    of, _ = shedder(0.05)
    pressing = []
    for share in (0.01, 0.5, 0.5, 0.5, 0.5, 0.01):
        of.judge(window(wakers=share), AT)
        pressing.append(of.is_pressing)
    assert pressing == [False, True, True, True, False, False], "not where nothing is left that could go"


def test_samples_go_first_and_become_no_rarer_than_needed() -> None:
    of, loaded = shedder(0.05, samples := Samples())
    for _ in range(2):
        of.judge(window(samples=0.08, wakers=0.01), AT)
    assert of.done == [Shed("samples", AT, 2, 99, (), 0)]
    assert (samples.weight, loaded.shed) == (2, 0)


def test_samples_stay_at_an_eighth() -> None:
    of, _ = shedder(0.01, samples := Samples())
    for _ in range(20):
        of.judge(window(samples=0.9), AT)
    assert samples.weight == 8
    assert whats(of) == ["samples"]


def test_of_the_functions_those_that_cost_most_leave() -> None:
    calls = Calls(often=1_000_000, seldom=10, now_and_then=10_000)
    of, _ = shedder(0.05, calls)
    assert calls.probed.keeps
    for _ in range(2):
        of.judge(window(calls=0.5, waits=0.01), 2 * SECOND)
    assert calls.gone == {0}
    assert of.done == [Shed("calls", 2 * SECOND, 0, 0, (("often", 500_000),), 0)]
    for _ in range(2):
        of.judge(window(calls=0.4), AT)
    assert calls.gone == {0, 2}, "it does not leave a second time"
    assert whats(of) == ["calls", "calls"]


@pytest.mark.parametrize(("often", "gone"), [(500_000, {1}), (10_000, set())])
def test_functions_that_the_user_asked_for_stay(often: int, gone: set[int]) -> None:
    """Others leave if that saves enough of what all of them cost."""
    calls = Calls(asked_for=1_000_000, often=often)
    of, _ = shedder(0.05, calls)
    for _ in range(4):
        of.judge(window(calls=0.5), AT)
    assert calls.gone == gone


def test_a_function_at_which_the_kernel_steps_costs_more() -> None:
    calls = Calls(fast=100_000, slow=50_000)
    of, _ = shedder(0.2, calls)
    for _ in range(2):
        of.judge(window(calls=0.5), AT)
    assert calls.gone == {1}


def test_measures_leave_in_order_and_once() -> None:
    of, loaded = shedder(0.01, Samples(), Calls(one=5))
    shed = []
    for _ in range(8):
        of.judge(window(wakers=0.02, locks=0.02, ioctls=0.02), AT)
        shed.append(loaded.shed)
    assert shed == [0, 15, 15, 15, 15, 15, 15, 15]
    assert whats(of) == ["waker stacks", "wakers", "locks", "ioctls"]


def test_no_more_leaves_than_the_budget_needs() -> None:
    of, loaded = shedder(0.05)
    for _ in range(2):
        of.judge(window(wakers=0.06, locks=0.01, ioctls=0.01), AT)
    assert whats(of) == ["waker stacks"], "3.6 % of 8 %"
    assert loaded.shed == 1


def test_what_would_save_little_stays() -> None:
    of, loaded = shedder(0.05, samples := Samples())
    for _ in range(9):
        of.judge(window(waits=0.07, others=0.5, samples=0.01, wakers=0.02, locks=0.001), AT)
    assert (of.done, loaded.shed, loaded.storm_gap, samples.weight) == ([], 0, 0, 1)


def test_in_a_storm_of_switches_waits_lose_their_stacks_in_two_steps() -> None:
    """First those of threads that wait all the time, then, after all else, of all threads."""
    of, loaded = shedder(0.05)
    gaps = []
    for share in (0.07, 0.07, 0.07, 0.07, 0.07, 0.07):
        of.judge(window(waits=share), AT)
        gaps.append(loaded.storm_gap)
    assert gaps == [0, 1_000_000, 1_000_000, (1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1]
    assert of.done == [
        Shed("stacks", AT, 16, 0, (), 0, 1_000_000),
        Shed("stacks", AT, 16, 0, (), 0),
    ]


def test_the_stacks_of_a_storm_go_before_wakers_and_other_stacks_after_locks() -> None:
    of, loaded = shedder(0.01)
    for _ in range(2):
        of.judge(window(waits=0.04, wakers=0.02, locks=0.02), AT)
    assert whats(of) == ["stacks", "waker stacks", "wakers", "locks"]
    assert of.done[0].within == 0, "both steps at once"
    assert (loaded.shed, loaded.storm_gap) == (7, (1 << 64) - 1)


def test_an_interval_has_what_was_left_out_in_it_and_before() -> None:
    of, _ = shedder(0.05, Samples(), calls := Calls(often=1_000_000, seldom=2_000))
    for _ in range(2):
        of.judge(window(samples=0.06), SECOND)
    for _ in range(2):
        of.judge(window(samples=0.06), 2 * SECOND)
    assert of.cut(4 * SECOND) == [Shed("samples", SECOND, 2, 99, (), 0), Shed("samples", 2 * SECOND, 4, 99, (), 0)]
    calls.slot = 1
    for _ in range(2):
        of.judge(window(calls=0.5), 6 * SECOND)
    often = Shed("calls", 2 * SECOND, 0, 0, (("often", 500_000),), 0)
    assert of.cut(8 * SECOND) == [Shed("samples", 0, 4, 99, (), 0, 0, 2 * SECOND), often], "the rate is of its interval"
    for _ in range(2):
        of.judge(window(calls=0.5), 9 * SECOND)
    of.cut(10 * SECOND)
    both = (("often", 500_000), ("seldom", 2_000))
    assert of.cut(12 * SECOND) == [
        Shed("samples", 0, 4, 99, (), 0, 0, 8 * SECOND),
        Shed("calls", 0, 0, 0, both, 0, 0, SECOND),
    ]
    assert len(of.done) == 2, "of a trace of days, too"


def test_functions_that_left_before_are_not_all_named() -> None:
    many = [Shed("calls", at, 0, 0, tuple((f"f{at}.{number}", 1) for number in range(60)), 1) for at in range(3)]
    (shed,) = still_out(many, SECOND)
    assert (len(shed.functions), shed.more, shed.at) == (100, 83, 2)


def test_windows_without_a_running_thread_say_nothing() -> None:
    of, loaded = shedder(0.05)
    for _ in range(5):
        of.judge(Window(0, {"wakers": 5_000}), AT)
    assert (of.done, loaded.shed) == ([], 0)


@pytest.mark.parametrize(("cost", "leaves"), [(40, False), (60, True)])
def test_threads_that_hardly_run_lose_nothing_for_what_others_do(cost: int, leaves: bool) -> None:
    """The programs run at the events of the whole host: the budget is 5 % of one core at least."""
    of, loaded = shedder(0.05)
    for _ in range(2):
        of.judge(Window(SECOND // 1_000, {"wakers": cost * SECOND // 1_000}, SECOND), AT)
    assert bool(of.done) is bool(loaded.shed) is leaves


def test_many_functions_are_not_all_named() -> None:
    calls = Calls(**{f"f{number}": 1000 for number in range(16)})
    of, _ = shedder(0.0001, calls)
    for _ in range(2):
        of.judge(window(calls=0.9), SECOND)
    (shed,) = of.done
    assert len(shed.functions) + shed.more == 16


def test_parts_of_the_cost() -> None:
    assert cost_parts({"others": 9.0, "waits": 3.4, "calls": 5.0, "locks": 0.2}) == (
        ("calls", 5),
        ("waits", 3),
        ("others", 9),
    )
    assert cost_parts({}) == ()


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_the_budget_itself_is_allowed(share: float) -> None:
    of, loaded = shedder(0.05)
    for _ in range(3):
        of.judge(window(wakers=share), AT)
    assert loaded.shed == 0
