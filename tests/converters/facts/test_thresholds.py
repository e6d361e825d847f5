"""Each threshold is pinned from both sides: a little below it another verdict is found than a little above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from processes import pools
from processes import process as add_process
from processes import profile as no_waits
from processes import threads as add_threads
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.gil import gil_shares
from stallscope.converters.facts.thresholds import Threshold
from stallscope.converters.model import Profile
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.phrases.gil import gil_sentence
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules import busy, for_others, gil_main, held_up, pool_anew, quota
from stallscope.converters.rules import crowd as crowds
from stallscope.converters.rules import herd as herds
from stallscope.converters.rules import workers as of_workers
from stallscope.converters.rules.causes import cause_of, last_of_all
from stallscope.converters.rules.for_others import effects, waits_beside_work
from stallscope.converters.rules.ranking import judge
from summary_profiles import LIBC, MS, POLL, POOL, READ, SECOND, SLEEP, SPIN, Tracee, empty, facts_of, user, waiting
from verdict_profiles import FSYNC, blocked, held_by_gil, herd, one, whole_host, with_quota, workers

TEN = 10 * SECOND


class Pin(NamedTuple):
    """A value below the threshold, one above (or both, where it is a number of things), and what is found of either."""

    below: float
    above: float
    found: Callable[[float], object]


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
    """Whether a peer is the cause that sleeps for this share of its time."""
    profile = waiting(READ, (5, 5, "server", SLEEP, round(x * 10_000)))
    server = profile.threads[-1]
    server.wall, server.on_cpu = TEN, 0
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


# Threads and cores.


def found_crowd(
    threads: int, *, cores: float, waits: float, cpus: str = "0-3", processes: int = 1
) -> crowds.Crowd | None:
    """Processes that use so many cores, and wait for so many, over all; cores below 1 are a quota."""
    made = no_waits()
    limits = (CpuLimit("/small", 10_000, 100_000),) if cores + waits < 1 else ()
    for pid in range(1000, 1000 + 100 * processes, 100):
        add_process(made, pid, "train", cpus=cpus, limits=limits)
        number = threads * processes
        add_threads(
            made, pid, "train", "w", threads, on_cpu=round(cores * TEN / number), runnable=round(waits * TEN / number)
        )
    found = crowds.find(facts_of(made))
    if not found:
        return None
    detail = found[0].detail
    assert isinstance(detail, crowds.Crowd)
    return detail


def is_crowd(threads: int, *, cores: float, waits: float) -> bool:
    return found_crowd(threads, cores=cores, waits=waits) is not None


def members(x: float) -> tuple[str, ...]:
    made = no_waits()
    for pid, name, share in ((10, "a", 1), (20, "b", 1), (30, "little", 2 * x / (1 - x))):
        add_process(made, pid, name, cpus="0")
        add_threads(made, pid, name, name, on_cpu=round(share * TEN / 2), runnable=round(share * TEN / 2))
    (found,) = crowds.find(facts_of(made))
    assert isinstance(found.detail, crowds.Crowd)
    return found.detail.names


def matters_for_host(x: float) -> bool:
    profile = with_quota(no_waits(), round(x * TEN))
    add_process(profile, 7, "other")
    add_threads(profile, 7, "other", "other", on_cpu=TEN)
    return bool(quota.find(facts_of(profile)))


def is_hint(x: float) -> bool:
    """Whether the variables are one for eight processes of which each wants so many cores."""
    found = found_crowd(2, cores=4, waits=8 * x - 4, processes=8)
    return found is not None and found.has_variables


def others_have_cores(x: float) -> bool:
    found = found_crowd(8, cores=4 * x, waits=4)
    return found is not None and found.others_have_cores


def throttled(periods: int, ns: float) -> bool:
    return quota.throttles(CpuLimit("/x", 50_000, 100_000, 1_000, periods, round(ns)), TEN)


def made_anew(**given: int) -> bool:
    return bool(pool_anew.find(facts_of(pools(**given))))


def few_anew(x: float) -> bool:
    """So many threads in a trace that is short enough for them to be many a second."""
    made = pools(1, round(x))
    made.duration_ns, made.threads[0].on_cpu = SECOND // 5, 0
    return bool(pool_anew.find(facts_of(made)))


# Python's interpreter lock.


def gil_told(x: float, holder: float = 1, function: float = 1) -> str:
    """What is said of threads that wait for this share of their time, while one has it for a share of that, and is in
    a function for a share of that."""
    time = round(x * TEN)
    having = round(holder * time)
    in_function = round(function * having)
    holders = [GilThread("loader", 9, in_function, 4, ("main", "hog")), GilThread("loader", 9, having - in_function, 4)]
    shares = gil_shares([GilTimes("train.py", 7, time, 9, holders=holders)], one(SLEEP, TEN).threads)
    shares = tuple(share._replace(wall=TEN) for share in shares)
    return gil_sentence(shares)


# Confidence: how much of another verdict is as much.


def first(profile: Profile, has_samples: bool = False) -> str:
    return judge(facts_of(profile, has_samples=has_samples)).first.rule  # type: ignore[union-attr]


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


def after_its_cause(x: float, made: Profile, rule: str, of: int, has_samples: bool = False) -> bool:
    """Whether a verdict with this share of the score comes before one that is capped."""
    ranked = [each.rule for each in judge(facts_of(with_quota(made, round(x * of)), has_samples=has_samples)).verdicts]
    return "quota" in ranked[: ranked.index(rule)]


def between(x: float) -> bool:
    """The same where a quota keeps a main thread waiting: another one's verdict comes between them."""
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
    """What is first beside a verdict with this share of a wait (of ``of`` ns)."""

    def found(x: float) -> str:
        copy = replace(made, threads=list(made.threads), processes=[])
        return first(with_quota(copy, round(x * of)), has_samples)

    return found


PINS: dict[str, tuple[Pin, ...]] = {
    "SIGNIFICANT": (
        Pin(0.049, 0.051, held_up_for),
        Pin(0.049, 0.051, held_up_beside_others),
        Pin(0.049, 0.051, waits_for_others),
        Pin(0.049, 0.051, is_busy),
        Pin(0.049, 0.051, works_beside),
    ),
    "TELLING": (Pin(0.098, 0.102, places_told),),
    "WORTH": (Pin(0.098, 0.102, lambda x: is_second(with_quota(blocked(TEN, MS), round(x * TEN)))),),
    "WORTH_RUNNING": (Pin(0.39, 0.41, lambda x: is_second(blocked(TEN, round(x * TEN)))),),
    "AT_WORK_SWITCHES": (Pin(4.8, 5, lambda x: are_at_work(0.0001, round(10 * x))),),
    "AT_WORK_CPU": (Pin(0.0049, 0.0051, are_at_work),),
    "SLIGHT": (Pin(0.019, 0.021, lambda x: confidence(whole_host(one(READ, 9 * SECOND, runs=round(x * TEN))))),),
    "RELATED_NAMES": (Pin(6, 7, related),),
    "CAUSE": (
        Pin(0.195, 0.205, occupied),
        Pin(0.195, 0.205, occupied_while),
        Pin(0.195, 0.205, comes_last),
    ),
    "LATE_TIMES": (Pin(1.95, 2.05, lambda x: comes_last(x * 0.2, longest=0.2, least=0.7)),),
    "LATE_WAITS": (Pin(0.33, 0.34, lambda x: comes_last(0.5, waits=0.9 * x)),),
    "HERD_THREADS": (Pin(7, 8, lambda x: is_herd(herd(round(x)))),),
    "HERD_RUNS": (Pin(19_900, 20_100, lambda x: is_herd(herd(runs=x))),),
    "HERD_WAKEUPS": (Pin(99, 100, lambda x: is_herd(herd(often=x))),),
    "HERD_ALIKE": (Pin(0.66, 0.67, lambda x: is_herd(herd(last=x))),),
    "CROWDED": (Pin(1.19, 1.21, lambda x: is_crowd(8, cores=2, waits=4 * x - 2)),),
    "CROWD_WAITS": (Pin(0.195, 0.205, lambda x: is_crowd(8, cores=8 * (1 - x), waits=8 * x)),),
    "CROWD_CORE": (Pin(0.049, 0.051, lambda x: is_crowd(2, cores=0.15, waits=x)),),
    "CROWD_MEMBER": (Pin(0.049, 0.051, members),),
    "MATTERS_FOR_HOST": (Pin(0.0195, 0.0205, matters_for_host),),
    "POOLS_WANT": (Pin(1.45, 1.55, is_hint),),
    "CORES_TAKEN": (Pin(0.59, 0.61, others_have_cores),),
    "THROTTLED": (
        Pin(0.019, 0.02, lambda x: throttled(round(x * 1_000), 0)),
        Pin(0.0199, 0.0201, lambda x: throttled(0, x * TEN)),
    ),
    "ANEW_PER_SECOND": (Pin(49, 50, lambda x: made_anew(number=round(10 * x))),),
    "ANEW_THREADS": (Pin(19, 20, few_anew),),
    "ANEW_LIFE": (Pin(0.199, 0.201, lambda x: made_anew(number=600, life=round(x * TEN))),),
    "GIL_MATTERS": (Pin(0.049, 0.051, lambda x: bool(gil_told(x))),),
    "GIL_HOLDER": (
        Pin(0.099, 0.101, lambda x: "loader" in gil_told(0.5, x)),
        Pin(0.099, 0.101, lambda x: "hog" in gil_told(0.5, 1, x)),
    ),
    "GIL_MAIN": (Pin(0.499, 0.5, lambda x: bool(gil_main.find(facts_of(held_by_gil(round(x * TEN)))))),),
    "SLEEP_SAVES": (Pin(0.49, 0.51, peer_over_sleep),),
    "EVENTS_SAVE": (Pin(0.195, 0.205, rival(waiting(POLL), 9_900 * MS)),),
    "EVENTS_BESIDE_WORK_SAVE": (Pin(0.59, 0.61, rival(one(POLL, 9 * SECOND, runs=SECOND), 9 * SECOND)),),
    "ASIDE_SAVES": (Pin(0.49, 0.51, aside), Pin(0.49, 0.51, rival(workers(), 16 * SECOND))),
    "UNKNOWN_SAVES": (
        Pin(0.195, 0.205, never_moved),
        Pin(0.195, 0.205, rival(whole_host(waiting(READ)), 9_900 * MS)),
    ),
    "RUNNING_SAVES": (Pin(0.49, 0.51, rival(one(SLEEP, MS, runs=TEN), TEN)),),
    "SAMPLED_SAVES": (Pin(0.99, 1.01, rival(one(SLEEP, MS, runs=TEN), TEN, has_samples=True)),),
    "QUEUED_SAVES": (Pin(0.74, 0.76, rival(one(SPIN, TEN, state="runnable-preempted"), TEN)),),
    "EXPLAINED": (
        Pin(0.985, 0.995, between),
        Pin(
            0.985,
            0.995,
            lambda x: after_its_cause(x, one(POLL, 6 * SECOND, runs=4 * SECOND), "busy", 3_600 * MS, has_samples=True),
        ),
    ),
    "MOSTLY_ONE": (Pin(0.69, 0.71, said_of_busy),),
}
"""By the names of thresholds: a new one needs one, too."""

ALL = [(name, pin) for name, pins in PINS.items() for pin in pins]


def test_all_are_pinned() -> None:
    assert list(PINS) == list(thresholds.table())


@pytest.mark.parametrize(("name", "pin"), ALL)
def test_it_decides_at_its_value(name: str, pin: Pin) -> None:
    assert pin.below <= thresholds.table()[name] <= pin.above
    assert pin.found(pin.below) != pin.found(pin.above)


@pytest.mark.parametrize(("name", "pin"), ALL)
def test_it_alone_decides(name: str, pin: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a higher one, both sides are below it: no other number is pinned here."""
    below = pin.found(pin.below)
    higher = Threshold(pin.above * 1.1, "", "")
    monkeypatch.setattr(thresholds, name, higher)
    assert pin.found(pin.above) == below


@pytest.mark.parametrize(("name", "threshold"), thresholds.table().items())
def test_each_has_a_unit_and_a_reason(name: str, threshold: Threshold) -> None:
    assert threshold.unit
    assert threshold.reason.endswith(".")
    assert not threshold.reason.endswith("..")
    assert repr(threshold) == f"Threshold({float(threshold):g}, {threshold.unit!r})"
