from __future__ import annotations

import pytest
from file_lock_profiles import SEEN, held, waits_for
from stallscope.converters.model import Module, Profile, Stack
from stallscope.converters.model.wait_objects import FILE, LABEL, ObjectEnd, WaitObject
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.held_up import find, held_up
from summary_profiles import (
    CHILD,
    EXE,
    LIBC,
    MS,
    MUTEX,
    POOL,
    READ,
    SECOND,
    SLEEP,
    TOPK,
    Tracee,
    empty,
    facts_of,
    kernel,
    model_case,
    user,
)
from verdict_profiles import FSYNC, LOCK, blocked, one, whole_host


def fsync(function: str, kernel_function: str = "folio_wait_bit") -> Stack:
    return (*user(EXE, "main", function), *user(LIBC, "fsync"), *kernel("__x64_sys_fsync", kernel_function))


def test_the_lock_of_all_processes_is_one_finding() -> None:
    (held,) = held_up(facts_of(model_case()))
    assert (held.kind, len(held.threads), held.count) == ("lock", 8, 31_200)
    assert (held.time, held.wall) == (8 * 8_420 * MS, 80 * SECOND)
    assert held.most == 8_420 * MS


def test_who_waits_there_seldom_is_not_counted() -> None:
    profile = model_case()
    tracee = Tracee(profile, 4711, "demo", 6000, "other").run(9_900 * MS)
    tracee.wait(TOPK, "uninterruptible", 100 * MS)
    assert (4711, 6000) not in held_up(facts_of(profile))[0].threads


def test_a_few_others_do_not_change_where_it_is() -> None:
    profile = model_case()
    stack = (*user(EXE, "little"), *user(LIBC, "ioctl"), *MUTEX)
    Tracee(profile, 9, "other", 9, "other").run(MS).wait(stack, "uninterruptible", 100 * MS)
    (held,) = held_up(facts_of(profile))
    assert len(held.threads) == 9
    assert [place.site.frames[0] for place in held.places] == ["topk"]


def test_one_cause_is_summed_over_its_callers_and_steps() -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "db", 1, "db").run(4 * SECOND)
    for function in ("journal", "index", "audit"):
        tracee.wait(fsync(function), "uninterruptible", SECOND, 10)
        tracee.wait(fsync(function, "bit_wait_io"), "uninterruptible", SECOND, 10)
    (held,) = held_up(facts_of(profile))
    assert (held.time, held.count, len(held.places)) == (6 * SECOND, 60, 6)


def test_different_devices_behind_one_call_are_two_causes() -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "app", 1, "app").run(2 * SECOND)
    for function in ("request_wait_answer", "nv_wait"):
        stack = (*user(EXE, "main", "call"), *user(LIBC, "ioctl"), *kernel("__x64_sys_ioctl", function))
        tracee.wait(stack, "uninterruptible", 4 * SECOND, 10)
    assert [held.time for held in held_up(facts_of(profile))] == [4 * SECOND, 4 * SECOND]


def test_what_is_told_of_it() -> None:
    (verdict,) = find(facts_of(blocked(6 * SECOND, 4 * SECOND)))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.confidence) == ("held-up", "io", 6 * SECOND, 1)
    assert verdict.finding
    assert (verdict.finding.kind, verdict.finding.threads, verdict.pids) == ("held", ((1, 1),), {1})
    assert (verdict.cause, verdict.effect, verdict.detail, verdict.is_effect) == (None, None, None, False)


@pytest.mark.parametrize("stack", [LOCK, FSYNC])
@pytest.mark.parametrize("state", ["uninterruptible", "stopped"])
def test_who_is_stopped_is_held_up_wherever(stack: Stack, state: str) -> None:
    (verdict,) = find(facts_of(one(stack, 9 * SECOND, runs=SECOND, state=state)))
    assert (verdict.wait_kind == "stopped") is (state == "stopped")


@pytest.mark.parametrize(
    "profile",
    [
        blocked(490 * MS, 9_510 * MS),  # for too little of its time
        whole_host(blocked(10 * SECOND)),  # of a whole host, it did not move: `still` tells of it
        one(POOL, 6 * SECOND, runs=4 * SECOND),  # another thread ends it
        one(FSYNC, 6 * SECOND, runs=4 * SECOND, state="runnable-woken"),  # for a core
    ],
)
def test_nobody_is_held_up(profile: Profile) -> None:
    assert find(facts_of(profile)) == []


@pytest.mark.parametrize(
    ("stack", "state", "share", "told"),
    [
        (FSYNC, "uninterruptible", 0.6, True),
        (FSYNC, "uninterruptible", 0.4, False),
        (SLEEP, "interruptible", 0.9, False),
        (READ, "interruptible", 0.9, False),
    ],
)
def test_another_thread_that_may_have_the_lock(stack: Stack, state: str, share: float, told: bool) -> None:
    """A thread that mostly waits for a device; who sleeps, or waits for others, may have nothing to do."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(LOCK, "interruptible", 9 * SECOND, 50)
    other = Tracee(profile, 1, "app", 2, "reader").wait(stack, state, round(10 * SECOND * share), 50)
    other.wait(POOL, "interruptible", round(10 * SECOND * (1 - share)), 50)
    held = next(each for each in find(facts_of(profile)) if each.kind == "lock")
    assert (held.cause is not None) is told
    if held.cause:
        assert held.cause.threads == ((1, 2),)


def file_locked(other: str, where: Stack, neighbours: int = 0) -> Profile:
    """A build waits for a file's lock for the whole trace; another process waits elsewhere; so many others compute."""
    flock = (
        *user(EXE, "main", "open_target"),
        *user(LIBC, "flock"),
        *kernel("__x64_sys_flock", "locks_lock_inode_wait"),
    )
    profile = empty()
    Tracee(profile, 1, "build", 1, "build").wait(flock, "interruptible", 10 * SECOND, still=True)
    Tracee(profile, 5, other, 5, other).run(MS).wait(where, "interruptible", 10 * SECOND - MS, 3)
    for pid in range(20, 20 + neighbours):
        Tracee(profile, pid, chr(pid + 77), pid, "x").run(10 * SECOND)
    return profile


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        (file_locked("build", CHILD), ((5, 5),)),
        (file_locked("build", CHILD, neighbours=7), ((5, 5),)),
        (file_locked("build", SLEEP, neighbours=7), ((5, 5),)),
        (file_locked("check", CHILD, neighbours=7), None),
        (file_locked("build", READ), None),
        (file_locked("check", CHILD, neighbours=1), ((20, 20),)),
    ],
)
def test_who_may_have_a_lock_on_a_file(profile: Profile, told: tuple[tuple[int, int], ...] | None) -> None:
    """Holders may have started a program. Of many names, those of the same one are related."""
    (held,) = (each for each in find(facts_of(profile)) if each.kind == "file-lock")
    assert (held.cause.threads if held.cause else None) == told


def told(profile: Profile) -> str:
    """Sentence on the lock of a file."""
    facts = facts_of(profile)
    (verdict,) = find(facts)
    assert verdict.kind == "file-lock"
    return Sentences(facts).of(verdict)


BLOCKED = "100.0 % of the time of the main thread of p1 is blocked in main → build → flock, waiting in "
BLOCKED += "locks_lock_inode_wait (1 wait, mean 10.0 s, max 10.0 s)"


def test_the_holder_of_a_lock_on_a_file() -> None:
    assert told(held(SEEN)) == f"{BLOCKED}; gzip (pid 9, not traced) has the lock of /srv/db.lock all the time."
    assert told(held()) == f"{BLOCKED}."


def test_what_the_holder_does_is_told_if_it_is_traced() -> None:
    profile = held(waits_for(1, 9), sleeper=9)
    does = "meanwhile the main thread of p9 sleeps for 100.0 % of its time in main → nap → clock_nanosleep"
    assert told(profile) == f"{BLOCKED}; p9 (pid 9) has the lock of /srv/db.lock all the time; {does}."


def test_who_else_is_traced_is_not_taken_for_the_holder() -> None:
    """Sleeping is no sign of a lock."""
    assert "meanwhile" in told(held(sleeper=8))
    assert "meanwhile" not in told(held(SEEN, sleeper=8))


def test_it_was_seen_to_have_it_for_most_of_the_time() -> None:
    both = waits_for(1, 9, seen=6), waits_for(1, 8, seen=4)
    assert "p9 (pid 9, not traced) has the lock of /srv/db.lock at 6 of 10 looks" in told(held(*both))


def test_those_who_take_turns_have_no_holder() -> None:
    turns = waits_for(1, 2, seen=5), waits_for(2, 1, seen=5)
    assert "has the lock" not in told(held(*turns, pids=(1, 2), waits=3000))


@pytest.mark.parametrize(("takes_turns", "told"), [(True, ((5, 5),)), (False, None)])
def test_who_takes_turns_with_a_lock_may_ask_somebody_meanwhile(
    takes_turns: bool, told: tuple[tuple[int, int], ...] | None
) -> None:
    profile = file_locked("build", READ)
    if takes_turns:
        (flock, *_) = profile.samples
        labels = tuple((key, 5 if key in ("pid", "tid") else value) for key, value in flock.labels if key != "open")
        profile.samples.append(flock._replace(labels=labels, values=(MS, 3, 1, MS)))
    (held,) = (each for each in find(facts_of(profile)) if each.kind == "file-lock")
    assert (held.cause.threads if held.cause else None) == told


SQLITE = Module("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0")
RETRIES = (*user(EXE, "save"), *user(SQLITE, "sqlite3InvokeBusyHandler"), *user(LIBC, "usleep"), *SLEEP[2:])
SERVER = Module("/usr/lib/postgresql/15/bin/postgres")
PROC = (*user(SERVER, "ProcSleep", "WaitLatch"), *user(LIBC, "epoll_wait"), *kernel("__x64_sys_epoll_wait", "ep_poll"))


@pytest.mark.parametrize(("stack", "told"), [(RETRIES, True), (PROC, False)])
def test_a_lock_that_is_asked_for_again_and_again(stack: Stack, told: bool) -> None:
    """Locks of SQLite's databases are locks on files; those of servers are not."""
    profile = empty()
    Tracee(profile, 1, "p1", 1, "p1").wait(stack, "interruptible", 10 * SECOND, 100)
    Tracee(profile, 9, "p9", 9, "p9").wait(SLEEP, "interruptible", 10 * SECOND, 200)
    profile.file_locks = [waits_for(1, 9)]
    facts = facts_of(profile)
    verdict = find(facts)[0]
    assert verdict.kind == "database-lock"
    said = Sentences(facts).of(verdict)
    assert (
        "p9 (pid 9) has the lock of /srv/db.lock all the time; meanwhile the main thread of p9 sleeps" in said
    ) == told


FUSE_READ = (
    *user(EXE, "main", "load"),
    *user(LIBC, "read"),
    *kernel("__x64_sys_read", "fuse_file_read_iter", "request_wait_answer"),
)


@pytest.mark.parametrize(("server", "told"), [(9, True), (7, False)])
def test_what_the_server_of_a_file_system_does(server: int, told: bool) -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(FUSE_READ, "uninterruptible", 10 * SECOND, 100)
    Tracee(profile, 9, "disk", 9, "disk").wait(SLEEP, "interruptible", 10 * SECOND, 200)
    first = profile.samples[0]
    profile.samples[0] = first._replace(labels=tuple(sorted((*first.labels, (LABEL, 5)))))
    profile.objects = [WaitObject(5, FILE, "/mnt/data", "fuse", ends=[ObjectEnd("disk", server)])]
    facts = facts_of(profile)
    verdict = find(facts)[0]
    assert verdict.kind == "io"
    said = Sentences(facts).of(verdict)
    assert f"read of /mnt/data (FUSE, which disk (pid {server}) serves)" in said
    assert ("meanwhile the main thread of disk sleeps for 100.0 % of its time in main → nap" in said) == told
