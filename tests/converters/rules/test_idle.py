from __future__ import annotations

import pytest
from stallscope.converters.model import Profile, Stack
from stallscope.converters.rules.idle import find
from summary_profiles import EXE, MS, POLL, READ, SECOND, Tracee, empty, facts_of, kernel, user
from verdict_profiles import FSYNC, serving


def test_a_server_that_has_nothing_to_do() -> None:
    (verdict,) = find(facts_of(serving()))
    assert (verdict.rule, verdict.kind, verdict.pids, verdict.time) == ("idle", "idle", {1}, 9_990 * MS)
    assert verdict.finding
    assert verdict.finding.threads == ((1, 1),)


def of_go(*waits: tuple[Stack, float]) -> Profile:
    """A program of Go, whose main thread waits so many seconds in each place."""
    profile = empty()
    main = Tracee(profile, 1, "server", 1, "server").run(MS)
    for stack, seconds in waits:
        main.wait(stack, "interruptible", int(seconds * SECOND), 9)
    return profile


SCHEDULER = user(EXE, "runtime.mcall", "runtime.park_m", "runtime.schedule", "runtime.findRunnable")
FUTEX = (*user(EXE, "runtime.futex"), *kernel("do_futex", "futex_wait"))
STOPPED = (*SCHEDULER, *FUTEX)
POLLED = (*SCHEDULER, *user(EXE, "runtime.epollwait"), *kernel("__x64_sys_epoll_pwait", "do_epoll_wait"))
LOCKED = (*user(EXE, "runtime.mcall", "runtime.stoplockedm"), *FUTEX)


def test_threads_that_wait_for_work_in_several_places() -> None:
    (verdict,) = find(facts_of(of_go((STOPPED, 3), (POLLED, 3), (LOCKED, 3))))
    assert verdict.finding
    assert [verdict.kind, verdict.finding.threads] == ["idle", ((1, 1),)]
    assert find(facts_of(of_go((STOPPED, 2), (POLLED, 2), (FSYNC, 5)))) == []


def beside(stack: Stack) -> Profile:
    """Another process waits elsewhere."""
    profile = serving()
    Tracee(profile, 5, "app", 5, "app").run(MS).wait(stack, "interruptible", 10 * SECOND - MS, 9)
    return profile


@pytest.mark.parametrize(
    "profile",
    [serving(POLL), serving(READ), serving(runs=SECOND), serving(runs=0), beside(FSYNC), beside(READ), beside(POLL)],
)
def test_what_may_wait_for_somebody_is_not_idle(profile: Profile) -> None:
    """Waits for one of few files, for a peer, for a disk, are not idle; nor is what runs, or has not moved at all."""
    assert find(facts_of(profile)) == []
