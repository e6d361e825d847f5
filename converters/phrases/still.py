"""Words for processes that did not move. Names are unescaped (hostile)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..base.units import plural
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_kinds import HALTED
from ..facts.wait_sums import Place
from .words import listed


def did_not_move(facts: Facts, processes: Sequence[int]) -> str:
    """``2 processes did not move: 2 × app (in main → read).``; "" if there are none. On a whole host, where most have
    nothing to do, only those that are stopped are named, unless there are few."""
    places: dict[str, list[int]] = defaultdict(list)
    names: dict[str, list[int]] = defaultdict(list)
    stopped: dict[str, list[int]] = defaultdict(list)
    for pid in processes:
        name, place = facts.where_of(pid)
        places[f"{name} ({_where(place)})" if place else name].append(pid)
        names[name].append(pid)
        if place and place.kind == HALTED:
            stopped[name].append(pid)
    if not names:
        return ""
    text = f"{plural(len(processes), 'process')} did not move"
    if len(places) > thresholds.STILL_PLACES and facts.is_whole_host:
        return f"{text}; stopped: {_numbered(stopped)}." if stopped else f"{text}."
    return f"{text}: {_numbered(places if len(places) <= thresholds.STILL_PLACES else names)}."


def _numbered(told: Mapping[str, Sequence[int]]) -> str:
    """``2 × app, server``"""
    by_number = sorted(told.items(), key=lambda entry: -len(entry[1]))
    return listed([f"{len(pids)} × {name}" if len(pids) > 1 else name for name, pids in by_number])


def _where(place: Place) -> str:
    return "stopped" if place.kind == HALTED else f"in {' → '.join(place.site.frames) or place.site.kernel}"
