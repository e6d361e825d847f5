from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from collective_profiles import one_late, profile_of
from job_profiles import job, stuck
from processes import crowd, process, profile, threads
from stallscope.converters.model import Profile, Stack, ThreadTimes
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules import ranking
from stallscope.converters.rules.ends_with import EndsWith
from stallscope.converters.rules.ranking import DOMINANCE, Judgement, is_of_gil, judge
from stallscope.converters.rules.registry import RULES
from summary_profiles import CHILD, MS, POLL, READ, SECOND, SLEEP, Tracee, empty, facts_of, model_case, waiting
from verdict_profiles import (
    COMPUTE,
    FSYNC,
    GIL,
    LOCK,
    SWAP_IN,
    YIELD,
    all_waiting,
    blocked,
    calm_host,
    deadlocked,
    ending_with_others,
    handing_on,
    held_by_gil,
    one,
    sampled,
    serving,
    whole_host,
    with_quota,
    with_stuck,
    workers,
    yielding,
)
from wait_graphs import chained


def judged(of: Profile, has_samples: bool = True) -> Judgement:
    """Judgement where it is known in which functions threads run."""
    return judge(facts_of(of, has_samples=has_samples))


def told(judgement: Judgement) -> list[str]:
    """The rules of all that is told."""
    return [each.rule for each in (*judgement.steps, *judgement.verdicts, *judgement.still)]


def beside(of: Profile, stack: Stack, pid: int, tid: int, *, waits: int = 8, state: str = "uninterruptible") -> Profile:
    """Adds a thread to a profile that waits there for so many of 8.1 s, and runs for the rest."""
    thread = Tracee(of, pid, "app" if pid == 1 else "other", tid, "w").run(100 * MS + (8 - waits) * SECOND)
    thread.wait(stack, state, waits * SECOND, 500)
    return of


def main_of_python(stack: Stack) -> Profile:
    """Profile of a main thread that waits for the interpreter's lock for 9 s, as was recorded, and at the same time
    there."""
    made = held_by_gil(9 * SECOND)
    made.threads = []
    Tracee(made, 7, "train.py", 7, "python3").run(2 * SECOND).wait(stack, "interruptible", 8 * SECOND, 500)
    return made


def sharing(*limited: int) -> Profile:
    """Processes 10 and 20 share a core; a quota stops these of them."""
    made = profile()
    for pid, name in ((10, "a"), (20, "b")):
        limit = CpuLimit("/x", 100_000, 100_000, 100, 98, SECOND)
        process(made, pid, name, cpus="0", limits=(limit,) if pid in limited else ())
        threads(made, pid, name, name, on_cpu=5 * SECOND, runnable=5 * SECOND)
    return made


def beside_polling(of: Profile) -> Profile:
    """Adds a thread that polls for nearly the whole time."""
    Tracee(of, 1, "app", 2, "spin").run(9 * SECOND).wait(YIELD, "runnable-preempted", SECOND, 90)
    return of


class Row(NamedTuple):
    """A profile in which a row of `DOMINANCE` changes what is told; what is told with it, and without it; and a profile
    in which it narrowly changes nothing."""

    changed: Callable[[], Profile]
    told: list[str]
    without: list[str]
    near_miss: Callable[[], Profile]
    has_samples: bool = True


ROWS = {
    "nobody has anything to do": Row(
        calm_host,
        ["calm", "still"],
        ["calm", "for-others", "still"],
        lambda: calm_host(held=5 * SECOND),
    ),
    "nothing goes on behind it": Row(
        lambda: held_by_gil(to=deadlocked(20, to=deadlocked())),
        ["deadlock", "still"],
        ["deadlock", "deadlock", "gil-main", "all-wait", "all-wait"],
        lambda: held_by_gil(to=deadlocked(moves=1)),
    ),
    "they wait for other ranks, not for their threads": Row(
        stuck,
        ["stuck-ranks"],
        ["stuck-ranks", "for-others"],
        lambda: job(0.0, 0.0, 0.0, 0.9),
    ),
    "nothing in its process goes on": Row(
        all_waiting,
        ["all-wait"],
        ["all-wait", "for-others", "still"],
        lambda: all_waiting(moves=1),
    ),
    "event loops wait for work": Row(
        serving,
        ["idle"],
        ["idle", "for-others"],
        lambda: serving(POLL),
    ),
    "it is the same wait, and the holder is known": Row(
        lambda: main_of_python(GIL),
        ["gil-main", "busy"],
        ["gil-main", "held-up", "busy"],
        lambda: main_of_python(LOCK),
    ),
    "throttled threads wait for a core anyway": Row(
        lambda: sharing(10, 20),
        ["quota", "busy"],
        ["quota", "crowd", "busy"],
        lambda: sharing(10),
    ),
    "a wait beside the main threads may delay nobody": Row(
        lambda: beside(one(SLEEP, 5 * SECOND, runs=MS), FSYNC, 5, 6),
        ["for-others", "held-up"],
        ["held-up", "for-others"],
        lambda: beside(one(SLEEP, 5 * SECOND, runs=MS), FSYNC, 5, 5),
    ),
    "it tells what they run for": Row(
        lambda: yielding(51, 49),
        ["polling"],
        ["polling", "busy"],
        lambda: yielding(49, 51),
        has_samples=False,
    ),
    "that memory is short tells why they run": Row(
        lambda: sampled(SWAP_IN, COMPUTE, samples=(31, 69)),
        ["reclaim"],
        ["busy", "reclaim"],
        lambda: sampled(SWAP_IN, COMPUTE, samples=(29, 71)),
    ),
    "who is held up keeps those waiting that poll": Row(
        lambda: beside_polling(blocked(8 * SECOND)),
        ["held-up", "polling"],
        ["polling", "held-up"],
        lambda: beside_polling(waiting(SLEEP)),
        has_samples=False,
    ),
    "who hands on work waits for a core each time": Row(
        handing_on,
        ["for-others", "crowd", "busy"],
        ["crowd", "for-others", "busy"],
        lambda: handing_on(200_000),
    ),
    "they explain what others wait for": Row(
        lambda: with_quota(waiting(READ), 5 * SECOND, pid=1),
        ["quota", "for-others"],
        ["for-others", "quota"],
        lambda: with_quota(waiting(READ), 5 * SECOND),
    ),
    "main threads stand for their process": Row(
        lambda: beside(waiting(READ), SLEEP, 1, 2, waits=5, state="interruptible"),
        ["for-others", "busy"],
        ["for-others", "busy", "workers"],
        lambda: beside(waiting(POLL), SLEEP, 1, 2, waits=5, state="interruptible"),
    ),
    "a cause beats its effects": Row(
        model_case,
        ["held-up", "busy"],
        ["for-others", "held-up", "busy"],
        lambda: beside(waiting(SLEEP), FSYNC, 5, 6),
    ),
    "the longer wait says more": Row(
        lambda: one(POLL, 6 * SECOND, runs=4 * SECOND),
        ["for-others", "busy"],
        ["busy", "for-others"],
        lambda: one(POLL, 4 * SECOND, runs=4 * SECOND),
    ),
    "its sentence tells who runs meanwhile": Row(
        lambda: waiting(CHILD, (5, 5, "tool", SLEEP, 1000)),
        ["for-others"],
        ["for-others", "busy"],
        lambda: waiting(POLL, (5, 5, "tool", SLEEP, 1000)),
    ),
    "it stops ranks in operations, too": Row(
        lambda: with_quota(profile_of(one_late(last=49)), 5 * SECOND, pid=11),
        ["quota", "busy", "for-others"],
        ["late-rank", "quota", "busy", "for-others"],
        lambda: with_quota(profile_of(one_late(last=51)), 5 * SECOND, pid=11),
    ),
    "their sentences tell of these processes": Row(
        deadlocked,
        ["deadlock"],
        ["deadlock", "still"],
        lambda: with_stuck(waiting(READ)),
    ),
}
"""Cases by the reasons of rows: a new one needs one, too."""


def test_all_rows_are_tried() -> None:
    assert list(ROWS) == [row.why for row in DOMINANCE]


@pytest.mark.parametrize("why", ROWS)
def test_a_row_changes_what_is_told(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[why]
    changed, near_miss = row.changed(), row.near_miss()
    assert told(judged(changed, row.has_samples)) == row.told
    same = judged(near_miss, row.has_samples)
    monkeypatch.setattr(ranking, "DOMINANCE", [each for each in DOMINANCE if each.why != why])
    assert told(judged(changed, row.has_samples)) == row.without
    assert judged(near_miss, row.has_samples) == same


def test_rows_are_of_rules() -> None:
    for row in DOMINANCE:
        assert {*row.rule.split(", "), *row.over} <= {*RULES, "*"}, row.why


def test_waits_for_the_interpreter_lock_of_other_processes_are_told() -> None:
    (verdict,) = RULES["held-up"](facts_of(main_of_python(GIL)))
    assert is_of_gil(verdict, {7})
    assert not is_of_gil(verdict, {7, 8})
    assert not is_of_gil(replace(verdict, finding=None), {7})
    (verdict,) = RULES["held-up"](facts_of(main_of_python(LOCK)))
    assert not is_of_gil(verdict, {7})


# One detail of a row each.


def test_who_runs_beside_those_that_poll_is_told() -> None:
    """The sentence does not tell of those that poll again."""
    made = yielding(80, 20)
    Tracee(made, 5, "other", 5, "other").run(3 * SECOND).wait(FSYNC, "uninterruptible", 7 * SECOND, 9)
    facts = facts_of(made)
    found = {each.rule: each for each in judge(facts).verdicts}
    assert list(found) == ["polling", "held-up", "busy"]
    busy = found["busy"]
    assert (busy.time, busy.score) == (3 * SECOND, 1.5 * SECOND)
    assert busy.finding and busy.finding.threads == ((5, 5),)
    assert "app" not in Sentences(facts).of(busy)


def test_a_wait_beside_a_wait_for_events_is_believed() -> None:
    """A wait for events may be no trouble at all."""
    for stack, score in ((SLEEP, 4 * SECOND), (POLL, 8 * SECOND)):
        verdicts = judged(beside(one(stack, 5 * SECOND, runs=MS), FSYNC, 5, 6)).verdicts
        assert [each.score for each in verdicts if each.rule == "held-up"] == [score]


def test_a_cause_that_is_told_carries_the_waits_of_the_others() -> None:
    first = judged(model_case()).first
    assert first and first.finding and first.effect
    assert {tid for _, tid in first.finding.threads} == set(range(5711, 5719))
    assert {tid for _, tid in first.effect.threads} == set(range(4711, 4719))


def test_who_waits_for_both_is_told_once() -> None:
    """A thread waits for its lock for longer than for others: that sentence does not tell of itself again."""
    made = empty()
    main = Tracee(made, 1, "app", 1, "app").run(SECOND).wait(READ, "interruptible", 4 * SECOND, 500)
    main.wait(LOCK, "interruptible", 5 * SECOND, 500)
    (first,) = judged(made).verdicts[:1]
    assert (first.rule, first.effect) == ("held-up", None)
    assert "for-others" not in told(judged(made))


def test_who_is_stopped_causes_no_wait_of_others() -> None:
    made = beside(waiting(READ), READ, 5, 6, state="stopped")
    assert told(judged(made)) == ["for-others", "held-up"]


def test_a_crowd_that_costs_less_does_not_explain_what_its_threads_wait_for() -> None:
    made = handing_on(200_000)
    assert told(judged(made)) == ["crowd", "for-others", "busy"]
    for sample, times in zip(made.samples[::3], made.threads, strict=True):
        made.samples.append(sample._replace(values=(20 * SECOND, 500, 1, SECOND)))
        times.wall += 20 * SECOND
    made.duration_ns = 30 * SECOND
    assert told(judged(made))[0] == "for-others"


def test_who_is_said_to_end_waits_does_not_make_them_an_effect() -> None:
    (effect,) = (each for each in judged(ending_with_others()).verdicts if each.rule == "for-others")
    assert effect.score == effect.time == 9 * SECOND


def test_with_whom_the_waits_of_the_first_sentence_end_comes_before_longer_ones() -> None:
    made = ending_with_others(6 * SECOND)
    for pid in (90, 91):
        sample = chained(pid, pid, 9 * SECOND, ("disk-5", 5, "disk"), own=POLL, process="other")
        made.samples.append(sample._replace(values=(9 * SECOND, 9, SECOND, SECOND)))
        blocked = {"interruptible": 9 * SECOND}
        made.threads.append(ThreadTimes(pid, "other", pid, "other", 10 * SECOND, MS, 0, blocked))
    judgement = judged(made)
    assert judgement.first and judgement.first.pids == {1}
    assert judgement.ends_with and judgement.ends_with.name == "exporter"
    (longest,) = (each for each in RULES["ends-with"](facts_of(made)))
    assert isinstance(longest.detail, EndsWith) and longest.detail.name == "disk"


def test_cores_that_a_crowd_explains_are_no_other_trouble() -> None:
    found = {each.rule: each.score for each in judged(crowd(2)).verdicts}
    assert found == {"crowd": 256 * SECOND, "busy": 0}


def test_waiting_for_work_on_a_whole_host_says_less_than_running() -> None:
    made = one(POLL, 6 * SECOND, runs=4 * SECOND)
    assert told(judged(made)) == ["for-others", "busy"]
    assert told(judged(whole_host(made))) == ["busy", "for-others"]


def test_what_the_first_verdict_waits_for_is_not_told_as_still() -> None:
    made = waiting(READ)
    Tracee(made, 9, "stuck", 9, "stuck").wait(FSYNC, "uninterruptible", 10 * SECOND)
    first, *_ = (judgement := judged(made)).verdicts
    assert first.pids == {9}
    assert first.confidence == 1
    assert first.effect and first.effect.pids == {1}
    assert judgement.still == ()


# First, second, and what else there is.


def test_a_deadlock_and_a_held_up_main_thread_come_first_however_long_others_wait() -> None:
    for made, rule in ((deadlocked(), "deadlock"), (held_by_gil(), "gil-main")):
        assert told(judged(with_quota(made, 1000 * SECOND)))[:2] == [rule, "quota"]


def test_nothing_is_second_to_a_deadlock() -> None:
    assert judged(with_quota(deadlocked(), 1000 * SECOND)).second is None


def test_whatever_is_there_is_second_to_a_held_up_main_thread() -> None:
    second = judged(with_quota(held_by_gil(), SECOND // 100)).second
    assert second and second.rule == "quota"


def test_a_wait_of_the_same_processes_follows_from_the_first() -> None:
    """A wait of other processes does not follow from the first."""
    assert judged(with_quota(waiting(READ), 20 * SECOND, pid=1)).second is None
    second = judged(with_quota(waiting(READ), 20 * SECOND)).second
    assert second and second.rule == "for-others"


def test_of_two_waits_that_others_end_one_is_told() -> None:
    made = workers()
    judgement = judge(facts_of(made))
    assert told(judgement) == ["workers", "busy", "for-others"]
    assert judgement.second is None
    running = judged(one(SLEEP, 3 * SECOND, runs=7 * SECOND))
    assert running.first and running.second
    assert (running.first.rule, running.second.rule) == ("busy", "for-others"), "running explains no wait"


def test_running_counts_less_than_the_time_of_a_wait_whose_score_is_low() -> None:
    """A wait for events has a fifth of its time as its score: 1.9 s on a core are nearly as much."""
    made = waiting(POLL, (5, 5, "tool", SLEEP, 8_100))
    assert told(judged(made)) == ["for-others", "busy"]
    assert judged(made).second is None
    held = judged(blocked(4_700 * MS, 1_900 * MS))
    assert held.second and held.second.rule == "busy", "it has 40 % of that wait"


def test_the_longest_wait_is_told_if_there_is_nothing_else() -> None:
    def short_of(time: int) -> Profile:
        made = blocked(time, MS)
        made.threads[0].wall = 10 * SECOND
        return made

    assert told(judged(short_of(490 * MS))) == ["longest"]
    assert told(judged(short_of(510 * MS))) == ["held-up"]


def test_nothing_is_told_of_nothing() -> None:
    assert judged(empty()) == Judgement((), None, None, (), (), ())
    assert told(judged(one(READ, 10 * SECOND, state="stopped"))) == ["still"]
