from __future__ import annotations

from dataclasses import replace

import pytest
from file_lock_profiles import SEEN
from stallscope.converters.facts.accounts import with_one_account_each
from stallscope.converters.facts.wait_kinds import LOCK, PEER
from stallscope.converters.facts.wait_kinds import SLEEP as SLEEPS
from stallscope.converters.model import Profile, Stack
from stallscope.converters.model.file_locks import FileLock, LockAsker
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.held_up import find
from summary_profiles import EXE, READ, SECOND, SLEEP, Tracee, empty, facts_of, kernel, user


def asking(*locks: FileLock, stack: Stack = SLEEP, waits: int = 100) -> Profile:
    """A process that waits so many times in one place, and what is known of locks."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(stack, "interruptible", 10 * SECOND, waits)
    profile.file_locks = list(locks)
    return profile


def kind(profile: Profile) -> str:
    ((place, _),) = facts_of(profile).waits_of((1, 1)).items()
    return place.kind


def refused(requests: int, *, pid: int = 1, owner: int = 9, inode: int = 99) -> FileLock:
    return replace(SEEN, requests=requests, pid=pid, owner_pid=owner, inode=inode)


def test_who_sleeps_between_two_requests_waits_for_the_lock() -> None:
    profile = asking(refused(101))
    assert kind(profile) == LOCK
    facts = facts_of(profile)
    (verdict,) = find(facts)
    assert verdict.kind == "file-lock"
    said = Sentences(facts).of(verdict)
    place = "is blocked on the lock of a file in main → nap → clock_nanosleep (100 waits"
    assert said.startswith(f"100.0 % of the time of the main thread of app {place}")
    assert said.endswith("; gzip (pid 9, not traced) has the lock of /srv/db.lock all the time.")


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (asking(refused(50), refused(50, inode=98)), LOCK),  # for two files in turn
        (asking(refused(100), refused(100, owner=8)), LOCK),  # one file, whose lock two had
        (asking(refused(0)), SLEEPS),
        (asking(refused(50)), SLEEPS),  # it sleeps for something else, too
        (asking(refused(200)), SLEEPS),  # it does not sleep before it asks again
        (asking(refused(100, pid=2)), SLEEPS),
        (asking(refused(3), waits=3), SLEEPS),
        (asking(refused(100), stack=READ), PEER),
        (asking(), SLEEPS),
    ],
)
def test_others_sleep_for_something_else(profile: Profile, expected: str) -> None:
    assert kind(profile) == expected


def asked_by(*askers: tuple[int, int], inode: int = 99) -> FileLock:
    """Threads, and how often each was refused the lock."""
    made = [LockAsker(tid, requests) for tid, requests in askers]
    return replace(SEEN, requests=sum(requests for _, requests in askers), askers=made, inode=inode)


def threads(*locks: FileLock, sleeps: tuple[int, ...] = (100, 100)) -> list[str]:
    """Kinds of waits of a process's threads that sleep so many times, all in the same place."""
    profile = empty()
    for number, waits in enumerate(sleeps):
        Tracee(profile, 1, "app", 1 + number, "app").wait(SLEEP, "interruptible", 10 * SECOND, waits)
    profile.file_locks = list(locks)
    facts = facts_of(profile)
    return [place.kind for number in range(len(sleeps)) for place in facts.waits_of((1, 1 + number))]


def test_only_the_thread_that_asks_waits_for_the_lock() -> None:
    assert threads(asked_by((2, 100))) == [SLEEPS, LOCK]
    assert threads(asked_by((1, 100), (2, 100))) == [LOCK, LOCK]
    assert threads(asked_by((1, 60)), asked_by((1, 40), (2, 40), inode=98)) == [LOCK, SLEEPS]


def test_of_old_captures_the_only_thread_that_sleeps_as_often_has_asked() -> None:
    assert threads(refused(100)) == [SLEEPS, SLEEPS]
    assert threads(refused(100), sleeps=(100, 3, 200)) == [LOCK, SLEEPS, SLEEPS]


@pytest.mark.parametrize(("sleeps", "expected"), [(100, LOCK), (70, SLEEPS)])
def test_captures_between_which_the_lock_changed_hands(sleeps: int, expected: str) -> None:
    locks = [replace(asked_by((1, requests)), owner_pid=owner) for owner, requests in ((9, 30), (8, 70))]
    assert kind(with_one_account_each(asking(*locks, waits=sleeps))) == expected


@pytest.mark.parametrize(
    ("requests", "sleeps", "expected"), [(5, 6, LOCK), (4, 5, LOCK), (3, 4, SLEEPS), (4, 6, SLEEPS), (5, 9, SLEEPS)]
)
def test_a_thread_that_asks_once_a_second_waits_too(requests: int, sleeps: int, expected: str) -> None:
    assert threads(asked_by((1, requests)), sleeps=(sleeps,)) == [expected]


@pytest.mark.parametrize("work", [0, 9 * SECOND])
def test_a_thread_that_tries_once_in_each_period_of_its_own_looks_like_one_that_retries(work: int) -> None:
    """Sleeps of 100 ms, each after one request: whether it would have slept less with the lock, no fact shows. One
    that works between two requests may take locks, each after some retries."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(work).wait(SLEEP, "interruptible", SECOND, 10)
    profile.file_locks = [replace(SEEN, requests=10, askers=[LockAsker(1, 10, 9, work + SECOND)])]
    assert kind(profile) == LOCK


RETRY = (*user(EXE, "main", "retry"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))


@pytest.mark.parametrize(
    ("requests", "sleeps", "expected"),
    [
        (100, 100, []),
        (100, 110, []),
        (100, 200, ["retry"]),
        (100, 70, ["retry"]),
        (200, 200, ["nap"]),
        (200, 100, []),
    ],
)
def test_of_two_places_where_a_thread_sleeps_as_often_none_is_for_the_lock(
    requests: int, sleeps: int, expected: list[str]
) -> None:
    """Sleeps: 100 of 10 ms, and others of 90 ms in another function. Requests are 100 ms apart."""
    profile = asking(replace(SEEN, requests=requests, askers=[LockAsker(1, requests, 50, 5 * SECOND)]), waits=sleeps)
    Tracee(profile, 1, "app", 1, "app").wait(RETRY, "interruptible", SECOND, 100)
    places = facts_of(profile).waits_of((1, 1))
    assert [place.site.frames[1] for place in places if place.kind == LOCK] == expected


def test_of_old_captures_a_thread_that_sleeps_as_often_in_two_places_may_have_asked() -> None:
    profile = asking(refused(100))
    for stack in (SLEEP, RETRY):
        Tracee(profile, 1, "app", 2, "app").wait(stack, "interruptible", SECOND, 100)
    assert kind(profile) == SLEEPS


MS = 1_000_000


def at_times(requests: int, gap: int, *, gaps: int = 50, sleeps: int = 1000) -> Profile:
    """A thread that sleeps for 10 ms again and again, and was refused a lock so many times, so many ns apart."""
    profile = asking(replace(SEEN, requests=requests, askers=[LockAsker(1, requests, gaps, gaps * gap)]), waits=sleeps)
    assert profile.samples[0].values[0] == sleeps * 10 * MS
    return profile


def test_a_lock_that_others_have_for_a_part_of_the_time() -> None:
    places = facts_of(at_times(600, 10 * MS)).waits_of((1, 1))
    assert {place.kind: (total.time, total.count) for place, total in places.items()} == {
        LOCK: (6 * SECOND, 600),
        SLEEPS: (4 * SECOND, 400),
    }


@pytest.mark.parametrize(
    "profile",
    [
        at_times(600, 20 * MS),  # it asks before every other sleep
        at_times(600, 5 * MS),
        at_times(600, 10 * MS, gaps=9),
        at_times(400, 10 * MS),  # seldom
    ],
)
def test_a_thread_that_asks_at_times_sleeps_for_something_else(profile: Profile) -> None:
    assert kind(profile) == SLEEPS


def test_who_has_it_then_is_told() -> None:
    """Holders: one for the first 2 s, and one from the third second on."""
    profile = at_times(700, 10 * MS)
    (lock,) = profile.file_locks
    second = replace(lock, owner="second", owner_pid=12, seen=14, looks=20, first_seen=3 * SECOND)
    profile.file_locks = [replace(lock, seen=4, looks=20, last_seen=2 * SECOND), second]
    facts = facts_of(profile)
    (verdict,) = find(facts)
    said = Sentences(facts).of(verdict)
    assert said.startswith("70.0 % of the time of the main thread of app is blocked on the lock of a file in main")
    assert said.endswith("; second (pid 12, not traced) has the lock of /srv/db.lock at 14 of 18 looks.")
