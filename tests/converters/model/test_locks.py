from __future__ import annotations

from collections.abc import Sequence

import pytest
from stallscope.converters.model.locks import (
    CONDITION,
    CONTENDED,
    FUTEX,
    KERNEL,
    PROCESS,
    SEMAPHORE,
    SIGNALLED,
    LockThread,
    LockTimes,
)


@pytest.mark.parametrize("kind", CONTENDED)
def test_waits_for_what_somebody_has_are_contention(kind: str) -> None:
    assert LockTimes("a", kind, PROCESS).is_contention is True


@pytest.mark.parametrize("kind", SIGNALLED)
def test_waits_to_be_told_are_not(kind: str) -> None:
    assert LockTimes("a", kind, PROCESS).is_contention is False


def test_what_is_not_known() -> None:
    assert LockTimes("a", FUTEX, PROCESS).is_contention is None
    assert LockTimes("a", "rwsem", KERNEL).is_contention is True


@pytest.mark.parametrize(
    ("waiters", "holders", "expected"),
    [
        (((1, 60), (2, 40)), ((1, 50), (2, 50)), True),
        (((1, 60), (2, 40)), ((1, 50), (2, 30), (9, 20)), True),
        (((1, 60), (2, 40)), ((1, 70), (9, 30)), False),
        (((1, 60), (2, 40)), ((9, 70), (2, 20), (1, 10)), True),  # one has it most of the time, and never waits
        (((1, 40), (2, 30), (3, 30)), ((9, 70), (2, 20), (1, 10)), True),  # the last one gives it back to nobody
        (((1, 30), (2, 30), (3, 30), (4, 10)), ((9, 70), (2, 20), (1, 10)), False),
        (((1, 60), (2, 40)), ((9, 70), (1, 30)), False),  # one of those who are told something tells another one
        (((1, 100),), ((1, 100),), False),  # nobody to have it against
        (((1, 60), (2, 40)), ((1, 5),), False),  # of most waits it is not known
        (((1, 60), (2, 40)), (), False),
    ],
)
def test_a_semaphore_that_is_used_as_a_lock(
    waiters: Sequence[tuple[int, int]], holders: Sequence[tuple[int, int]], expected: bool
) -> None:
    lists = [[LockThread("p", "t", 7, tid, time) for tid, time in each] for each in (waiters, holders)]
    made = LockTimes("x", SEMAPHORE, PROCESS, time=100, waiters=lists[0], holders=lists[1])
    assert made.is_lock_like == expected
    assert made.is_contention == expected
    made.kind = CONDITION
    assert made.is_contention is False


def test_waiters_that_are_not_kept_may_be_told_by_others() -> None:
    """Threads that are known have to end most of the time then."""
    waiters, holders = [
        [LockThread("p", "t", 7, tid, time) for tid, time in each]
        for each in (
            ((1, 60), (2, 40)),
            ((9, 70), (2, 20), (1, 10)),
        )
    ]
    made = LockTimes("x", SEMAPHORE, PROCESS, time=100, waiters=waiters, holders=holders)
    assert made.is_lock_like
    made.more_waiters = 1
    assert not made.is_lock_like
