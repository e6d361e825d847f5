"""Times of a run by who spent them and how, in each of its intervals."""

from __future__ import annotations

from typing import NamedTuple

from ...facts import thresholds
from ...facts.frame_names import without_line
from ...facts.ranks import ranks_of
from ...model import Profile
from ...model.slices import ThreadSlices


class Key(NamedTuple):
    """One way in which processes of one name, or a rank of it, spend time. Names are hostile."""

    process: str
    rank: int | None
    """None if it is not known: then all processes of this name are one."""
    kind: str
    """Kind, one of `rules.verdict.KINDS`."""
    frames: tuple[str, ...] = ()
    """Place, as in `Site`, without lines, so that an edited script is still found; () for several, and for running."""
    kernel: str = ""


class Intervals(NamedTuple):
    """Rates by key: s of all its threads per s of the trace, one for each interval."""

    number: int
    rates: dict[Key, list[float]]


def intervals_of(profile: Profile) -> Intervals:
    """The rates in the slices of a profile; no intervals if it has none. A last slice that is much shorter
    than the others is left out."""
    ranks, names = ranks_of(profile), names_of(profile)
    lengths = _lengths(profile)
    rates: dict[Key, list[float]] = {}
    for each in profile.slices:
        for spent in each.spent:
            frames = tuple(map(without_line, spent.frames))
            key = Key(names.get(each.pid, each.process), ranks.get(each.pid), spent.kind, frames, spent.kernel)
            series = rates.setdefault(key, [0.0] * len(lengths))
            for i, time in enumerate(spent.times, each.first):
                if i < len(lengths):
                    series[i] += time / lengths[i]
    return Intervals(len(lengths), rates)


def names_of(profile: Profile) -> dict[int, str]:
    """Names of processes by pid, where they are known beside their threads."""
    return {each.pid: each.process for each in profile.processes}


def _lengths(profile: Profile) -> list[int]:
    """Length in ns of each slice of a trace."""
    length = max((each.length for each in profile.slices), default=0)
    if not length:
        return []
    known = max(_end(each) for each in profile.slices)
    whole, rest = divmod(profile.duration_ns or known * length, length)
    lengths = [length] * whole
    return [*lengths, rest] if rest >= thresholds.COMPARED_LAST * length else lengths


def _end(each: ThreadSlices) -> int:
    return each.first + each.number
