"""Stacks of two runs in one profile, for a differential flame graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...facts.ranks import ranks_of
from ...model import Labels, Profile, Sample, Stack, ValueType
from ...model.wakers import own_part
from ...transforms.diff import differential
from .comparing import named
from .intervals import names_of

PROCESS = "process"
"""Label of the samples: the name of the process, with its rank; no pid, which differs between runs."""
TITLE = "After against before: time of threads per second of the trace"
_NSEC = 1_000_000_000


def graph_of(before: Sequence[Profile], after: Sequence[Profile]) -> Profile | None:
    """A differential profile (see `transforms.diff`) of the wall-clock time of two sides, in ns per second of the
    trace; None if a side has none."""
    one, other = _side(before), _side(after)
    if not one.samples or not other.samples:
        return None
    made = differential(one, other)
    made.title = TITLE
    return made


def _side(runs: Sequence[Profile]) -> Profile:
    times: Counter[tuple[Stack, Labels]] = Counter()
    length = sum(each.duration_ns for each in runs)
    for profile in map(named, runs):
        if "wall" not in [each.name for each in profile.value_types]:
            continue
        column, ranks, names = profile.index("wall"), ranks_of(profile), names_of(profile)
        for sample in profile.samples:
            if sample.values[column] > 0:
                times[own_part(sample.stack), _labels(sample, ranks, names)] += sample.values[column]
    samples = [Sample(stack, (time * _NSEC // max(length, 1),), labels) for (stack, labels), time in times.items()]
    return Profile([ValueType("wall", "nanoseconds")], [each for each in samples if each.values[0]])


def _labels(sample: Sample, ranks: dict[int, int], names: dict[int, str]) -> Labels:
    pid, name = sample.label("pid"), str(sample.label("process") or "")
    if isinstance(pid, int):
        name = names.get(pid, name)
        if pid in ranks:
            name = f"{name} [rank {ranks[pid]}]"
    return ((PROCESS, name),)
