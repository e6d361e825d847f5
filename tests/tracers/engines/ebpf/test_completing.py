"""Cut stacks and the complete ones that they belong to."""

from __future__ import annotations

import pytest
from stallscope.tracers.engines.ebpf.completing import complete
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import ENDS, Origin

STACKS = {1: (10, 20, 30, 40), 2: (10, 20, 31, 41), 3: (10, 20), 4: (10, 20, 30), 5: (11,)}
NO_TABLE = ENDS.index("no unwind table")


def row(ustack: int, ns: int = 5, *, tid: int = 7, kstack: int = 100, life: int = 0, is_open: bool = False) -> Row:
    return Row(Origin(ustack, kstack, 0, tid, 7, life or tid, 1), "interruptible", (ns, 1), is_open)


def ids(rows: list[Row]) -> list[int]:
    return [each.origin.ustack for each in rows]


def test_the_only_one_is_taken() -> None:
    found = complete([row(1), row(4, 9), row(4, 3, is_open=True)], STACKS, {4: NO_TABLE})
    assert ids(found) == [1, 1, 1]
    assert [each.values for each in found] == [(5, 1), (9, 1), (3, 1)]
    assert found[2].is_open


def test_waits_of_a_timeline_have_no_values() -> None:
    wait = row(4)._replace(values=())
    assert ids(complete([row(1), wait], STACKS, {4: NO_TABLE})) == [1, 1]


def test_of_two_none_is_taken() -> None:
    found = complete([row(1), row(2), row(3)], STACKS, {3: NO_TABLE})
    assert ids(found) == [1, 2, 3]


def test_the_frames_decide() -> None:
    assert ids(complete([row(1), row(5)], STACKS, {5: NO_TABLE})) == [1, 5]


@pytest.mark.parametrize("other", [{"tid": 8}, {"kstack": 101}, {"life": 1}])
def test_others_do_not_count(other: dict[str, int]) -> None:
    assert ids(complete([row(1, **other), row(4)], STACKS, {4: NO_TABLE})) == [1, 4]


@pytest.mark.parametrize("end", ENDS[1:])
def test_only_a_table_that_was_late_counts(end: str) -> None:
    """A walk that ends for another reason ends there each time."""
    late = end == "no unwind table"
    assert ids(complete([row(1), row(4)], STACKS, {4: ENDS.index(end)})) == [1, 1 if late else 4]


def test_a_cut_stack_completes_nothing() -> None:
    assert ids(complete([row(1), row(3)], STACKS, {1: NO_TABLE, 3: NO_TABLE})) == [1, 3]


def test_what_was_lost_stays() -> None:
    assert ids(complete([row(1), row(99), row(0)], STACKS, {99: NO_TABLE})) == [1, 99, 0]


def test_work_grows_with_the_rows_and_not_with_their_pairs() -> None:
    looked_up = 0

    class Stacks(dict[int, tuple[int, ...]]):
        def __getitem__(self, key: int) -> tuple[int, ...]:
            nonlocal looked_up
            looked_up += 1
            return super().__getitem__(key)

    count = 500
    stacks = Stacks(
        {each: (each, 20, 30) for each in range(count)} | {count + each: (each, 20) for each in range(count)}
    )
    rows = [row(each) for each in range(2 * count)]
    found = complete(rows, stacks, {count + each: NO_TABLE for each in range(count)})
    assert ids(found) == [*range(count), *range(count)]
    assert looked_up < 10 * len(rows)
