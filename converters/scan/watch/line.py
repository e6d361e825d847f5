"""One interval of a scan that goes on, as a line: when, what held whom up, for how much of its time, who ended it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base.text import json_text, printable
from ...base.units import count, counted, duration, plural, share
from ...facts import thresholds
from ...facts.identity import shown_id
from ...model import Profile
from ...model.losses import divided
from ...rules.verdict import IDLE
from ..conditions.holding import Holding, told
from ..cost import cost_json, cost_notes
from ..process_verdicts import Ender, ProcessVerdict
from ..report import SCHEMA_VERSION, Report, process_json

WATCH_VERSION = 1
"""Version of the objects of --watch --json."""


@dataclass(frozen=True)
class Interval:
    """Interval of a scan. Names and paths are unescaped (hostile)."""

    began: float
    """Seconds since the epoch."""
    length: int
    """ns"""
    report: Report
    holding: tuple[Holding, ...] = ()
    """Processes for which the condition of --when holds."""
    kept: tuple[str, ...] = ()
    """Files and folders that were written."""
    notes: tuple[str, ...] = ()
    """Reasons why nothing was kept, and the like."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Numbers of what was lost, by kind."""

    @classmethod
    def of(cls, profile: Profile, report: Report) -> Interval:
        """The interval of a profile."""
        return cls(profile.start_ns / 1e9, profile.duration_ns, report, missing=dict(divided(profile.lost)[0]))

    @property
    def rows(self) -> list[ProcessVerdict]:
        """Verdicts on the processes that something holds up, or that run."""
        return [each for each in self.report.processes if each.kind != IDLE]

    def text(self) -> str:
        """A line without its end, complete in itself: printable."""
        rows = self.rows
        shown = "; ".join(map(_told, rows[: thresholds.WATCHED])) or f"idle  {self._idle()}"
        parts = [f"{stamp(self.began)} {duration(self.length)}  {shown}"]
        if len(rows) > thresholds.WATCHED:
            parts.append(f"{plural(sum(len(each.pids) for each in rows[thresholds.WATCHED :]), 'process')} more")
        if self.holding:
            parts.append(f"when: {told(self.holding)}")
        if self.missing:
            parts.append(f"lost: {', '.join(self.losses())}")
        parts += map(printable, (*self.notes, *cost_notes(self.report.summary.comments)))
        if self.kept:
            parts.append(f"kept {', '.join(map(printable, self.kept))}")
        return " | ".join(parts)

    def losses(self) -> list[str]:
        """Words for what was lost: printable."""
        return [counted(number, printable(kind)) for kind, number in self.missing.items()]

    def _idle(self) -> str:
        return f"{plural(sum(len(each.pids) for each in self.report.processes), 'process')}, none at work"

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``json.dumps``. Times in ns, shares as fractions of 1, null when unknown."""
        rows = self.rows
        return {
            "watch_version": WATCH_VERSION,
            "scan_version": SCHEMA_VERSION,
            "time": stamp(self.began),
            "start_ns": round(self.began * 1e9),
            "duration_ns": self.length,
            "answer": [json_text(each) for each in self.report.summary.answer],
            "verdicts": [process_json(each) for each in rows[: thresholds.WATCHED_JSON]],
            "more_verdicts": max(len(rows) - thresholds.WATCHED_JSON, 0),
            "idle": sum(len(each.pids) for each in self.report.processes if each.kind == IDLE),
            "when": [each.to_json() for each in self.holding[: thresholds.HOLDING_JSON]],
            "more_when": max(len(self.holding) - thresholds.HOLDING_JSON, 0),
            "kept": [json_text(each) for each in self.kept],
            "notes": [json_text(each) for each in self.notes],
            "lost": {json_text(kind): number for kind, number in self.missing.items()},
            **cost_json(self.report.summary.comments),
        }


def stamp(seconds: float) -> str:
    """``2026-01-31T23:59:00+0100``, local time."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))


def _told(each: ProcessVerdict) -> str:
    """``lock 94.0 %  8 × train in topk │ rwsem_down_read, ended by monitor (pid 88): 71.0 % of the waits``"""
    much = share(each.time, each.wall) if each.wall else duration(each.time)
    number = f"{count(len(each.pids))} × " if len(each.pids) > 1 else ""
    who = f"{number}{printable(each.name)}{_pids(each.pids)}"
    where = f" in {printable(each.frames[-1])}" if each.frames else ""
    where += f" │ {printable(each.kernel)}" if each.kernel else ""
    return f"{each.kind} {much}  {who}{where}{_ended(each.ender, each.waits)}"


def _ended(ender: Ender | None, waits: int) -> str:
    return (
        f", ended by {printable(ender.name)}{_pids(ender.pids)}: {share(ender.time, waits)} of the waits"
        if ender
        else ""
    )


def _pids(pids: Sequence[int]) -> str:
    return f" (pid {', '.join(map(shown_id, pids))})" if 0 < len(pids) <= thresholds.PIDS_SHOWN else ""
