from __future__ import annotations

from typing import Any

import pytest
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Frame, Stack, ThreadTimes
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.scan.slicing import Lived, Waited, slices_of
from summary_profiles import EXE, READ, SLEEP, TOPK, kernel, user
from verdict_profiles import FSYNC


def lived(times: list[int], *waits: Waited, tid: int = 1, on_cpu: int = 0, **more: Any) -> Lived:
    account = ThreadTimes(1, "app", tid, "t", sum(times), on_cpu, 0, {}, **more)
    return Lived(account, times, list(waits))


def waited(stack: Stack, *times: int, state: str = "interruptible", on: int = 0) -> Waited:
    return Waited(state, stack, on, times)


def times_of(made: ThreadSlices) -> dict[str, tuple[int, ...]]:
    return {each.kind: each.times for each in made.spent}


def test_kinds_and_places() -> None:
    thread = lived(
        [10, 10, 10],
        waited(READ, 6, 0, 0, on=5),
        waited(FSYNC, 0, 10, 0, state="uninterruptible", on=7),
        waited((), 1, 0, 0, state="runnable-woken"),
        on_cpu=13,
    )
    (made,) = slices_of([thread], 10)
    assert (made.process, made.thread, made.pid, made.tid, made.length, made.first) == ("app", "t", 1, 1, 10, 0)
    assert made.spent[0] == SliceSpent("cpu", (3, 0, 10))
    assert made.spent[1] == SliceSpent("io", (0, 10, 0), ("main", "save", "fsync"), "folio_wait_bit", 7)
    assert made.spent[2] == SliceSpent("peer", (6, 0, 0), ("main", "fetch", "read"), "pipe_read", 5)
    assert made.spent[3] == SliceSpent("cores", (1, 0, 0))


def test_each_slice_adds_up_to_the_time_lived() -> None:
    threads = [
        lived([7, 10, 4], waited(TOPK, 3, 9, 0, state="uninterruptible"), waited(SLEEP, 0, 0, 4), tid=tid, on_cpu=5)
        for tid in range(1, 5)
    ]
    for made in slices_of(threads, 10):
        assert [sum(times) for times in zip(*times_of(made).values(), strict=True)] == [7, 10, 4]


def test_a_thread_has_slices_where_it_lived() -> None:
    (made,) = slices_of([lived([0, 0, 5, 3, 0], on_cpu=8)], 10)
    assert (made.first, times_of(made)) == (2, {"cpu": (5, 3)})
    assert slices_of([lived([0, 0])], 10) == []


def test_lost_time_is_unclear() -> None:
    """The account says that it ran for 4 ns of the 20 for which no wait is known."""
    (made,) = slices_of([lived([10, 10], on_cpu=4)], 10)
    assert times_of(made) == {"unclear": (8, 8), "cpu": (2, 2)}


def test_an_unknown_stack_is_unclear() -> None:
    lost = (Frame("[stack lost]", "other"),)
    (made,) = slices_of([lived([10], waited(lost, 10, state="uninterruptible"))], 10)
    assert made.spent[0].kind == "unclear"


def test_objects_that_most_of_the_time_is_on() -> None:
    one, other = waited(READ, 9, on=5), waited(READ, 1, on=6)
    assert slices_of([lived([10], one, other)], 10)[0].spent[0].object == 5
    assert slices_of([lived([18], one, one._replace(object=6))], 18)[0].spent[0].object == 0


@pytest.mark.parametrize("number", [thresholds.SLICE_PLACES, thresholds.SLICE_PLACES + 1])
def test_places_of_a_process(number: int) -> None:
    stacks = [
        (*user(EXE, "main", f"load_{chr(97 + i)}"), *kernel("ksys_read", "folio_wait_bit")) for i in range(number)
    ]
    waits = [waited(stack, 10 + i, state="uninterruptible") for i, stack in enumerate(stacks)]
    (made,) = slices_of([lived([sum(wait.times[0] for wait in waits)], *waits)], 1000)
    told = [each for each in made.spent if each.frames]
    assert len(told) == thresholds.SLICE_PLACES
    assert sum(each.times[0] for each in made.spent) == sum(wait.times[0] for wait in waits)
    assert (len(made.spent) > len(told)) == (number > thresholds.SLICE_PLACES)


def test_of_too_many_threads_those_that_did_least_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "SLICE_THREADS", 2)
    threads = [
        lived([10, 10], waited(SLEEP, 10 - tid, 10 - tid), tid=tid, on_cpu=2 * tid, pid_life=3) for tid in (1, 2, 3, 4)
    ]
    found = {each.tid: each for each in slices_of(threads, 10)}
    assert set(found) == {0, 3, 4}
    assert found[0].pid_life == 3
    assert times_of(found[0]) == {"sleep": (17, 17), "cpu": (3, 3)}
