"""Facts of profiles made by hand, by the quantity that a threshold is compared with. See pins.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from file_lock_profiles import SEEN
from idle_hosts import NETWORK, POOL, SLEEP, TIMER, Host, kinds
from job_profiles import job
from lock_profiles import lock
from stallscope.converters.facts.for_ancestors import are_for_work
from stallscope.converters.facts.group_limits import limit_of
from stallscope.converters.facts.hot_function import hot_function
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.facts.locks import is_convoy
from stallscope.converters.facts.sampling import are_few, shown_share
from stallscope.converters.facts.shared_frames import shared_frames
from stallscope.converters.facts.slow_steps import Slow, slow_steps
from stallscope.converters.facts.wait_kinds import LOCK
from stallscope.converters.facts.wait_objects import On, on_of, with_peer
from stallscope.converters.model import Module, Profile, Sample, ValueType
from stallscope.converters.model.file_locks import LockAsker
from stallscope.converters.model.group_limits import READ_BYTES, GroupLimit
from stallscope.converters.model.origins import Ancestor, ProcessOrigin
from stallscope.converters.model.wait_objects import (
    EVENTS,
    FILE,
    LABEL,
    PIPE,
    TCP,
    WRITES,
    ObjectEnd,
    ObjectPeer,
    WaitObject,
)
from stallscope.converters.rules import all_wait
from stallscope.converters.rules.for_others import effects, find
from stallscope.converters.rules.rank_states import states_of
from summary_profiles import EXE, MS, READ, SECOND, Tracee, empty, facts_of, user
from summary_profiles import POOL as PARKED
from summary_profiles import SLEEP as SLEEPS
from verdict_profiles import JOIN, one

TEN = 10 * SECOND


def asks_as_often(x: float) -> bool:
    """Whether a process that was refused a lock so many times for each of its sleeps waits for the lock."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(SLEEPS, "interruptible", TEN, 1000)
    profile.file_locks = [replace(SEEN, requests=round(1000 * x))]
    ((place, _),) = facts_of(profile).waits_of((1, 1)).items()
    return place.kind == LOCK


def sleeps_as_often(x: float) -> bool:
    """Whether a process that sleeps so many times for each of the requests that were refused waits for the lock."""
    return asks_as_often(1 / x)


def asks_enough(x: float) -> bool:
    """Whether a thread that was refused a lock so many times, and slept each time, waits for the lock."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(SLEEPS, "interruptible", TEN, round(x))
    profile.file_locks = [replace(SEEN, requests=round(x), askers=[LockAsker(1, round(x))])]
    ((place, _),) = facts_of(profile).waits_of((1, 1)).items()
    return place.kind == LOCK


def passes_on(x: float) -> bool:
    """Whether a function with a second caller, which has this share of its time, is one of many waits."""
    stacks = [(user(EXE, caller, "wait_here"), time) for caller, time in (("load", 1 - x), ("save", x))]
    return bool(shared_frames([(stack, round(time * TEN)) for stack, time in stacks]).called)


def is_rough(x: float) -> bool:
    """Whether half of the samples, of which the standard error is this, are told without decimals."""
    return "about" in shown_share(round(0.25 / x**2 / 2), 1, 2)


def are_enough(x: float) -> bool:
    return not are_few(round(x), 1, 1)


def is_quiet(x: float) -> bool:
    return facts_of(one(READ, round(x * TEN), runs=round((1 - x) * TEN))).is_quiet((1, 1))


def is_quiet_but_for_a_core(x: float) -> bool:
    """Whether a thread is quiet that waits for a core whenever it does not wait, this share of its time, for a peer."""
    profile = one(READ, round(x * TEN))
    profile.samples += one(READ, round((1 - x) * TEN), state="runnable-woken").samples
    profile.threads[0].wall, profile.threads[0].runnable = TEN, round((1 - x) * TEN)
    return facts_of(profile).is_quiet((1, 1))


def is_quiet_beside(x: float) -> bool:
    """Whether a thread of a pool is quiet that waits for this share of its time, beside one that is."""
    profile = empty()
    Tracee(profile, 1, "app", 2, "w").wait(PARKED, "interruptible", TEN)
    Tracee(profile, 1, "app", 3, "w").run(round((1 - x) * TEN)).wait(PARKED, "interruptible", round(x * TEN))
    return (1, 3) in facts_of(profile).roles.quiet


def gets_on(x: float) -> bool:
    """Whether two parked threads are idle beside a main thread that runs for this share of its time."""
    profile = one(READ, round((1 - x) * TEN), runs=round(x * TEN))
    for tid in (2, 3):
        Tracee(profile, 1, "app", tid, "w").wait(PARKED, "interruptible", TEN)
    return bool(facts_of(profile).roles.idle)


def parked_beside(x: float) -> bool:
    """Profile in which it is recorded that the main thread ends their waits."""
    host = Host()
    for tid in (8, 9):
        host.wait(7, tid, POOL, 1_000, ("app-7", 7, "app"), NETWORK)
    made = host.made()
    made.threads[0].on_cpu = round(x * SECOND)
    return bool(kinds(made))


def only_waits(x: float) -> bool:
    """Whether a thread is idle that waits for its timer for this share of its time."""
    return bool(kinds(Host().wait(7, 7, SLEEP, round(x * 1_000), TIMER, each=90).made()))


def ends_alike(x: float) -> bool:
    """Whether one is that its timer wakes for this share of its waits, and the network for the rest."""
    host = Host().wait(7, 7, SLEEP, round(x * 1_000), TIMER, each=10)
    return bool(kinds(host.wait(7, 7, SLEEP, 1_000 - round(x * 1_000), NETWORK, each=10).made()))


def has_interval(x: float) -> bool:
    return bool(kinds(Host().wait(7, 7, SLEEP, 980, TIMER, each=980 // round(x)).made()))


def is_steady(x: float) -> bool:
    """Whether a timer is whose longest sleep is so many times the mean."""
    return bool(kinds(Host().wait(7, 7, SLEEP, 980, TIMER, each=98, longest=round(98 * x)).made()))


def is_steady_but_once(x: float) -> bool:
    """Whether one is that was late once, and whose other sleeps are so many times the shortest in the mean."""
    profile = Host().wait(7, 7, SLEEP, 980, TIMER, each=49, longest=150).made()
    shortest = (980 - 150) * MS / 19 / x
    profile.samples[0] = profile.samples[0]._replace(values=(980 * MS, 20, round(shortest), 150 * MS))
    return bool(kinds(profile))


def is_needed(x: float) -> bool:
    """Whether a timer is for which another thread waits for this share of its time."""
    host = Host().wait(7, 8, SLEEP, 980, TIMER, each=98)
    return 8 not in kinds(host.wait(7, 7, POOL, round(x * 1_000), ("app-7", 8, "maker"), TIMER).made())


def is_in_convoy(time: float, waits: float) -> bool:
    return is_convoy(lock(queue=round(time), queue_waits=round(waits)))


def is_hot(x: float) -> bool:
    profile = Profile([ValueType("on-cpu", "nanoseconds"), ValueType("samples", "count")])
    pack = Module("/srv/app/libpack.so")
    for stack, share in ((user(pack, "pack_message"), x), (user(EXE, "main"), 1 - x)):
        profile.samples.append(Sample(stack, (round(share * TEN), 9), (("state", "running"),)))
    return bool(hot_function(profile))


def slow(*walls: float) -> Slow | None:
    return slow_steps(np.array(walls, np.int64))


def slow_among(x: float) -> bool:
    """Whether a slow step among so many is told."""
    return slow(*[100] * (round(x) - 1), 10_000) is not None


def slow_for(x: float) -> bool:
    """Whether a slow step with this share of the time is."""
    return slow(*[100] * 99, 9_900 * x / (1 - x)) is not None


def regular(x: float) -> bool:
    """Whether so many slow steps, every tenth one, come regularly."""
    found = slow(*[10_000, *[100] * 9] * round(x))
    return found is not None and found.every is not None


def regular_for(x: float) -> bool:
    """Whether every tenth step is told that has this share of the slow steps' time, another one the rest."""
    walls: list[float] = [10_000, *[100] * 9] * 4
    walls[15] = 40_000 * (1 - x) / x
    found = slow(*walls)
    return found is not None and found.every is not None


def wait_for_each_other(x: float) -> bool:
    """Whether so many threads do, of which none moves."""
    profile = empty()
    for tid in range(1, round(x) + 1):
        Tracee(profile, 1, "app", tid, "app").wait(JOIN if tid == 1 else PARKED, "interruptible", TEN)
    return bool(all_wait.find(facts_of(profile)))


def is_on_one(x: float) -> object:
    """A wait of which this share is on one file."""
    files = {number: WaitObject(number, FILE, f"/{number}/f") for number in (1, 2)}
    return on_of({1: round(x * TEN), 2: round((1 - x) * TEN)}, TEN, files)


def is_for_one_peer(x: float) -> bool:
    """Whether an event loop waits for the process that ends this share of its waits."""
    peer = ObjectPeer("redis", 7, TCP, "127.0.0.1:6379", 1)
    events = WaitObject(1, EVENTS, peers=[peer])
    return bool(with_peer(On(events, time=TEN), {(1, 7): round(x * TEN)}, {1: events}).woken)


def is_held_back(x: float) -> object:
    """The limit of a disk of which this share was used."""
    limit = GroupLimit("/", READ_BYTES, "io.max rbps", TEN, round(x * TEN), SECOND, ["8:0"], [1])
    return limit_of(WaitObject(1, FILE, "/f", device="8:0"), [limit], [1])


def is_on_several(x: float) -> object:
    """A wait of which this share is on two connections to one address."""
    remote = {number: "10.0.0.5:5432" if number < 3 else "10.0.0.6:80" for number in (1, 2, 3)}
    of = {number: WaitObject(number, TCP, remote=text) for number, text in remote.items()}
    half = round(x * TEN / 2)
    return on_of({1: half, 2: half, 3: TEN - 2 * half}, TEN, of)


def pool(
    *, writer: int = 1, kind: str = PIPE, does: str = WRITES, traced: bool = True, part: float = 1.0, beside: float = 0
) -> Profile:
    """A child (2) that reads from a pipe for this part of its waits, and that its parent (1) has started; and, if it is
    said for how long, another process (5) that waits for a peer."""
    profile = empty()
    if traced:
        Tracee(profile, 1, "feed", 1, "feed").run(TEN)
    child = Tracee(profile, 2, "worker", 2, "worker").run(SECOND)
    child.wait(READ, "interruptible", round(9 * part * SECOND), 90)
    last = profile.samples[-1]
    profile.samples[-1] = last._replace(labels=tuple(sorted({**dict(last.labels), LABEL: 77}.items())))
    if part < 1:
        child.wait(READ, "interruptible", round(9 * (1 - part) * SECOND), 90)
    if beside:
        Tracee(profile, 5, "client", 5, "client").run(SECOND).wait(READ, "interruptible", round(beside * 9 * SECOND), 9)
    profile.objects = [WaitObject(77, kind, does=does, ends=[ObjectEnd("feed", writer)])]
    profile.origins = [ProcessOrigin(2, "worker", [Ancestor(1, "feed"), Ancestor(9, "sh")], "/worker")]
    return profile


def is_for_work(profile: Profile) -> bool:
    """Whether the child waits for work."""
    facts = facts_of(profile)
    return next(are_for_work(facts, each.threads, each.places) for each in effects(facts) if 2 in each.pids)


def comes_first(x: float) -> frozenset[int]:
    """Processes of the verdict on waits for others, if one waits for a peer for this share of the child's time."""
    return find(facts_of(pool(beside=x)))[0].pids


def ranks_differ(x: float) -> bool:
    """Whether ranks do not do alike, of which one has so much more of a kind of time."""
    facts = facts_of(job(0.3, 0.3, 0.3 + x))
    return states_of(facts, jobs_of(facts)[0]).unlike() is not None
