from __future__ import annotations

import numpy as np
import pytest
from stallscope.converters.collectives.meetings import OPEN, Calls, Fit, Member, compared, lateness, meetings

MS = 1_000_000
PERIOD = 10 * MS


def fit(one: Calls, other: Calls) -> bool:
    return compared(one, other) is Fit.ONE_WAY


def rank(
    number: int, *, late: int = 0, skip: int = 0, calls: int = 20, what: list[int] | None = None, done: bool = True
) -> Calls:
    """Calls every 10 ms, each ``late``, of a rank whose first ``skip`` ones were before the trace."""
    begin = np.arange(skip, calls, dtype=np.int64) * PERIOD
    began = begin + late
    told = np.array(what if what is not None else [1 + i % 3 for i in range(calls)], np.int64)[skip:calls]
    ends = np.where(done, begin + 9 * MS, OPEN)
    return Calls(Member(100 + number, 0x1000), began, began + MS, told, ends, np.ones(len(told), bool))


def test_calls_are_joined_by_their_order() -> None:
    found = meetings([rank(0), rank(1, late=3 * MS), rank(2, late=MS)], from_start=True)
    assert found.began.shape == (20, 3)
    assert not found.differs.any()
    assert (found.spread() == 3 * MS).all()
    assert (found.last() == 1).all()


@pytest.mark.parametrize("skip", [0, 1, 5])
def test_a_trace_that_begins_later(skip: int) -> None:
    """One rank is some calls ahead: the operations, and the times, say how many."""
    found = meetings([rank(0), rank(1, late=3 * MS, skip=skip)], from_start=False)
    assert not found.differs.any()
    assert (found.spread()[skip:] == 3 * MS).all()
    assert (found.spread()[:skip] == OPEN).all()


@pytest.mark.parametrize("late", [0, 3 * MS, 8 * MS])
def test_ranks_that_do_always_the_same_are_joined_by_what_was_done(late: int) -> None:
    """One that is late by most of a step is closer to the next calls of the others."""
    same = [1] * 20
    found = meetings([rank(0, what=same), rank(1, late=late, skip=4, what=same)], from_start=False)
    assert (found.spread()[4:] == late).all()


def test_times_alone_do_not_join() -> None:
    same = [1] * 20
    assert fit(rank(0, what=same), rank(1, what=same, skip=4))
    assert not fit(rank(0, what=same, done=False), rank(1, what=same, skip=4, done=False))
    assert fit(rank(0, done=False, calls=6), rank(1, skip=1, done=False, calls=6)), "only one order of operations fits"


def test_the_root_of_a_broadcast_need_not_wait() -> None:
    """A broadcast is done before the other one begins it."""
    root, other = rank(0), rank(1, late=5 * MS)
    root.done[::3] = root.began[::3] + 1000
    assert not fit(root, other)
    root.for_all[::3] = other.for_all[::3] = False
    assert fit(root, other) and fit(other, root)
    root.done[1] = root.began[1] + 1000
    assert not fit(root, other)


def test_other_operations_do_not_fit_unless_they_are_never_done() -> None:
    other = [1 + i % 3 for i in range(20)]
    other[19] = 9
    assert not fit(rank(0), rank(1, what=other))
    hanging = rank(1, what=other)
    hanging.done[19] = OPEN
    assert fit(rank(0), hanging)
    assert not fit(rank(0), rank(1, what=[7] * 20))
    assert not fit(rank(0, calls=3), rank(1, calls=3)), "too few calls"


def test_a_rank_that_never_comes_and_one_that_calls_something_else() -> None:
    other = [1 + i % 3 for i in range(20)]
    other[12] = 9
    found = meetings([rank(0), rank(1, calls=15), rank(2, what=other)], from_start=True)
    assert (found.began[15:, 1] == OPEN).all()
    assert found.differs.nonzero()[0].tolist() == [12]
    assert (found.last()[15:] == OPEN).all()


def test_lateness_does_not_move_with_one_straggler() -> None:
    found = lateness(meetings([rank(0), rank(1, late=8 * MS), rank(2), rank(3, late=MS // 10)], from_start=True))
    assert found.last.tolist() == [0, 20, 0, 0]
    assert found.number == 20
    assert found.median[1] == pytest.approx(8 * MS - MS / 20)
    assert found.deviation < MS


def test_ranks_that_take_turns() -> None:
    calls = [rank(number) for number in range(4)]
    for number, each in enumerate(calls):
        each.began[number::4] += 8 * MS
    found = lateness(meetings(calls, from_start=True))
    assert found.last.tolist() == [5, 5, 5, 5]
    assert (found.median == 0).all(), "nobody is late in most of them"


def test_no_meeting() -> None:
    found = lateness(meetings([rank(0, calls=0), rank(1, calls=3)], from_start=True))
    assert (found.number, found.median.tolist()) == (0, [0.0, 0.0])
