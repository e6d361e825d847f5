"""Steps of two runs: how long each takes before and after, and in what the difference is.

A job that becomes slower does the same in more time: its times per second may not change at all. Steps tell that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...base.text import json_text, printable
from ...base.units import count, duration
from ...facts import thresholds
from ...facts.frame_names import without_line
from ...facts.ranks import ranks_of
from ...model import Profile
from ...model.steps import Spent
from .intervals import names_of

ON_CPU, RUNNABLE, BETWEEN, BLOCKED = "on a core", "waiting for a core", "between two steps", "blocked elsewhere"


class StepKey(NamedTuple):
    """Steps that are compared. Names are hostile."""

    process: str
    rank: int | None
    name: str


@dataclass
class Side:
    """Steps of one side; times in ns."""

    count: int = 0
    between: int = 0
    """Number of times between two steps."""
    parts: Counter[str] = field(default_factory=Counter)
    """Time of all steps by what is done: `ON_CPU`, `RUNNABLE`, or the place of a wait (hostile), without lines, so that
    an edited script is still found."""
    pause: int = 0
    """Time of all that is between two steps."""

    def add(self, steps: Spent, between: Spent) -> None:
        """Adds those of a thread of a run."""
        self.count += steps.count
        self.between += between.count
        self.pause += between.wall
        self.parts[ON_CPU] += steps.on_cpu
        self.parts[RUNNABLE] += max(steps.runnable, 0)
        known = 0
        for wait in steps.waits:
            if wait.site.frames:
                self.parts[" → ".join(map(without_line, wait.site.frames))] += wait.time
                known += wait.time
        self.parts[BLOCKED] += max(steps.blocked - known, 0)

    def each(self) -> dict[str, float]:
        """ns of one step by what is done; what is between two, too."""
        found = {what: time / self.count for what, time in self.parts.items()} if self.count else {}
        return {**found, **({BETWEEN: self.pause / self.between} if self.between else {})}

    @property
    def mean(self) -> float:
        """ns of a step, and of what is between it and the next one."""
        return sum(self.each().values())


@dataclass(frozen=True)
class StepChange:
    """Steps of one function, before and after."""

    key: StepKey
    before: Side
    after: Side

    @property
    def difference(self) -> float:
        """ns that a step takes more."""
        return self.after.mean - self.before.mean

    @property
    def is_told(self) -> bool:
        """Whether it matters, and rests on steps enough."""
        enough = min(self.before.count, self.after.count) >= thresholds.COMPARED_STEPS
        return enough and abs(self.difference) >= thresholds.COMPARED_STEP * self.before.mean > 0

    def moved(self) -> list[tuple[str, float, float]]:
        """Parts of a step by what is done, with their ns before and after: what differs most first."""
        before, after = self.before.each(), self.after.each()
        rows = [(what, before.get(what, 0.0), after.get(what, 0.0)) for what in {**before, **after}]
        return sorted(rows, key=lambda row: (-abs(row[2] - row[1]), row[0]))

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``json.dumps``; times in ns of a step."""
        return {
            "process": json_text(self.key.process),
            "rank": self.key.rank,
            "name": json_text(self.key.name),
            "counts": [self.before.count, self.after.count],
            "before_ns": round(self.before.mean),
            "after_ns": round(self.after.mean),
            "is_told": self.is_told,
            "parts": [
                {"what": json_text(what), "before_ns": round(before), "after_ns": round(after)}
                for what, before, after in self.moved()
            ],
        }


def step_changes(before: Sequence[Profile], after: Sequence[Profile]) -> tuple[StepChange, ...]:
    """Functions whose calls are steps on both sides, those first that differ most. ``before``, ``after``: profiles with
    the names of `comparing.named`."""
    one, other = _sides(before), _sides(after)
    made = (StepChange(key, one[key], other[key]) for key in one if key in other)
    return tuple(sorted(made, key=lambda each: (not each.is_told, -abs(each.difference), str(each.key))))


def _sides(runs: Sequence[Profile]) -> dict[StepKey, Side]:
    found: dict[StepKey, Side] = {}
    for profile in runs:
        ranks, names = ranks_of(profile), names_of(profile)
        for each in profile.steps:
            key = StepKey(names.get(each.pid, each.process), ranks.get(each.pid), each.name)
            found.setdefault(key, Side()).add(each.steps, each.between)
    return {key: side for key, side in found.items() if side.count}


def sentence(change: StepChange) -> str:
    """``A step of train.py:train_step takes 88.1 ms instead of 43.6 ms (+102 %): +30.1 ms in load_batch → read, …``,
    escaped."""
    before, after = change.before.mean, change.after.mean
    who = f" in rank {change.key.rank}" if change.key.rank is not None else ""
    text = f"A step of {change.key.name}{who} takes {duration(round(after))} instead of {duration(round(before))}"
    text += f" ({100 * change.difference / before:+.0f} %)"
    sign = 1 if change.difference > 0 else -1
    least = thresholds.TELLING * abs(change.difference)
    parts = [(what, other - one) for what, one, other in change.moved() if sign * (other - one) >= least]
    told = [f"{'+' if more > 0 else '-'}{duration(round(abs(more)))} {_in(what)}" for what, more in parts]
    return printable(f"{text}: {', '.join(told)}." if told else f"{text}.")


def step_rows(change: StepChange) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a table: ms before, after, the difference, and what is done; escaped."""
    steps = f"{count(change.before.count)} and {count(change.after.count)} steps"
    name = change.key.name if change.key.rank is None else f"{change.key.name} (rank {change.key.rank})"
    rows = [(f"{name}, {steps}", change.before.mean, change.after.mean), *change.moved()[: thresholds.COMPARED_MOVED]]
    for what, one, other in rows:
        yield _ms(one), _ms(other), f"{(other - one) / _MS:+.2f}", printable(what)


def _in(what: str) -> str:
    return what if what in (ON_CPU, RUNNABLE, BETWEEN, BLOCKED) else f"in {what}"


def _ms(ns: float) -> str:
    return f"{ns / _MS:.2f}"


_MS = 1e6
