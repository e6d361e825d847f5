"""Waits for locks with a limit of time, which begin again."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.timed_locks import with_waits_joined
from stallscope.converters.model import Profile, Stack, ThreadTimes
from stallscope.converters.model.wakers import own_part
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, FUTEX, LIBC, MS, READ, SECOND, user
from verdict_profiles import LOCK
from wait_graphs import Link, chained, profile_of, with_extremes

TIMER: Link = ("[timer]", 0, "")
OPEN: Link = ("[still waiting]", 0, "")
BACKUP: Link = ("backup-8", 8, "backup")
IMPORT: Link = ("import-9", 9, "import")
TIMED = (*user(EXE, "work", "take"), *user(LIBC, "pthread_mutex_timedlock"), *FUTEX)
QUEUE = (*user(EXE, "work", "next_task"), *user(LIBC, "pthread_cond_timedwait"), *FUTEX)


def waits(*each: tuple[int, Link], stack: Stack = TIMED) -> Profile:
    """Thread 1 waits so many ms, ended by these."""
    return with_extremes(profile_of(*(chained(1, 1, time * MS, link, own=stack, process="app") for time, link in each)))


def ends(made: Profile) -> dict[object, int]:
    """ms by who ended it."""
    return {sample.label("waker"): sample.values[0] // MS for sample in made.samples}


def test_the_last_of_them_tells_who_ends_it() -> None:
    made = with_waits_joined(waits((1000, TIMER), (300, BACKUP)))
    (sample,) = made.samples
    assert (sample.values, sample.label("waker")) == ((1300 * MS, 1, 1, 1300 * MS), "backup-8")


def test_several_have_their_parts_and_no_time_is_lost() -> None:
    made = with_waits_joined(waits((1000, TIMER), (200, BACKUP), (100, IMPORT), (50, OPEN)))
    assert ends(made) == {"backup-8": 866, "import-9": 433, "[still waiting]": 50}
    assert sum(sample.values[0] for sample in made.samples) == 1350 * MS


@pytest.mark.parametrize(
    "made",
    [
        waits((1000, TIMER)),
        waits((1000, TIMER), (50, OPEN)),
        waits((300, BACKUP)),
        waits((1000, TIMER), (300, BACKUP), stack=QUEUE),
        waits((1000, TIMER), (300, BACKUP), stack=READ),
    ],
)
def test_what_only_timers_end_or_is_no_lock_stays(made: Profile) -> None:
    assert with_waits_joined(made).samples == made.samples


def test_waits_in_another_place_or_of_another_thread_are_others() -> None:
    made = waits((1000, TIMER))
    made.samples += waits((300, BACKUP), stack=LOCK).samples
    made.samples += with_extremes(profile_of(chained(1, 2, 300 * MS, BACKUP, own=TIMED, process="app"))).samples
    assert with_waits_joined(made).samples == made.samples


def test_the_answer_tells_of_the_joined_ones() -> None:
    made = waits((7000, TIMER), (1000, BACKUP), (1000, BACKUP))
    made.duration_ns = 10 * SECOND
    made.threads.append(ThreadTimes(1, "app", 1, "app", 10 * SECOND, SECOND, 0, {"interruptible": 9 * SECOND}))
    told = " ".join(summarize(made).answer)
    assert "(2 waits, mean 4.50 s" in told
    assert "100.0 % of what" in told
    assert "ends with backup (pid 8, not traced)" in told
    assert own_part(made.samples[0].stack) == TIMED
