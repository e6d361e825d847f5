"""Places that give threads work: not those that end them, nor the threads themselves."""

from __future__ import annotations

import pytest
from pool_profiles import PID, READERS, WAKES, add_pool, no_pools
from stallscope.converters.facts.pools import pools_of
from stallscope.converters.model import Frame, Profile
from stallscope.converters.model.wakers import SEPARATOR
from summary_profiles import facts_of

EXIT = ("try_to_wake_up", "signal_wake_up_state", "zap_other_threads", "do_group_exit", "__x64_sys_exit_group")
FEED = ("main", "feed", "futex")


def fed_in(made: Profile) -> tuple[str, ...]:
    (pool,) = pools_of(facts_of(made))
    return pool.fed_in


@pytest.mark.parametrize(("waits", "expected"), [(1, ()), (2, FEED)])
def test_what_ends_one_wait_of_a_thread_may_be_its_end(waits: int, expected: tuple[str, ...]) -> None:
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"feed": 5}, waits=waits)
    assert fed_in(made) == expected


def test_many_threads_whose_times_are_added_up_wait_once_each() -> None:
    for waits, expected in ((900, ()), (1800, FEED)):
        made = no_pools()
        add_pool(made, 1, made_in=READERS, fed={"feed": 5}, waits=waits, count=900)
        made.threads[-1].tid, made.threads[-1].tid_life = 0, 2
        made.samples = [
            each._replace(labels=tuple(sorted({**dict(each.labels), "tid": 0, "tid_life": 2}.items())))
            for each in made.samples
        ]
        assert fed_in(made) == expected


def test_a_shutdown_after_a_long_wait_hides_nobody_who_gave_work_often() -> None:
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"feed": 1})
    shutdown = no_pools()
    add_pool(shutdown, 4, made_in=READERS, fed={"shut_down": 5}, waits=1)
    made.samples += shutdown.samples
    assert fed_in(made) == FEED


@pytest.mark.parametrize(("wakes", "expected"), [(EXIT, ()), (WAKES, FEED)])
def test_the_end_of_a_process_is_no_work(wakes: tuple[str, ...], expected: tuple[str, ...]) -> None:
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"feed": 5}, wakes_in=wakes)
    assert fed_in(made) == expected


@pytest.mark.parametrize(("waker", "expected"), [(PID + 2, ()), (PID + 9, FEED)])
def test_members_of_a_pool_only_pass_work_on(waker: int, expected: tuple[str, ...]) -> None:
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"feed": 5}, waker=waker)
    assert [times.tid for times in made.threads] == [PID, *range(PID + 2, PID + 6)]
    assert fed_in(made) == expected


def test_who_feeds_them_is_told_without_the_members_that_pass_it_on() -> None:
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"pass_on": 6}, waker=PID + 3)
    given = no_pools()
    add_pool(given, 4, made_in=READERS, fed={"feed": 2})
    made.samples += given.samples
    assert fed_in(made) == FEED


def test_an_idle_thread_whose_last_wait_goes_on_was_fed() -> None:
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"feed": 1})
    given = no_pools()
    add_pool(given, 4, made_in=READERS, fed={"feed": 5}, waits=1)
    idle = [
        each._replace(stack=each.stack[: each.stack.index(SEPARATOR)], labels=(*each.labels, ("open", "yes")))
        for each in given.samples
    ]
    made.samples += idle
    assert fed_in(made) == FEED


@pytest.mark.parametrize(("times", "expected"), [(9, ()), (0.1, FEED)])
def test_waits_that_interrupts_end_are_not_fed(times: float, expected: tuple[str, ...]) -> None:
    """A place gives work if it ends most of the waits for it, not only most of those that some place ends."""
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"feed": 1}, call="epoll_wait")
    for each in list(made.samples):
        if SEPARATOR in each.stack:
            labels = {**dict(each.labels), "waker": "[eth0]"}
            labels.pop("waker_tid", None)
            stack = (*each.stack[: each.stack.index(SEPARATOR) + 1], Frame("[eth0]", "waker"))
            values = (round(each.values[0] * times), *each.values[1:])
            made.samples.append(each._replace(stack=stack, values=values, labels=tuple(sorted(labels.items()))))
    assert fed_in(made) == expected
