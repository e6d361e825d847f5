"""Findings of rules in profiles made by hand, by the quantity that a threshold is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from processes import process as add_process
from processes import threads as add_threads
from stallscope.converters.facts.gil import gil_shares
from stallscope.converters.facts.inner_function import with_inner
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.phrases.gil import gil_sentence
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules import (
    busy,
    calm,
    for_others,
    held_up,
    idle,
    polling,
    unclear,
)
from stallscope.converters.rules import herd as herds
from stallscope.converters.rules import workers as of_workers
from stallscope.converters.rules.causes import cause_of, last_of_all
from stallscope.converters.rules.for_others import effects, waits_beside_work
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.verdict import POLLING, kind_of
from stallscope.converters.scan import nameless_code
from summary_profiles import (
    EXE,
    LIBC,
    MS,
    POLL,
    POOL,
    READ,
    SECOND,
    SLEEP,
    Tracee,
    empty,
    facts_of,
    kernel,
    user,
    waiting,
)
from verdict_profiles import COMPUTE, FSYNC, LOCK, blocked, calm_host, one, sampled, serving, with_quota, yielding

TEN = 10 * SECOND
TICK = kernel("asm_sysvec_apic_timer_interrupt")


# What is worth a sentence.


def held_up_for(x: float) -> bool:
    return bool(held_up.find(facts_of(blocked(round(x * TEN), round((1 - x) * TEN)))))


def held_up_beside_others(x: float) -> bool:
    """A thread that is blocked nearly all the time, for this share of all threads' time."""
    profile = blocked(round(x * TEN), MS)
    Tracee(profile, 5, "other", 5, "other").run(round((1 - x) * TEN))
    return bool(held_up.find(facts_of(profile)))


def waits_for_others(x: float) -> bool:
    return bool(effects(facts_of(one(READ, round(x * TEN), runs=round((1 - x) * TEN)))))


def is_busy(x: float) -> bool:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(round(x * TEN))
    for stack in (SLEEP, READ):
        main.wait(stack, "interruptible", round((1 - x) * TEN / 2), 9)
    return bool(busy.find(facts_of(profile)))


def works_beside(x: float) -> bool:
    facts = facts_of(one(POLL, round((1 - x) * TEN), runs=round(x * TEN)))
    return waits_beside_work(effects(facts)[0], facts)


def places_told(x: float) -> int:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(SECOND)
    for stack, share in ((FSYNC, x), ((*user(LIBC, "start_thread"), *FSYNC[1:]), 1 - x)):
        main.wait(stack, "uninterruptible", round(share * TEN), 9)
    (held,) = held_up.held_up(facts_of(profile))
    return len(held.places)


def is_second(profile: Profile) -> bool:
    return judge(facts_of(profile, has_samples=True)).second is not None


def is_unclear(x: float) -> bool:
    profile = one(SLEEP, round((0.9 - x) * TEN), runs=SECOND)
    profile.threads[0].wall = TEN
    profile.samples += one((Frame("[lost]", "other"),), round(x * TEN), state="other").samples
    return bool(unclear.find(facts_of(profile)))


# Who is at work.


def are_at_work(x: float, switches: int = 10) -> bool:
    """Whether workers that use so many cores are looked at."""
    profile = empty()
    worker = Tracee(profile, 1, "app", 2, "w").run(round(x * TEN))
    worker.wait(READ, "interruptible", 5 * SECOND, switches - 5).wait(SLEEP, "interruptible", 5 * SECOND, 5)
    return bool(of_workers.find(facts_of(profile)))


def confidence(profile: Profile) -> float:
    return for_others.find(facts_of(profile))[0].confidence


def related(x: float) -> bool:
    """Whether a peer is the cause where programs of so many names are traced."""
    profile = waiting(READ, (5, 5, "server", SLEEP, 6_000))
    for pid in range(10, 8 + round(x)):
        add_threads(profile, pid, chr(pid + 87), "x", wall=0)
    return has_cause(profile)


# Who keeps others waiting.


def has_cause(profile: Profile) -> bool:
    facts = facts_of(profile)
    return cause_of(facts, effects(facts)[0]) is not None


def occupied(x: float) -> bool:
    """Whether a peer is the cause that sleeps for this share of its time, during a wait of 5 s."""
    profile = one(READ, TEN // 2, runs=TEN // 2)
    server = Tracee(profile, 5, "server", 5, "server").wait(SLEEP, "interruptible", round(x * TEN))
    server.times.wall = TEN
    return has_cause(profile)


def occupied_while(x: float) -> bool:
    """Whether a peer is the cause that lives for this share of the wait, and always sleeps."""
    profile = one(READ, TEN)
    Tracee(profile, 5, "server", 5, "server").wait(SLEEP, "interruptible", round(x * TEN))
    return has_cause(profile)


def comes_last(own: float, *, longest: float = 0.01, waits: float = 0.1, least: float = 0.9) -> bool:
    """Whether a thread with these shares of its own time, and of waits, comes last where the longest waiter has the
    others."""
    profile = empty()
    for tid, mine, there in ((2, longest, least), (3, own, waits)):
        of = Tracee(profile, 1, "app", tid, "shard").run(round(mine * TEN))
        of.wait(POOL, "interruptible", round(there * TEN), 90).wait(
            POLL, "interruptible", round((1 - mine - there) * TEN)
        )
    facts = facts_of(profile)
    return bool(last_of_all(facts, next(each for each in effects(facts) if each.kind == "thread"), []))


# Threads woken in vain.


def is_herd(profile: Profile) -> bool:
    return bool(herds.find(facts_of(profile)))


# Running.


def polls(profile: Profile) -> bool:
    return bool(polling.find(facts_of(profile)))


def polls_for(x: float) -> bool:
    """A thread that sleeps for the rest."""
    profile = yielding(20, 0)
    profile.threads[0].on_cpu = round(x * TEN) - 20 * MS
    profile.threads[0].wall = TEN
    return polls(profile)


def busy_beside(x: float) -> bool:
    """Whether it is told who runs for this share of all time, while another thread polls."""
    profile = yielding(20, 0)
    Tracee(profile, 5, "other", 5, "other").run(round(x * TEN)).wait(FSYNC, "uninterruptible", round((0.8 - x) * TEN))
    profile.threads[0].wall = TEN // 5
    profile.threads[0].on_cpu = TEN // 5 - 20 * MS
    return "busy" in {each.rule for each in judge(facts_of(profile)).verdicts}


def is_inside(x: float) -> bool:
    """Whether a function inside of a place is told that has this share of its samples."""
    inside = round(100 * x)
    return with_inner(("load",), {("load", "read", "inflate"): inside, ("load",): 100 - inside}, 100) != ("load",)


def is_nameless(x: float) -> bool:
    """Whether it is told that this share of the samples has no names."""
    nameless = (*COMPUTE[:2], Frame("[anon]", "native", Module("[anon]")))
    facts = facts_of(sampled(nameless, COMPUTE, samples=(round(100 * x), round(100 * (1 - x)))))
    return bool(nameless_code.sentences(facts, {pid for pid, _ in facts.runs}))


def runs_in(x: float) -> bool:
    """Whether a place with this share of the preemptions is told, beside many others."""
    profile = yielding(0, round(100 * x))
    for i in range(round(100 * (1 - x))):
        stack = (*user(EXE, "main", f"f{i}"), *TICK)
        tracee(profile).wait(stack, "runnable-preempted", MS)
    return bool(busy.busy(facts_of(profile))[0].runs_in)


def tracee(profile: Profile) -> Tracee:
    """The first thread of a profile again."""
    made = Tracee(profile, 1, "app", 1, "app")
    profile.threads.pop()
    made.times = profile.threads[0]
    return made


def sleeps_again(number: float, length: float) -> bool:
    """Whether threads poll that sleep so often for so many ns."""
    count = round(number)
    facts = facts_of(one(SLEEP, round(length * count), runs=MS, count=count))
    return kind_of(effects(facts)[0]) == POLLING


def hardly_runs(x: float) -> bool:
    return bool(idle.find(facts_of(serving(runs=round(x * TEN)))))


def has_nothing_to_do(x: float) -> bool:
    return bool(calm.find(facts_of(calm_host(runs=round(x * TEN)))))


def stuck(x: float) -> str:
    """Rule of what is first if a process is blocked for the whole trace while others work, beside a quota that costs
    this share of that."""
    profile = blocked(MS, MS)
    Tracee(profile, 1, "app", 2, "w").run(round(0.2 * TEN))
    Tracee(profile, 5, "stuck", 5, "stuck").wait(LOCK, "interruptible", TEN)
    return first(with_quota(profile, round(x * TEN)))


def loses_core_in(works: int, asks: int) -> bool:
    """Whether the place is told in which a thread that works lost its core so many times."""
    facts = facts_of(yielding(asks, works))
    lost = busy.lost_in(facts, busy.busy(facts)[0])
    return lost is not None and "compute" in lost.frames


# Python's interpreter lock.


def gil_told(x: float, holder: float = 1, function: float = 1) -> str:
    """Sentence on threads that wait for this share of their time, while one has it for a share of that, and is in a
    function for a share of that."""
    time = round(x * TEN)
    having = round(holder * time)
    in_function = round(function * having)
    holders = [GilThread("loader", 9, in_function, 4, ("main", "hog")), GilThread("loader", 9, having - in_function, 4)]
    shares = gil_shares([GilTimes("train.py", 7, time, 9, holders=holders)], one(SLEEP, TEN).threads)
    shares = tuple(share._replace(wall=TEN) for share in shares)
    return gil_sentence(shares)


# Confidence: how much of another verdict is as much.


def first(profile: Profile, has_samples: bool = False) -> str:
    found = judge(facts_of(profile, has_samples=has_samples)).first
    return found.rule if found else ""


def peer_over_sleep(x: float) -> str:
    """Whether the main thread that waits for a peer for this share of another one's sleep is told first."""
    profile = one(SLEEP, 9 * SECOND, runs=SECOND)
    Tracee(profile, 5, "client", 5, "client").run(SECOND).wait(READ, "interruptible", round(x * 9 * SECOND), 500)
    return for_others.find(facts_of(profile))[0].kind


def aside(x: float) -> str:
    """A main thread sleeps for this share of the time for which a thread of another process is blocked."""
    profile = one(SLEEP, round(x * 8 * SECOND), runs=100 * MS)
    Tracee(profile, 5, "other", 6, "w").run(100 * MS).wait(FSYNC, "uninterruptible", 8 * SECOND, 500)
    return first(profile)


def never_moved(x: float) -> str:
    """A main thread that waits for an unknown peer all the time; a worker moves."""
    profile = one(READ, TEN)
    Tracee(profile, 1, "app", 2, "w").run(100 * MS)
    return first(with_quota(profile, round(x * TEN)))


def before_running(x: float) -> bool:
    """A thread runs for 4 s and waits for few events for 6 s, with a score of 3.6 s: whether a verdict with this share
    of that is told before the running."""
    made = with_quota(one(POLL, 6 * SECOND, runs=4 * SECOND), round(x * 3_600 * MS))
    ranked = [each.rule for each in judge(facts_of(made, has_samples=True)).verdicts]
    return ranked.index("quota") < ranked.index("busy")


def between(x: float) -> bool:
    """A quota keeps a main thread waiting: whether another one's verdict comes between them."""
    made = with_quota(waiting(READ), 5 * SECOND, pid=1)
    add_threads(made, 98, "rival", "rival", wall=0)
    add_process(made, 98, "rival", limits=(CpuLimit("/rival", 50_000, 100_000, 100, 98, round(x * 5 * SECOND)),))
    ranked = [each.pids if each.rule == "quota" else each.rule for each in judge(facts_of(made)).verdicts]
    return ranked.index(frozenset((98,))) < ranked.index("for-others")


def said_of_busy(x: float) -> bool:
    """Whether threads of one name are told alone that have this share of the time on cores."""
    profile = one(SLEEP, 10 * MS, runs=round(x * TEN))
    Tracee(profile, 1, "app", 2, "w").run(round((1 - x) * TEN))
    facts = facts_of(profile)
    return "main thread" in Sentences(facts).of(busy.find(facts)[0])


def rival(made: Profile, of: int, has_samples: bool = False) -> Callable[[float], str]:
    """Function for what is first beside a verdict with this share of a wait (of ``of`` ns)."""

    def found(x: float) -> str:
        copy = replace(made, threads=list(made.threads), processes=[])
        return first(with_quota(copy, round(x * of)), has_samples)

    return found
