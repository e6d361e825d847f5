from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from captures import key
from stallscope.tracers.engines.ebpf.measures import slices as module
from stallscope.tracers.engines.ebpf.measures.slices import Open, SlicedWaits, Slices, overlap, plain
from stallscope.tracers.engines.ebpf.measures.totals import Moved
from stallscope.tracers.kernel.records import (
    NEW,
    ORIGIN,
    PREEMPTED,
    SLICE_DOUBLED_SHIFT,
    SLICE_SHIFT,
    STATES,
    WAIT_SUM,
    Origin,
    WaitSum,
)

SLEEP = STATES.index("interruptible")


class Loaded:
    """Stands for the programs: knows what they are told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def set_variable(self, name: str, value: int) -> None:
        self.told.append((name, value))


def opened(length: int = 10) -> tuple[SlicedWaits, Any]:
    made, loaded = SlicedWaits(length), Loaded()
    made.open(loaded)  # type: ignore[arg-type]
    return made, loaded


def within(place: int, doubled: int = 0, state: int = SLEEP, **more: int) -> Origin:
    """Key of a sum of waits in a slice."""
    return key(state | doubled << SLICE_DOUBLED_SHIFT | place << SLICE_SHIFT, **more)


def add(to: SlicedWaits, *rows: tuple[Origin, int, int]) -> list[Origin]:
    keys = b"".join(ORIGIN.pack(*origin) for origin, _, _ in rows)
    sums = b"".join(WAIT_SUM.pack(1, blocked, 0, 0, runnable, 0, 0) for _, blocked, runnable in rows)
    found, same = to.split(keys, sums)
    assert same == sums
    return [Origin(*each) for each in ORIGIN.iter_unpack(found)]


def times(found: Slices) -> dict[str, list[int]]:
    return {state: of for (_, state), of in found.waits.items()}


def test_rows_are_divided_and_become_plain() -> None:
    made, _ = opened()
    plain_rows = add(made, (within(0, user=5), 7, 1), (within(2, user=5), 3, 0), (within(2, state=PREEMPTED), 0, 4))
    assert plain_rows == [key(SLEEP, user=5), key(SLEEP, user=5), key(PREEMPTED)]
    found = made.take(100, 130, [], [])
    assert (found.length, found.number) == (10, 3)
    assert found.waits == {
        (key(SLEEP, user=5), "interruptible"): [7, 0, 3],
        (key(SLEEP, user=5), "runnable-woken"): [1, 0, 0],
        (key(PREEMPTED), "runnable-preempted"): [0, 0, 4],
    }


def test_nothing() -> None:
    made, _ = opened()
    assert made.split(b"", b"") == (b"", b"")
    assert made.take(100, 125, [], []) == Slices(10, 3, {}, {})


def test_sums_that_were_not_in_a_table() -> None:
    made, _ = opened()
    found = made.take(100, 120, [(within(1), WaitSum(1, 6, 6, 6, 2, 2, 2))], [])
    assert times(found) == {"interruptible": [0, 6], "runnable-woken": [0, 2]}


def test_a_wait_that_had_not_ended_is_cut_where_slices_end() -> None:
    made, _ = opened()
    found = made.take(100, 130, [], [Open(key(SLEEP), 105, 124, 130)])
    assert times(found) == {"interruptible": [5, 10, 4], "runnable-woken": [0, 0, 6]}
    found = made.take(100, 130, [], [Open(key(NEW), 108, 108, 130)])
    assert times(found) == {"runnable-woken": [2, 10, 10]}


def test_slices_become_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    made, loaded = opened()
    now = 1_000
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: now))
    made.poll()
    add(made, (within(0), 1, 0), (within(1), 2, 0), (within(19), 4, 0))
    now += 10 * module.MOST - 1
    made.poll()
    assert made.doubled == 0
    now += 1
    made.poll()
    assert (made.doubled, loaded.told[-1]) == (1, ("slice_doubled", 1))
    # A program that had not seen it yet, and one that had.
    add(made, (within(20), 8, 0), (within(10, doubled=1), 16, 0))
    found = made.take(1_000, 1_220, [(within(10, doubled=1), WaitSum(1, 32, 0, 0, 0, 0, 0))], [])
    assert (found.length, found.number) == (20, 11)
    assert times(found)["interruptible"] == [3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 56]


def test_a_slice_after_the_end_is_the_last_one() -> None:
    made, _ = opened()
    add(made, (within(9), 5, 0))
    assert times(made.take(100, 120, [], []))["interruptible"] == [0, 5]


def test_rows_get_other_ids() -> None:
    made, _ = opened()
    add(made, (within(1, life=3, user=5), 5, 0), (within(1, life=4, user=6), 6, 0))
    made.move(Moved.of({3: (7 << 32, 9, False), 4: (7 << 32, 9, True)}))
    found = {origin: of for (origin, _), of in made.take(100, 120, [], []).waits.items()}
    assert found[key(SLEEP, user=5, tid=0, life=9)] == [0, 5]
    assert found[key(SLEEP, user=2, tid=0, life=9)] == [0, 6]


def test_threads_that_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = opened()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: 1_000))
    made.poll()
    made.ended(5, np.array([[1_000, 1_015], [1_012, 1_031]], np.uint64), 1_000)
    made.ended(6, np.array([[1_000, 1_002]], np.uint64), 1_000)
    made.joined(6, 5)
    made.joined(8, 5)
    assert made.take(1_000, 1_040, [], []).lived == {5: [12, 13, 10, 1]}


def test_times_of_sums_become_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = opened()
    now = 1_000
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: now))
    made.poll()
    made.ended(5, np.array([[1_000, 1_035]], np.uint64), 1_000)
    now += 10 * module.MOST
    made.poll()
    made.ended(5, np.array([[1_030, 1_050]], np.uint64), 1_000)
    assert made.take(1_000, 1_060, [], []).lived == {5: [20, 25, 10]}


def test_too_many_rows_lose_their_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 4)
    made, _ = opened()
    add(made, *((within(i % 2, user=2 * i + 5), 10 + i, 0) for i in range(8)))
    found = made.take(100, 120, [], [])
    assert sum(sum(of) for of in found.waits.values()) == sum(range(10, 18))
    assert len({origin.ustack for origin, _ in found.waits}) < 8


def test_memory_is_counted() -> None:
    made, _ = opened()
    assert made.held == 0
    add(made, (within(1), 5, 0))
    assert made.held > 0


def test_overlap() -> None:
    assert overlap(5, 25, 10, 3) == [5, 10, 5]
    assert overlap(-5, 5, 10, 2) == [5, 0]
    assert overlap(15, 45, 10, 3) == [0, 5, 25]
    assert overlap(7, 7, 10, 2) == [0, 0]


def test_plain_origins() -> None:
    assert plain(within(3, doubled=2)) == plain(key(SLEEP)) == key(SLEEP)
