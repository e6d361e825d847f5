"""Profiles with wakers, made by hand: the numbers are chosen, so that every edge is known."""

from __future__ import annotations

from stallscope.converters.model import Frame, Module, Profile, Sample, Stack, ValueType
from stallscope.converters.model.wakers import SEPARATOR, WAKER, joined_tids

VALUE_TYPES = [ValueType("blocked", "nanoseconds"), ValueType("count", "count")]
LAST = [ValueType("min", "nanoseconds", "min"), ValueType("max", "nanoseconds", "max")]
APP = Module("/opt/app/app")
NAMES = {7: "app", 9: "disk"}
Link = tuple[str, int, str]
"""The name of a waker, its tid (0: an interrupt), and the name of its thread."""


def chained(pid: int, tid: int, time: int, *chain: Link, process: str = "", own: Stack = ()) -> Sample:
    """A sample of a thread that waited, with the links of its chain."""
    stack: Stack = own or (Frame("main"), Frame("schedule", "kernel"))
    for name, of, _ in chain:
        woke = (Frame(f"write_{name}", WAKER, APP),) if of else ()
        stack += (SEPARATOR, *woke, Frame(name, WAKER))
    labels: dict[str, str | int] = {
        "pid": pid,
        "process": process or NAMES.get(pid, f"p{pid}"),
        "tid": tid,
        "thread": f"t{tid}",
        "state": "interruptible",
        "waker": chain[0][0],
    }
    if chain[0][1]:
        labels |= {"waker_tid": chain[0][1], "waker_thread": chain[0][2]}
    if len(chain) > 1:
        labels["chain_tids"] = joined_tids(of for _, of, _ in chain)
        last = [thread for _, of, thread in chain[1:] if of]
        if last:
            labels["chain_thread"] = last[-1]
    return Sample(stack, (time, 1), tuple(sorted(labels.items())))


def profile_of(*samples: Sample) -> Profile:
    """A profile of these."""
    return Profile(list(VALUE_TYPES), list(samples), title="Blocked time", duration_ns=1_000_000_000)


def with_extremes(profile: Profile) -> Profile:
    """Adds the columns that a summary needs."""
    profile.value_types += LAST
    profile.samples = [sample._replace(values=(*sample.values, 1, sample.values[0])) for sample in profile.samples]
    return profile
