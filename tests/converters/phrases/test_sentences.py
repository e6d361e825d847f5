from __future__ import annotations

import pytest
from processes import crowd, pools, profile
from stallscope.converters.model import Profile
from stallscope.converters.phrases.sentences import Sentences, all_of_cores, everyone
from stallscope.converters.rules import longest
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.registry import RULES
from stallscope.converters.rules.verdict import Verdict
from summary_profiles import (
    EXE,
    MS,
    POLL,
    POOL,
    READ,
    SECOND,
    SLEEP,
    Tracee,
    empty,
    facts_of,
    model_case,
    user,
    waiting,
)
from verdict_profiles import (
    FSYNC,
    LOCK,
    MINIMAL,
    blocked,
    deadlocked,
    ending_with_others,
    locked,
    one,
    with_quota,
    yielding,
)


def said(made: Profile, rule: str) -> str:
    """Sentence on the first verdict of a rule."""
    facts = facts_of(made)
    judgement = judge(facts)
    found = (*judgement.steps, *judgement.verdicts)
    return Sentences(facts).of(next(each for each in found if each.rule == rule))


TOLD_APART = ("still", "holder", "straggler", "ends-with")
"""Rules of whose verdicts the sentences tell together, or of one of them."""
BEGINS = {
    "all-wait": "No thread of app moved at all: they wait for each other, in main → finish → pthread_join, pool_main →",
    "calm": "Nothing is held up: the 3 processes use 0.01 cores together, and wait for work.",
    "idle": "Hardly anything runs: the main thread of srv waits for events for 99.9 % of the time, in main → serve →",
    "unclear": "For 50.0 % of the threads' time it is not known where they were: what was lost is told below; trace",
    "slow-step": "Every 20th step of demo:train_step (number 3, 23, …) takes 10.0 ms in the mean, the others 500 µs: ",
    "late-rank": "Rank 1 of train (pid 11) comes 8.00 ms late (median) to 100.0 % of 100 all-reduces (256 MiB) of 4 ra",
    "late-messages": "Rank 1 of train (pid 11) holds up others by its messages: rank 2 (pid 12) waits 60.0",
    "stuck-ranks": "3 of 4 ranks of train have been in main → MPI_Allreduce → poll since before the trace began, for 1",
    "deadlock": "2 threads of app (app) did not move at all, each of them waiting for a lock, in work → ",
    "gil-main": "For 60.0 % of its time, the main thread of train.py (pid 7) waits for Python's interpreter lock",
    "quota": "A quota throttles stopped: control group /stopped may use 0.5 cores, and used that up in 98.0 % of",
    "crowd": "The threads of 2 × train outnumber the cores: 28.8 want one on average, 4 cores may be used; 75.3 %",
    "pool-anew": "serve makes its threads anew all the time: 400 threads named pool-* a second are created by the",
    "processes-anew": "import.sh starts 200 processes a second (cut, tr), which end after 5.00 ms on average, and",
    "reclaim": "About 67 % of the time on cores of the main thread of train goes into getting memory, which is short,",
    "herd": "The 8 w threads of app are woken 1,000 times a second each, and run for 10.0 µs before they wait",
    "polling": "100.0 % of the time of the main thread of app is spent polling in main → wait_for_flag → sched_yield: ",
    "held-up": "60.0 % of the time of the main thread of app is blocked in main → save → fsync, waiting in ",
    "turns": "The 4 worker threads of app take turns: they use 1.0 of 2 cores together, and wait for each other for",
    "for-others": "99.0 % of the time of the main thread of app is spent waiting for its peer in main → fetch",
    "workers": "80.0 % of the time of the 2 w threads of app is spent waiting for their peers in main → fetch",
    "busy": "90.0 % of the time of the main thread of app is on a core, 0.0 % is waiting for one.",
}


def test_no_rule_is_without_words() -> None:
    """Processes that do not move are told in a sentence of their own."""
    assert {*BEGINS, *TOLD_APART} == set(RULES)


@pytest.mark.parametrize(("rule", "begin"), BEGINS.items())
def test_each_rule_has_a_sentence(rule: str, begin: str) -> None:
    sentence = said(MINIMAL[rule](), rule)
    assert sentence.startswith(begin)
    assert sentence.endswith(".")


def test_the_longest_wait() -> None:
    made = blocked(100 * MS, MS)
    facts = facts_of(made)
    (verdict,) = longest.find(facts)
    assert Sentences(facts).of(verdict).startswith("99.0 % of the time of the main thread of app is blocked in main")


def test_what_those_do_who_keep_others_waiting_and_those_who_wait() -> None:
    cause = said(waiting(READ, (5, 5, "server", SLEEP, 6_000)), "for-others")
    assert "; meanwhile the main thread of server sleeps for 60.0 % of its time in main → nap" in cause
    assert "; meanwhile the 8 main threads wait for other threads for 97.0 % " in said(model_case(), "held-up")


def test_a_deadlock_names_its_threads_and_ways() -> None:
    made = deadlocked(stacks=(LOCK, LOCK, (*user(EXE, "other"), *LOCK[1:])))
    for times, name in zip(made.threads, "abc", strict=True):
        times.thread = name
    assert said(made, "deadlock").startswith(
        "3 threads of app (a, b, c) did not move at all, each of them waiting for a lock, in work → … → "
        "pthread_mutex_lock, other → … → pthread_mutex_lock: a deadlock, if they hold each other's."
    )


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((8, 2), "80.0 % of the time of the main thread of app is"),
        ((6, 4), "50.0 % of the time of both threads of app is"),
        ((6, 4, 0), "50.0 % of the time of 2 of 3 threads of app (the other one only waits) is"),
        ((6, 4, 0, 0), "50.0 % of the time of 2 of 4 threads of app (the others only wait) is"),
    ],
)
def test_threads_that_run(runs: tuple[int, ...], expected: str) -> None:
    made = empty()
    for tid, seconds in enumerate(runs, 1):
        thread = Tracee(made, 1, "app", tid, f"w{tid:c}").run(seconds * SECOND)
        thread.wait(SLEEP, "interruptible", (10 - seconds) * SECOND, 9 if seconds else 1)
    facts = facts_of(made)
    (verdict,) = RULES["busy"](facts)
    assert Sentences(facts).of(verdict) == f"{expected} on a core, 0.0 % is waiting for one."


@pytest.mark.parametrize(("number", "words"), [(1, "the thread"), (2, "both threads"), (3, "all 3 threads")])
def test_everyone(number: int, words: str) -> None:
    assert everyone(number) == words


def test_threads_that_run_where_they_lose_their_cores() -> None:
    lost = ", most often in main → compute."
    assert said(yielding(10, 90), "busy").endswith(f"is waiting for one{lost}")
    others = yielding(10, 90)
    Tracee(others, 1, "app", 2, "w").run(3 * SECOND)
    assert said(others, "busy").startswith("98.9 % of the time of the main thread of app is on a core")
    assert said(others, "busy").endswith(lost)
    others.threads[-1].on_cpu = 5 * SECOND
    assert lost not in said(others, "busy"), "they are not of one name"


# What did not move.


def stuck(*processes: tuple[str, str]) -> str:
    """Sentence on processes by their names and states."""
    made = waiting(READ)
    for pid, (name, state) in enumerate(processes, 10):
        Tracee(made, pid, name, pid, name).wait(POLL if name == "poller" else POOL, state, 10 * SECOND)
    facts = facts_of(made)
    return Sentences(facts).still(RULES["still"](facts))


POOL_MAIN = "in pool_main → std::condition_variable::wait"


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ([], ""),
        ([("a", "interruptible")], f"1 process did not move: a ({POOL_MAIN})."),
        ([("a", "stopped")], "1 process did not move: a (stopped)."),
        (
            [("poller", "interruptible"), ("rank-1", "interruptible"), ("rank-2", "interruptible")],
            f"3 processes did not move: 2 × rank-* ({POOL_MAIN}), poller (in main → loop → poll).",
        ),
        ([(name, "stopped") for name in "abcabcd"], "7 processes did not move: 2 × a, 2 × b, 2 × c, d."),
        ([(name, "stopped") for name in "abcdef"], "6 processes did not move: a, b, c and 3 more names."),
    ],
)
def test_processes_that_did_not_move(processes: list[tuple[str, str]], expected: str) -> None:
    assert stuck(*processes) == expected


def test_a_process_of_which_nobody_knows_where_it_is() -> None:
    made = one(user(None, "[no stack]"), 10 * SECOND)
    facts = facts_of(made)
    assert Sentences(facts).still(RULES["still"](facts)) == "1 process did not move: app."


def test_a_process_whose_own_functions_are_not_known() -> None:
    made = one(tuple(frame for frame in FSYNC if frame.kind == "kernel"), 10 * SECOND, state="uninterruptible")
    facts = facts_of(made)
    assert Sentences(facts).still(RULES["still"](facts)) == "1 process did not move: app (in fsync)."


# Cores.


def test_sentences_on_cores_are_in_order_and_two_of_each() -> None:
    def verdict(rule: str) -> Verdict:
        made = {"quota": with_quota(profile(), SECOND), "crowd": crowd(), "pool-anew": pools()}[rule]
        return RULES[rule](facts_of(made))[0]

    rules = ("pool-anew", "crowd", "quota", "quota", "crowd", "quota")
    held = Verdict("held-up", "io", 1, 1, frozenset())
    sentences = all_of_cores([*map(verdict, rules), held])
    assert [sentence.split()[0] for sentence in sentences] == ["A", "A", "The", "The", "serve"]
    assert all_of_cores([held]) == ()


def test_who_has_a_lock_is_told_instead_of_with_whom_waits_end() -> None:
    facts = facts_of(locked())
    judgement = judge(facts)
    assert [verdict.rule for verdict in judgement.blamed] == ["holder", "ends-with"]
    assert (
        Sentences(facts).blamed(judgement).startswith("For 30.0 % of its time, 1 thread waits for the mutex table of")
    )
    facts = facts_of(ending_with_others())
    assert Sentences(facts).blamed(judge(facts)).startswith("100.0 % of what the main thread of app waits for others")
    facts = facts_of(MINIMAL["held-up"]())
    assert Sentences(facts).blamed(judge(facts)) == ""
