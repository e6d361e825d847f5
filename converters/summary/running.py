"""Adds up on-CPU samples: equal work of all threads together."""

from __future__ import annotations

from collections import defaultdict

from ..facts.groups import alike_of
from ..facts.hot_sites import HotSite
from ..facts.identity import number_of, processes_of
from ..facts.runs import Runs, RunSum
from ..facts.wait_sums import Thread
from ..model import ThreadTimes
from .figures import Running
from .thread_groups import who_of


def running_of(runs: Runs, threads: dict[Thread, ThreadTimes]) -> tuple[Running, ...]:
    """Equal work of all threads together, most first."""
    places: dict[HotSite, dict[Thread, RunSum]] = defaultdict(lambda: defaultdict(RunSum))
    weights: dict[Thread, int] = defaultdict(int)
    for thread, of in runs.items():
        for run, part in of.items():
            total = places[run.site][thread]
            total.weight += part.weight
            total.samples += part.samples
            weights[thread] += part.weight
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
