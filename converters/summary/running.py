"""Adds up on-CPU samples: equal work of all threads together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..facts.groups import alike_of
from ..facts.hot_sites import HotSite, hot_site
from ..facts.identity import number_of, processes_of
from ..facts.wait_sites import Sites
from ..model import Profile, ThreadTimes
from ..model.states import RUNNING
from .figures import Running
from .people import who_of

ON_CPU = {"samples"}
"""Columns of samples other than their weight."""

_Thread = tuple[int, int]
"""(pid, tid)"""


@dataclass(slots=True)
class _Sum:
    weight: int = 0
    samples: int = 0


def add_up_running(profile: Profile, threads: dict[_Thread, ThreadTimes]) -> tuple[Running, ...]:
    """Sums of samples in state "running"; threads missing from ``threads`` are added, without times.

    The weight is the profile's first value.
    """
    places: dict[HotSite, dict[_Thread, _Sum]] = defaultdict(lambda: defaultdict(_Sum))
    weights: dict[_Thread, int] = defaultdict(int)
    sites, known = Sites(), dict[int, HotSite]()
    samples = profile.index("samples")
    for sample in profile.samples:
        labels = dict(sample.labels)
        if labels.get("state") != RUNNING:
            continue
        pid, tid = (number if isinstance(number := labels.get(key), int) else 0 for key in ("pid", "tid"))
        thread = pid, tid
        if thread not in threads:
            process, name = str(labels.get("process", "?")), str(labels.get("thread", "?"))
            threads[thread] = ThreadTimes(pid, process, tid, name, 0, 0, 0, {})
        # By identity: samples share their stacks.
        found = known.get(id(sample.stack))
        if found is None:
            found = known[id(sample.stack)] = hot_site(sample.stack, sites)
        total = places[found][thread]
        total.weight += sample.values[0]
        total.samples += sample.values[samples]
        weights[thread] += sample.values[0]
    alike = alike_of(threads.values())
    made = []
    for where, members in places.items():
        by_weight = sorted(members, key=lambda thread: (-members[thread].weight, thread))
        who = who_of([threads[thread] for thread in by_weight])
        made.append(
            Running(
                frames=where.frames,
                in_kernel=where.in_kernel,
                weight=sum(total.weight for total in members.values()),
                samples=sum(total.samples for total in members.values()),
                processes=processes_of(threads[thread] for thread in members),
                threads=number_of(threads[thread] for thread in members),
                threads_weight=sum(weights[thread] for thread in members),
                threads_alike=sum(alike[kind] for kind in {(entry.process, entry.pattern) for entry in who}),
                who=who,
            )
        )
    return tuple(sorted(made, key=lambda each: (-each.weight, each.frames, each.in_kernel)))
