from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.model.remarks import Shed
from stallscope.tracers.engines.ebpf.measures.probed import Probe
from stallscope.tracers.engines.ebpf.metering import Window
from stallscope.tracers.engines.ebpf.shedding import Shedder, cost_parts

SECOND = 1_000_000_000
AT = 3 * SECOND


class Samples:
    """The collector of samples."""

    name, frequency, weight = "oncpu", 99, 1

    def halve(self) -> None:
        self.weight *= 2


class Calls:
    """The collector of calls, and what it knows of functions that leave."""

    name = "calls"

    def __init__(self, **counts: int) -> None:
        self.gone: set[int] = set()
        names = list(counts)
        self.probed: Any = SimpleNamespace(
            functions=[Probe(name, "/lib", is_fast="slow" not in name) for name in names], keeps=False
        )
        self.leaving = self
        self._counts = Counter({names.index(name): number for name, number in counts.items()})

    def counts(self) -> Counter[int]:
        return self._counts

    def leave(self, _: object, functions: Collection[int]) -> None:
        self.gone |= set(functions)


class Loaded:
    """The object of the programs."""

    def __init__(self) -> None:
        self.shed = 0

    def set_variable(self, name: str, value: int) -> None:
        assert name == "shed"
        self.shed = value


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


def test_one_window_alone_decides_nothing() -> None:
    of, loaded = shedder(0.05, Samples())
    for share in (0.5, 0.01, 0.5, 0.05, 0.5):
        of.judge(window(wakers=share), AT)
    assert (of.done, loaded.shed) == ([], 0)
    of.judge(window(wakers=0.5), AT)
    assert loaded.shed


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
        of.judge(window(waits=0.5, samples=0.01, wakers=0.02, locks=0.001), AT)
    assert (of.done, loaded.shed, samples.weight) == ([], 0, 1)


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
