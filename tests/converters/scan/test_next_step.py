from __future__ import annotations

from idle_hosts import CLIENT, Host
from stallscope.converters.model import Profile
from stallscope.converters.model.next_step import (
    ALL_THAT_RUNS,
    LONGER,
    PATH,
    WHAT_CULPRIT_RUNS,
    WHAT_CULPRIT_WAITS_FOR,
    NextStep,
)
from stallscope.converters.scan.report import report_of
from summary_profiles import EXE, LIBC, SECOND, SLEEP, Tracee, empty, kernel, user
from verdict_profiles import calm_host, one

RECV = (*user(EXE, "main", "ask"), *user(LIBC, "recv"), *kernel("__x64_sys_recvfrom", "unix_stream_read_generic"))


def step(profile: Profile) -> NextStep:
    made = report_of(profile).summary.next_step
    assert made
    return made


def asked(server_waits: int) -> Profile:
    """Process 7 waits for process 20, which waits itself for so many of 1,000 ms."""
    host = Host().wait(7, 7, RECV, 900, CLIENT, each=9)
    profile = host.wait(20, 20, SLEEP, server_waits, ("[timer]", 0, ""), each=9).made()
    profile.duration_ns = SECOND
    return profile


def test_who_ends_the_waits_and_runs_is_shown_running() -> None:
    made = step(asked(790))
    assert (made.tells, made.command) == (WHAT_CULPRIT_RUNS, "trace-oncpu -p 20 -d 5 -o cpu.html")


def test_who_ends_the_waits_and_waits_is_shown_waiting() -> None:
    made = step(asked(810))
    assert (made.tells, made.command) == (WHAT_CULPRIT_WAITS_FOR, "trace-wakeup -p 20 -d 5 --critical 20")


def test_who_waits_for_nobody_known_is_followed_itself() -> None:
    profile = one(RECV, 9 * SECOND, runs=SECOND)
    made = step(profile)
    assert (made.tells, made.command) == (PATH, "trace-wakeup -p 1 -d 5 --critical 1")


def test_what_runs_is_shown_without_all_others() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(10 * SECOND)
    Tracee(profile, 3, "cron", 3, "cron").wait(SLEEP, "interruptible", 10 * SECOND, 1)
    made = step(profile)
    assert (made.tells, made.whom.options) == (ALL_THAT_RUNS, ("-p", "1"))


def test_where_nothing_is_held_up_a_longer_scan_may_see_it() -> None:
    made = step(calm_host())
    assert (made.tells, made.command) == (LONGER, "trace-scan -d 60")
