"""Accounts of profiles that were merged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from file_lock_profiles import SEEN
from stallscope.converters.facts.accounts import with_one_account_each
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.facts.gil import gil_shares
from stallscope.converters.model import Profile, ThreadTimes
from stallscope.converters.model.file_locks import LockAsker
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.processes import CpuLimit, ProcessTimes
from stallscope.converters.readers.merging import merge
from summary_profiles import MS, SECOND, empty

QUOTA = CpuLimit("/job", 20_000, 100_000, periods=100, throttled_periods=50, throttled_ns=SECOND)


def thread(tid: int, **changed: int) -> ThreadTimes:
    made = ThreadTimes(7, "app", tid, "app", 2 * SECOND, SECOND, 400 * MS, {"interruptible": 600 * MS}, 3)
    return replace(made, **changed)


def recorded() -> Profile:
    waiters = [GilThread("app", 7, 300 * MS, 5)]
    holders = [GilThread("app", 8, 200 * MS, 4, ("f",)), GilThread("app", 8, 100 * MS, 1, ("g",))]
    return replace(
        empty(),
        duration_ns=2 * SECOND,
        start_ns=SECOND,
        threads=[thread(7), thread(8)],
        processes=[ProcessTimes(7, "app", (1, 2, 3), "0-3", (QUOTA,))],
        neighbours=[Neighbour("gzip", 5, SECOND)],
        gil=[GilTimes("app", 7, 300 * MS, 5, 90 * MS, 1, 10 * MS, waiters, 0, holders)],
    )


def test_two_halves_are_as_the_whole() -> None:
    one = recorded()
    other = replace(one, start_ns=3 * SECOND)
    made = with_one_account_each(merge([one, other]))
    (found,), (alone,) = contention_of(made), contention_of(one)
    assert (found.threads, found.pids, found.cpus) == (alone.threads, alone.pids, alone.cpus)
    assert (found.span, found.wall, found.on_cpu, found.switches) == (4 * SECOND, 8 * SECOND, 4 * SECOND, 12)
    assert (found.wanted, found.latencies) == (alone.wanted, (2, 4, 6))
    assert found.limits == (replace(QUOTA, periods=200, throttled_periods=100, throttled_ns=2 * SECOND),)
    assert made.threads[0].blocked == {"interruptible": 1200 * MS}
    assert made.neighbours == [Neighbour("gzip", 5, 2 * SECOND)]
    (gil,) = gil_shares(made.gil, made.threads)
    assert (gil.threads, gil.wall, gil.main) == (2, 8 * SECOND, 4 * SECOND)
    assert (gil.gil.time, gil.gil.waits, gil.gil.max, gil.gil.open_count, gil.gil.unknown) == (
        *(600 * MS, 10, 90 * MS),
        *(2, 20 * MS),
    )
    assert gil.gil.waiters == [GilThread("app", 7, 600 * MS, 10)]
    assert [(each.frames, each.time) for each in gil.gil.holders] == [(("f",), 400 * MS), (("g",), 200 * MS)]


def test_what_each_has_alone_stays() -> None:
    one = recorded()
    assert with_one_account_each(one) == one
    other = replace(one, threads=[thread(9)], processes=[ProcessTimes(7, "app")], gil=[])
    made = with_one_account_each(merge([one, other]))
    assert [times.tid for times in made.threads] == [7, 8, 9]
    assert [(process.latencies, process.limits) for process in made.processes] == [((1, 2, 3), ())]
    assert made.gil == one.gil


def test_a_thread_id_that_was_used_twice_has_two_accounts() -> None:
    """A thread of the first half that goes on is one in the second half."""
    made = replace(
        recorded(),
        threads=[
            *(replace(thread(8), exited=True), replace(thread(8), creator=7)),
            *(replace(thread(9), creator=7), replace(thread(9), exited=True), replace(thread(9), creator=-1)),
            *(thread(3 << 32, count=3), thread(3 << 32, count=2)),
        ],
    )
    found = with_one_account_each(made).threads
    assert [(times.tid, times.creator, times.exited, times.wall // SECOND) for times in found] == [
        *((8, 0, True, 2), (8, 7, False, 2)),
        *((9, 7, True, 4), (9, -1, False, 2)),
        *[(3 << 32, 0, False, 2)] * 2,
    ]


def test_where_a_thread_was_created_is_known_of_the_whole_account() -> None:
    first, second = replace(thread(9), creator=7, made_in=("main", "start_pool")), thread(9)
    (times,) = with_one_account_each(replace(recorded(), threads=[first, second])).threads
    assert times.made_in == ("main", "start_pool")


def test_looks_at_locks_on_files_are_added_up() -> None:
    one = replace(SEEN, seen=3, looks=4, requests=5, askers=[LockAsker(1, 2), LockAsker(2, 3, 1, 9)])
    two = replace(SEEN, seen=5, looks=5, requests=4, askers=[LockAsker(2, 4, 2, 5)])
    other = replace(SEEN, owner_pid=8)
    profile = with_one_account_each(Profile([], file_locks=[one, other, two]))
    assert [(each.owner_pid, each.seen, each.looks) for each in profile.file_locks] == [(9, 8, 9), (8, 10, 10)]
    assert profile.file_locks[0].requests == 9
    assert profile.file_locks[0].askers == [LockAsker(1, 2), LockAsker(2, 7, 3, 14)]


@pytest.mark.parametrize(
    ("waits", "requests"),
    [
        ([(9, 100), (8, 100)], 100),  # of one capture
        ([(9, 100), (8, 300)], 400),
        ([(9, 100), (9, 300), (8, 300)], 400),
        ([(9, 100), (8, 100), (9, 300), (8, 300)], 400),
        ([(9, 100), (8, 100), (9, 100), (8, 100)], 200),
        ([(9, 100), (9, 100), (9, 100)], 300),
    ],
)
def test_requests_are_added_up_once_for_each_capture_whoever_had_the_lock(
    waits: list[tuple[int, int]], requests: int
) -> None:
    """Owners of the lock, and the requests that are told with them: those of another file are others."""
    locks = [replace(SEEN, owner_pid=owner, requests=n, askers=[LockAsker(1, n)]) for owner, n in waits]
    other = replace(SEEN, inode=98, requests=7, askers=[LockAsker(1, 7)])
    *found, last = with_one_account_each(Profile([], file_locks=[*locks, other])).file_locks
    assert {each.requests for each in found} == {requests}
    assert all(each.askers == [LockAsker(1, requests)] for each in found)
    assert (last.inode, last.requests) == (98, 7)
