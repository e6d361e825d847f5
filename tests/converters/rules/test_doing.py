"""Work of those who are blamed for the waits of others."""

from __future__ import annotations

from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.waits_for import THREAD, Node, waits_for
from stallscope.converters.phrases.doing import doing
from stallscope.converters.rules.doing import Doings
from summary_profiles import MS, SECOND
from wait_graphs import APP, Link, chained, profile_of

WORKER: Link = ("app-7", 8, "worker")
TIMER: Link = ("[timer]", 0, "")
DISK: Link = ("[interrupt nvme0q1]", 0, "")
SLEEPS = (Frame("main", module=APP), Frame("nap", module=APP), Frame("schedule", "kernel"))


def does(profile: Profile, waiting: int = 1) -> str:
    """Text on what the worker, thread 8 of process 7, does while the threads of the first samples wait for it."""
    waits = [(sample, sample.values[0]) for sample in profile.samples[:waiting]]
    return doing(Doings(waits_for(profile), profile).of({Node(THREAD, 7, 8)}, waits))


def of_worker(profile: Profile, on_cpu: int, runnable: int = 0) -> Profile:
    profile.threads.append(ThreadTimes(7, "app", 8, "worker", SECOND, on_cpu * MS, runnable * MS, {}))
    return profile


def running(tid: int, *names: str) -> Sample:
    stack = tuple(Frame(name, module=APP) for name in names)
    return Sample(stack, (0, 0, 1), (("pid", 7), ("tid", tid), ("state", "running")))


def with_samples(profile: Profile, *samples: Sample) -> Profile:
    """Profile as of trace-wall: its first column is the time of everything."""
    profile.value_types = [ValueType("wall", "nanoseconds"), *profile.value_types, ValueType("samples", "count")]
    profile.samples = [sample._replace(values=(sample.values[0], *sample.values, 0)) for sample in profile.samples]
    profile.samples += [sample._replace(values=(10 * MS, 0, 0, 1)) for sample in samples]
    return profile


def test_it_runs() -> None:
    waits = chained(7, 7, 800 * MS, WORKER)
    assert does(of_worker(profile_of(waits), 900)) == "; it is on a core for 90.0 % of its own time"
    assert does(of_worker(profile_of(waits), 100)) == "", "and mostly waits"
    assert does(profile_of(waits)) == "", "it was not traced"


def test_a_slow_item_now_and_then() -> None:
    """The worker waits for work for the rest of the time; who waits for it waits for as long as it runs."""
    waits = chained(7, 7, 100 * MS, WORKER)
    assert does(of_worker(profile_of(waits), 90)) == "; it is on a core for 9.0 % of its own time"
    others = [chained(7, tid, 20 * MS, WORKER) for tid in range(10, 20)]
    assert does(of_worker(profile_of(waits, *others), 90), waiting=11) != ""
    assert does(of_worker(profile_of(waits, *others), 40), waiting=11) == "", "and waits itself for most of that"


def test_it_waits_for_a_core() -> None:
    told = does(of_worker(profile_of(chained(7, 7, 800 * MS, WORKER)), 400, 300))
    assert told == "; it is on a core for 40.0 % of its own time, and waiting for one for 30.0 %"


def test_where_it_runs() -> None:
    profile = of_worker(profile_of(chained(7, 7, 800 * MS, WORKER)), 900)
    work = [running(8, "main", "crunch")] * 3 + [running(8, "main", "copy"), *[running(9, "main", "other")] * 9]
    assert does(with_samples(profile, *work)) == (
        "; it is on a core for 90.0 % of its own time, mostly in main → crunch"
    )
    profile = of_worker(profile_of(chained(7, 7, 800 * MS, WORKER)), 900)
    everywhere = [running(8, "main", name) for name in ("crunch", "copy", "read")]
    assert "mostly" not in does(with_samples(profile, *everywhere, *work[4:]))


def test_it_sleeps() -> None:
    """The place of a sleep is told, which is known if it is traced; else nothing helps."""
    waits = chained(7, 7, 800 * MS, WORKER, TIMER)
    sleeps = chained(7, 8, 850 * MS, TIMER, own=SLEEPS)
    told = "; for 100.0 % of that, it sleeps itself, in main → nap"
    assert does(profile_of(waits, sleeps)) == told
    assert does(profile_of(waits, sleeps, chained(7, 8, 800 * MS, DISK))) == told, "this is no sleep"
    assert does(profile_of(waits)) == ""
    assert does(profile_of(chained(7, 7, 800 * MS, WORKER), sleeps)) == "", "but not while it is waited for"


def test_it_waits_for_a_device() -> None:
    told = does(profile_of(chained(7, 7, 800 * MS, WORKER, DISK)))
    assert told == "; for 100.0 % of that, it waits for [interrupt nvme0q1] itself"


def test_what_those_do_who_have_a_lock() -> None:
    """Nothing but the lock tells that others wait for them."""
    profile = of_worker(profile_of(chained(7, 9, 600 * MS, WORKER)), 900)
    profile.threads.append(ThreadTimes(7, "app", 9, "w", SECOND, 400 * MS, 0, {}))
    doings = Doings(waits_for(profile), profile)
    assert doing(doings.of({Node(THREAD, 7, 8)})) == "; it is on a core for 90.0 % of its own time"
    assert doings.of({Node(THREAD, 7, 9)}) is None, "it mostly waits, and not for most of its time"
    assert doings.of(set()) is doings.of({Node(THREAD, 99, 99)}) is None
