"""Processes that are alike, such as the ranks of a job, against their median: which of them stand out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from ..base.text import json_text
from ..base.units import duration, share
from ..facts import thresholds
from ..facts.identity import is_sum, kernel_id
from ..facts.ranks import ranks_of
from ..model import Profile, ThreadTimes
from ..model.calls import CallTimes
from ..model.states import BLOCKED
from .calls import Calls

_DEVIATION = 1.4826
"""The standard deviation of normally distributed values in terms of the median distance from their median."""
Unit = Literal["nanoseconds", "share"]


@dataclass(frozen=True, slots=True)
class Member:
    """One process; ``process`` is hostile. ``ranks``: see `model.ranks`."""

    pid: int
    process: str
    rank: int | None = None
    ranks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of each member of a group, None where it is not known."""

    name: str
    unit: Unit
    values: tuple[float | None, ...]
    call: str = ""
    """The call that it is of; "" for all, or for none. Hostile."""

    @property
    def median(self) -> float | None:
        """Median of the known values."""
        known = self._known()
        return median(known) if known else None

    @property
    def outliers(self) -> frozenset[int]:
        """Members that stand out, by their places; none among fewer than three."""
        known = self._known()
        if len(known) < thresholds.ALIKE:
            return frozenset()
        middle = median(known)
        spread = thresholds.OUTLIER * _DEVIATION * median(abs(value - middle) for value in known)
        least = thresholds.OUTLIER_SHARE if self.unit == "share" else thresholds.OUTLIER_MEDIAN * middle
        far = max(spread, least)
        return frozenset(i for i, value in enumerate(self.values) if value is not None and abs(value - middle) > far)

    def text(self, value: float | None) -> str:
        """A value for people."""
        if value is None:
            return "-"
        return share(round(value * 1_000_000), 1_000_000) if self.unit == "share" else duration(round(value))

    def _known(self) -> list[float]:
        return [value for value in self.values if value is not None]


@dataclass(frozen=True, slots=True)
class Group:
    """Processes that are alike, by rank or else by pid. ``program`` is hostile."""

    program: str
    members: tuple[Member, ...]
    measures: tuple[Measure, ...]

    @property
    def are_ranks(self) -> bool:
        return any(member.rank is not None for member in self.members)

    @property
    def outliers(self) -> frozenset[int]:
        """The places of members that stand out in any measure."""
        return frozenset().union(*(measure.outliers for measure in self.measures))

    def to_json(self) -> dict[str, Any]:
        """Times in ns, shares of 1, null when not known."""
        marked = [measure.outliers for measure in self.measures]
        return {
            "program": json_text(self.program),
            "medians": [
                {"name": measure.name, "unit": measure.unit, "call": json_text(measure.call), "median": measure.median}
                for measure in self.measures
            ],
            "processes": [
                {
                    "process": json_text(member.process),
                    "pid": kernel_id(member.pid),
                    "rank": member.rank,
                    "labels": {label: json_text(value) for label, value in member.ranks},
                    "values": [measure.values[i] for measure in self.measures],
                    "outlier": [i in places for places in marked],
                }
                for i, member in enumerate(self.members)
            ],
        }


def groups_of(
    profile: Profile, calls: Sequence[Calls], threads: Sequence[ThreadTimes], program: Callable[[str], str]
) -> tuple[Group, ...]:
    """The groups of a profile with the figures of their calls, or, of ranks without timed calls, how much of its time
    each waits. ``threads``: those that do something, with own ids. ``program``: what names of alike processes share."""
    members = _members(profile, program)
    if calls:
        return _of_calls(profile, calls, members)
    waits = _waits(threads)
    found = []
    for name, known in members.items():
        group = tuple(member for member in known if member.rank is not None and member.pid in waits)
        if len(group) > 1:
            measures = tuple(
                Measure(what, "share", tuple(waits[member.pid][i] for member in group))
                for i, what in enumerate(("blocked", "queued"))
            )
            found.append(Group(name, group, measures))
    return tuple(found[: thresholds.ALIKE_GROUPS])


def _members(profile: Profile, program: Callable[[str], str]) -> dict[str, list[Member]]:
    """All processes by program, in the order of ranks and pids."""
    ranks = ranks_of(profile)
    found: dict[str, list[Member]] = defaultdict(list)
    for process in profile.processes:
        if not is_sum(process.pid):
            member = Member(process.pid, process.process, ranks.get(process.pid), tuple(sorted(process.ranks.items())))
            found[program(process.process)].append(member)
    for group in found.values():
        group.sort(key=lambda member: (member.rank is None, member.rank or 0, member.pid))
    return found


def _waits(threads: Sequence[ThreadTimes]) -> dict[int, tuple[float, float]]:
    """Shares of each process's time in which its threads were blocked, and in which they waited for a core."""
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for times in threads:
        for i, time in enumerate((times.wall, sum(times.blocked.values()), times.runnable)):
            sums[times.pid][i] += time
    return {pid: (blocked / wall, queued / wall) for pid, (wall, blocked, queued) in sums.items() if wall}


def _of_calls(profile: Profile, calls: Sequence[Calls], members: Mapping[str, list[Member]]) -> tuple[Group, ...]:
    each: dict[int, list[tuple[int, CallTimes]]] = defaultdict(list)
    for number, call in enumerate(calls):
        for one in call.each:
            each[one.pid].append((number, one))
    blocked = _blocked(profile)
    whole = sum(call.time for call in calls)
    found = []
    for program, known in members.items():
        ranks = [member for member in known if member.rank is not None]
        group = ranks or [member for member in known if member.pid in each]
        if len(group) < (2 if ranks else thresholds.ALIKE):
            continue
        times = {member.pid: sum(_own(one) for _, one in each[member.pid]) for member in group}
        if sum(times.values()) <= thresholds.ALIKE_MATTER * whole:
            continue
        found.append((sum(times.values()), Group(program, tuple(group), _measures(group, times, each, calls, blocked))))
    return tuple(group for _, group in sorted(found, key=lambda pair: -pair[0])[: thresholds.ALIKE_GROUPS])


def _own(call: CallTimes) -> int:
    """Time of a call without the calls that it made."""
    return call.own + call.open_time - call.open_inner


def _measures(
    group: Sequence[Member],
    times: Mapping[int, int],
    each: Mapping[int, Sequence[tuple[int, CallTimes]]],
    calls: Sequence[Calls],
    blocked: Mapping[int, float],
) -> tuple[Measure, ...]:
    sums: dict[int, int] = defaultdict(int)
    for member in group:
        for number, one in each.get(member.pid, ()):
            sums[number] += _own(one)
    top = max(sums, key=lambda number: (sums[number], -number))
    of_top = {member.pid: one for member in group for number, one in each.get(member.pid, ()) if number == top}
    name = calls[top].total.name

    def column(figure: Callable[[CallTimes], float | None]) -> tuple[float | None, ...]:
        found = (of_top.get(member.pid) for member in group)
        return tuple(None if one is None else figure(one) for one in found)

    return (
        Measure("in calls", "nanoseconds", tuple(times[member.pid] for member in group)),
        Measure("time", "nanoseconds", column(lambda one: one.total + one.open_time), name),
        Measure("mean", "nanoseconds", column(lambda one: one.mean if one.count else None), name),
        Measure("blocked", "share", tuple(blocked.get(member.pid) for member in group)),
    )


def _blocked(profile: Profile) -> dict[int, float]:
    """Share of each process's time in calls in which it was blocked."""
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for sample in profile.samples:
        pid = sample.label("pid")
        if isinstance(pid, int):
            sums[pid][0] += sample.values[0]
            sums[pid][1] += sample.values[0] if sample.label("state") in BLOCKED else 0
    return {pid: part / time for pid, (time, part) in sums.items() if time}
