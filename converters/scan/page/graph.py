"""The profile of the page's flame graph: below the stacks are groups of processes; columns are what can be shown.

A graph of very many stacks is made smaller: those with the smallest shares of all columns become one frame for each
process, so that the page opens fast.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import add

from ...model import Frame, Labels, Profile, Sample, ValueType
from ...model.states import RUNNING
from ...model.waits_for import COLUMN as BLOCKED
from .groups import Groups

GROUP = "group"
"""Label of samples: the group of their process."""
ROOTS = (GROUP, "process")
"""Labels below the stacks."""
MOST_STACKS = 200_000
"""Stacks of a graph; further ones are put together."""
FOLDED = Frame("[stacks with small shares]", "other")

_NS = "nanoseconds"
_OFF, _ON = "off-CPU", "on-CPU"
_NAMES = {"wall": "wall", BLOCKED: "wakers", "calls": "calls"}
"""Names of columns of times, by those of the profile."""
_Column = tuple[str, str, Callable[[Sample], int]]


def graph_profile(profile: Profile, groups: Groups, most: int = MOST_STACKS) -> tuple[Profile, str]:
    """The profile of the graph, and a sentence on what was put together; "" if nothing was."""
    columns = list(_columns(profile))
    labels: dict[Labels, Labels] = {}
    merged: dict[tuple[int, Labels], list[int]] = {}
    stacks = {}
    for sample in profile.samples:
        values = [max(value(sample), 0) for _, _, value in columns]
        if not any(values):
            continue
        if sample.labels not in labels:
            labels[sample.labels] = _labels(sample.labels, groups)
        key = id(sample.stack), labels[sample.labels]
        stacks[id(sample.stack)] = sample.stack
        merged[key] = list(map(add, merged[key], values)) if key in merged else values
    samples = [Sample(stacks[stack], tuple(values), of) for (stack, of), values in merged.items()]
    samples, told = _folded(samples, most)
    types = [ValueType(name, unit) for name, unit, _ in columns]
    made = Profile(types, samples, profile.title, profile.host, profile.start_ns, profile.duration_ns)
    return replace(made, lost=profile.lost, default_value=types[0].name if types else ""), told


def _columns(profile: Profile) -> Iterator[_Column]:
    for i, value_type in enumerate(profile.value_types):
        if value_type.aggregate != "sum" or value_type.unit != _NS or value_type.name not in _NAMES:
            continue
        yield _NAMES[value_type.name], _NS, partial(_value, i)
        if value_type.name == "wall":
            yield _OFF, _NS, partial(_value_if, i, False)
            yield _ON, _NS, partial(_value_if, i, True)
    if not any(value_type.name == "wall" for value_type in profile.value_types):
        for i, value_type in enumerate(profile.value_types):
            if value_type.name in ("off-cpu", "on-cpu"):
                name = _OFF if value_type.name == "off-cpu" else _ON
                yield name, value_type.unit, partial(_value, i)


def _value(column: int, sample: Sample) -> int:
    return sample.values[column]


def _value_if(column: int, runs: bool, sample: Sample) -> int:
    """The value of a sample if its thread runs, or if it does not; else 0."""
    return sample.values[column] if _runs(sample) is runs else 0


def _runs(sample: Sample) -> bool:
    return sample.label("state") == RUNNING


def _labels(labels: Labels, groups: Groups) -> Labels:
    """The labels that the graph needs."""
    found = dict(labels)
    pid = found.get("pid", 0)
    process = groups.names.get(pid, found.get("process", "")) if isinstance(pid, int) else ""
    kept = {GROUP: groups.label(pid), "pid": pid, "process": process, "state": found.get("state", "")}
    return tuple(sorted((key, value) for key, value in kept.items() if value))


def _folded(samples: Sequence[Sample], most: int) -> tuple[list[Sample], str]:
    if len(samples) <= most:
        return list(samples), ""
    totals = [max(sum(column), 1) for column in zip(*(sample.values for sample in samples), strict=True)]
    shares = [max(value / total for value, total in zip(sample.values, totals, strict=True)) for sample in samples]
    kept = set(heapq.nlargest(most, range(len(samples)), key=shares.__getitem__))
    small: dict[Labels, list[int]] = defaultdict(lambda: [0] * len(totals))
    for i, sample in enumerate(samples):
        if i not in kept:
            small[sample.labels] = list(map(add, small[sample.labels], sample.values))
    largest = max(share for i, share in enumerate(shares) if i not in kept)
    part = sum(sum(values) for values in small.values()) / sum(totals)
    told = (
        f"{len(samples) - len(kept):,} of {len(samples):,} stacks, each with at most {100 * largest:.2g} % of a value, "
        f"are drawn as {FOLDED.name}: {100 * part:.2g} % of all. The profile in a folder (-o scan.d) has all of them."
    )
    made = [Sample((FOLDED,), tuple(values), labels) for labels, values in small.items()]
    return [sample for i, sample in enumerate(samples) if i in kept] + made, told
