"""Sentences and commands about so many things, made by hand: whether all of them are told. See pins.py."""

from __future__ import annotations

from dataclasses import replace

from alike import of_calls
from core_pins import found_crowd
from gil_profiles import gil, threads
from processes import process as add_process
from processes import profile as no_waits
from processes import threads as add_threads
from said_pins import beside
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.facts.gil import gil_shares
from stallscope.converters.facts.pools import Pool
from stallscope.converters.facts.teams import Team
from stallscope.converters.facts.wait_kinds import PEER
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model.gil import GilThread
from stallscope.converters.model.processes import THREAD_VARIABLES, CpuLimit
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import SlowSteps, Spent, StepWait
from stallscope.converters.model.waits_for import waits_for
from stallscope.converters.phrases import cores
from stallscope.converters.phrases.gil import gil_sentence
from stallscope.converters.phrases.pools import pools
from stallscope.converters.phrases.sentences import Sentences, all_of_cores
from stallscope.converters.phrases.steps import slow_steps
from stallscope.converters.phrases.teams import teams
from stallscope.converters.phrases.words import Phrases, listed
from stallscope.converters.rules.quota import Throttled
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.verdict import CORES, Verdict
from stallscope.converters.summary.answer import Answer
from stallscope.converters.summary.critical import Contribution, Critical, critical_sentence
from stallscope.converters.summary.figures import Process
from stallscope.converters.summary.next_command import next_command
from stallscope.converters.summary.outside_ioctls import line
from stallscope.converters.summary.step_sentences import sentences
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.summary.waits_for import blocking_of
from step_traces import recorded
from summary_profiles import EXE, LIBC, MS, POLL, READ, SECOND, Tracee, empty, facts_of, kernel, user
from wait_graphs import chained, profile_of

TEN = 10 * SECOND
SMALL = CpuLimit("/small", 50_000, 100_000, 100, 98, SECOND)


def waits_for_peer(x: float) -> bool:
    """Whether a wait is for a peer, if the function that says so is so many-th innermost in its library."""
    library = user(
        LIBC._replace(path="/usr/lib/libclient.so.1"), "recv_reply", *(f"inner{i}" for i in range(round(x) - 1))
    )
    stack = (*user(EXE, "main"), *library, *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
    return wait_of(stack, "interruptible").kind == PEER


def told_apart(x: float) -> bool:
    profile = empty()
    for tid in range(2, 12):
        Tracee(profile, 1, "app", tid, "w").run(SECOND)
    facts = facts_of(profile)
    return "tid" in Phrases(facts.threads).subject(tuple(facts.threads)[: round(x)])


def names_listed(x: float) -> bool:
    """A single name more is no longer than its number."""
    return "more" not in listed([f"n{i}" for i in range(round(x) + 1)])


def teams_named(x: float) -> bool:
    found = [Team(1, f"f{i}", "libgomp", frozenset((1, 2)), 1) for i in range(round(x))]
    return "more" not in teams(found)


def pools_named(x: float) -> bool:
    found = [Pool(1, "app", f"w{i}", "f", (), (), 2, frozenset((1, 2)), 0, 9, 1, 1) for i in range(round(x))]
    return "more" not in pools(found)


def processes_named(x: float) -> bool:
    made = no_waits()
    for i in range(round(x)):
        add_process(made, 10 + i, chr(97 + i) * 2)
        add_threads(made, 10 + i, chr(97 + i) * 2, "w")
    return "others" not in cores.quota(Throttled(SMALL, tuple(contention_of(made))))


def environment(*variables: dict[str, str]) -> str:
    crowd = found_crowd(8, cores=4, waits=40)
    assert crowd
    return cores.crowd(crowd._replace(group=replace(crowd.group, environments=variables), has_variables=True))


def values_named(x: float) -> bool:
    return "others" not in environment(*({THREAD_VARIABLES[0]: str(i)} for i in range(round(x))))


def variables_named(x: float) -> bool:
    """Whether one is named that is not set."""
    return THREAD_VARIABLES[round(x) - 1] in environment({THREAD_VARIABLES[-1]: "1"})


def all_of(x: float) -> bool:
    made = no_waits()
    add_process(made, 7, "train")
    add_threads(made, 7, "train", "w")
    quotas = [
        Verdict("quota", CORES, 1, 1, frozenset((7,)), detail=Throttled(SMALL, tuple(contention_of(made))))
        for _ in range(round(x))
    ]
    return len(all_of_cores(quotas)) == len(quotas)


def still_places(x: float) -> bool:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(POLL, "interruptible", 9 * SECOND, 500)
    for pid in range(10, 10 + round(x)):
        Tracee(profile, pid, "stuck", pid, "stuck").wait(
            (*user(EXE, "main", f"f{pid}"), *READ[1:]), "interruptible", TEN, still=True
        )
    facts = facts_of(profile)
    return "(in main" in Sentences(facts).still(judge(facts).still)


def gil_named(x: float) -> bool:
    number = round(x)
    holders = [GilThread(f"h{chr(97 + i)}", 9 + i, 300 // number, 4) for i in range(number)]
    return gil_sentence(gil_shares([gil(holders=holders)], threads())).count("has it") == number


def beside_lock(x: float) -> bool:
    number = round(x)

    def waits(thread: Tracee) -> None:
        for i in range(number):
            stack = (*user(EXE, "main", f"save{i}"), *user(LIBC, "fsync"), *kernel("__x64_sys_fsync", "folio_wait_bit"))
            thread.wait(stack, "uninterruptible", 400 * MS, 9)

    return beside(waits).count("blocked in") == number


def slow_places(x: float) -> bool:
    number = round(x)
    waits = tuple(StepWait(Site((f"f{i}",), ""), 2_000, 1) for i in range(number))
    spent, steps = Spent(1, 11_000, 1_000, 10_000, waits), steps_of(recorded())[0]
    return slow_steps(steps, SlowSteps(spent, Spent(1, 1_000, 1_000, 0), 3, None)).count("a step in") == number


def step_functions(x: float) -> bool:
    (steps,) = steps_of(recorded())
    return len(sentences([replace(steps, name=f"f{i}") for i in range(round(x))])) == round(x)


def things_on_path(x: float) -> bool:
    number = round(x)
    parts = [Contribution("train-5", 5, "interruptible", (f"f{i}",), 100, 1) for i in range(number)]
    return critical_sentence(Critical("train-5", 5, 100 * number, number, tuple(parts))).count("blocked in") == number


def knot_named(x: float) -> bool:
    pids = [10 + i for i in range(round(x))]
    ring = [chained(pid, pid, 100, (f"p-{to}", to, "t")) for pid, to in zip(pids, [*pids[1:], pids[0]], strict=True)]
    (knot,) = blocking_of(waits_for(profile_of(*ring)), set()).knots
    return len(knot.members) == len(pids)


def alike_groups(x: float) -> bool:
    made = of_calls(ranks=False)
    for i in range(1, round(x)):
        other = of_calls(ranks=False, name=f"app{chr(97 + i)}")
        for each in (*other.calls, *other.processes):
            each.pid += 1_000 * i
        made.calls += other.calls
        made.processes += other.processes
    return len(summarize(made).alike) == round(x)


def chosen_by_pid(x: float) -> bool:
    step = next_command(Answer((), "lock"), False, [Process("train", tuple(range(10, 10 + round(x))))])
    return step is not None and "-p" in step.whom.options


def ioctls_named(x: float) -> bool:
    return "other" not in line([(f"IO_{i} /dev/x", MS) for i in range(round(x))])
