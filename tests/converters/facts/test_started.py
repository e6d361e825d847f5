"""Threads that wait for processes which they have started."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.started import all_started
from stallscope.converters.model import Profile
from stallscope.converters.rules.for_others import find
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EPOLL, EXE, LIBC, MS, POLL, SECOND, Tracee, empty, facts_of, user
from verdict_profiles import whole_host

EPOLL_WAIT = (*user(EXE, "main", "serve", "run_script"), *user(LIBC, "epoll_wait"), *EPOLL)


def server(runs: int = 6 * SECOND, idles: int = 0, *, exited: bool = False, creator: int = 1) -> Profile:
    """A web server starts a script, and waits for what it writes; 10 s."""
    made = empty()
    Tracee(made, 1, "httpd", 1, "httpd").run(10 * MS).wait(EPOLL_WAIT, "interruptible", 9_990 * MS, 30)
    script = Tracee(made, 5, "report", 5, "report").run(runs)
    script.times.creator, script.times.exited = creator, exited
    if idles:
        script.wait(POLL, "interruptible", idles, 10)
    return made


def kinds(made: Profile) -> set[str]:
    return {place.kind for place in facts_of(made).waits_of((1, 1))}


def test_a_wait_for_events_of_who_has_started_a_process_is_for_it() -> None:
    (verdict,) = find(facts_of(server()))
    assert (verdict.kind, verdict.confidence) == ("child", 1)
    assert verdict.cause and verdict.cause.threads == ((5, 5),)
    assert summarize(server()).answer[0] == (
        "99.9 % of the time of the main thread of httpd is spent waiting for a process that it has started in serve → "
        "run_script → epoll_wait (30 waits, mean 333 ms, max 9.99 s); meanwhile the main thread of report is on a core "
        "for 100.0 % of its time, and waits for one for 0.0 %."
    )


def test_on_a_whole_host_it_is_no_wait_for_work() -> None:
    (verdict,) = find(facts_of(whole_host(server())))
    assert (verdict.kind, verdict.confidence) == ("child", 1)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (server(5 * SECOND), "child"),
        (server(4 * SECOND), "events"),
        (server(SECOND, 9 * SECOND), "events"),
        (server(SECOND, 9 * SECOND, exited=True), "child"),
        (server(creator=0), "events"),
        (server(creator=77), "events"),
        (server(creator=5), "events"),
    ],
)
def test_processes_that_have_ended_or_are_at_work_for_most_of_the_time(made: Profile, kind: str) -> None:
    assert kinds(made) == {kind}


def test_other_waits_stay_what_they_are() -> None:
    made = server()
    made.samples[0] = made.samples[0]._replace(stack=(*user(EXE, "main"), *user(LIBC, "nanosleep")))
    assert kinds(made) == {"sleep"}


def test_what_started_processes_start_counts_too() -> None:
    started = {(1, 2): frozenset((5,)), (5, 6): frozenset((7, 8)), (8, 8): frozenset((1,)), (9, 9): frozenset((10,))}
    assert all_started([(1, 2)], started) == {1, 5, 7, 8}
    assert all_started([(1, 1)], started) == set()


def test_who_starts_processes_that_do_something_is_at_work() -> None:
    made = server()
    made.threads[0].on_cpu = 0
    made.samples[0] = made.samples[0]._replace(values=(9_990 * MS, 3, 1, SECOND))
    assert facts_of(made).at_work == {1, 5}
    made.threads[1].creator = 0
    assert facts_of(made).at_work == {5}
