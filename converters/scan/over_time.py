"""Times of the processes of a row in each slice of a scan, and the phases that this shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base.text import json_text
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.slices import Phase, Series, phases_of
from ..facts.wait_functions import COLLECTIVE
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from ..facts.wait_sums import Thread
from ..phrases import slices
from ..rules.finding import CPU
from ..rules.place_kinds import threads_of
from ..rules.verdict import (
    CORES,
    DATABASE_LOCK,
    DRIVER,
    FILE_LOCK,
    GIL,
    GPU,
    IDLE,
    IO,
    MEMORY,
    NETWORK,
    POLLING,
    SLOW_LOADER,
    UNCLEAR,
    Verdict,
)
from ..summary.part_of_trace import series_of_threads

WEIGHTS: dict[str, float] = {
    SLEEP: thresholds.SLEEP_SAVES,
    EVENTS: thresholds.EVENTS_SAVE,
    IDLE: thresholds.EVENTS_SAVE,
    CORES: thresholds.QUEUED_SAVES,
    UNCLEAR: thresholds.UNKNOWN_SAVES,
}
"""Weights of kinds of time, as verdicts have them: 1 for all others."""
LETTERS = {
    CPU: "R", CORES: "W", LOCK: "L", DATABASE_LOCK: "D", FILE_LOCK: "F", GIL: "G", DRIVER: "V", GPU: "U", IO: "I",
    MEMORY: "M", HELD: "H", PEER: "P", NETWORK: "N", COLLECTIVE: "K", SLOW_LOADER: "B", CHILD: "C", THREAD: "T",
    EVENTS: "E", SLEEP: "S", HALTED: "X", POLLING: "O", IDLE: ".", UNCLEAR: "?", "": "-",
}  # fmt: skip
"""Letter of each kind in a strip; that of slices in which nobody lived last."""


@dataclass(frozen=True)
class OverTime:
    """Slices of some processes: of the threads that their verdict is on."""

    series: Series
    kinds: tuple[str, ...]
    """Kind that matters most in each slice; "" where nobody lived."""
    phases: tuple[Phase, ...] = ()
    """The phases, if what they do changes; else none."""
    told: str = ""
    """Words for the phases; "" without any."""

    @property
    def strip(self) -> str:
        """A letter for each slice since the scan began: ``-RRRSSSLLL``."""
        return LETTERS[""] * self.series.first + "".join(LETTERS.get(kind, LETTERS[UNCLEAR]) for kind in self.kinds)

    @property
    def changes(self) -> bool:
        """Whether the kind is not the same in all slices."""
        return len(set(filter(None, self.kinds))) > 1


def over_time(facts: Facts, verdicts: Sequence[Verdict | None], threads: Sequence[Thread]) -> OverTime | None:
    """Slices of processes with these verdicts on them; None if they were not recorded. ``threads``: all that they have,
    which count without a verdict, or where it is on no threads."""
    told = [thread for verdict in verdicts if verdict for thread in threads_of(verdict)]
    series = series_of_threads(facts, tuple(told or threads))
    if series is None:
        return None
    series = _as_judged(series, verdicts)
    phases = tuple(phases_of(series, WEIGHTS))
    words = slices.phases(phases, facts.objects, series.begin)
    return OverTime(series, tuple(series.decisive(WEIGHTS)), phases, words)


def _as_judged(series: Series, verdicts: Sequence[Verdict | None]) -> Series:
    """Times of threads that poll, or wait for another host, are told as such, also where slices only know that they
    sleep, or run, or wait for a peer."""
    for told in (POLLING, NETWORK):
        waits = {each.finding.kind for each in verdicts if each and each.kind == told and each.finding}
        if len(waits & series.kinds.keys()) == 1:
            (kind,) = waits & series.kinds.keys()
            kinds = {told if each == kind else each: times for each, times in series.kinds.items()}
            series = replace(series, kinds=kinds)
    return series


def legend(strips: Sequence[OverTime]) -> str:
    """``R cpu, S sleep``: the letters in these strips, in the order of their table."""
    used = set("".join(each.strip for each in strips))
    names = [f"{letter} {kind or 'not there'}" for kind, letter in LETTERS.items() if letter in used]
    return ", ".join(names)


def to_json(over: OverTime | None) -> dict[str, Any] | None:
    """Plain data for ``json.dumps``: times in ns."""
    if over is None:
        return None
    series = over.series
    return {
        "length_ns": series.length,
        "first": series.first,
        "kinds": [kind or None for kind in over.kinds],
        "times_ns": {kind: list(times) for kind, times in sorted(series.kinds.items()) if any(times)},
        "phases": [_phase_json(each) for each in over.phases],
        "told": json_text(over.told) if over.told else None,
    }


def _phase_json(phase: Phase) -> dict[str, Any]:
    place = phase.place
    return {
        "kind": phase.kind,
        "begin_ns": phase.begin,
        "end_ns": phase.end,
        "share": round(phase.share, 6),
        "frames": [json_text(frame) for frame in place.frames] if place else [],
        "kernel_wait": json_text(place.kernel) if place else "",
    }
