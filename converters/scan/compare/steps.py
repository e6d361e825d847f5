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
from .judgement import differs, verdict
from .statistic import Welch, mean, welch

ON_CPU, RUNNABLE, BETWEEN, BLOCKED = "on a core", "waiting for a core", "between two steps", "blocked elsewhere"


class StepKey(NamedTuple):
    """Steps that are compared. Names are hostile."""

    process: str
    rank: int | None
    name: str


@dataclass
class Run:
    """Steps of one run; times in ns."""

    count: int = 0
    between: int = 0
    """Number of times between two steps."""
    parts: Counter[str] = field(default_factory=Counter)
    """Time of all steps by what is done: `ON_CPU`, `RUNNABLE`, or the place of a wait (hostile), without lines, so that
    an edited script is still found."""
    pause: int = 0
    """Time of all that is between two steps."""

    def add(self, steps: Spent, between: Spent) -> None:
        """Adds those of a thread."""
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


class Side:
    """Steps of the runs of one side. Each run counts as much as another, however many steps it has."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = [each.each() for each in runs]
        self.count = sum(each.count for each in runs)

    @property
    def means(self) -> list[float]:
        """ns of a step, and of what is between it and the next one, of each run."""
        return [sum(each.values()) for each in self._runs]

    @property
    def mean(self) -> float:
        """Mean of the runs."""
        return mean(self.means)

    def each(self) -> dict[str, float]:
        """ns of one step by what is done; what is between two, too."""
        whats = {what: None for run in self._runs for what in run}
        return {what: mean([run.get(what, 0.0) for run in self._runs]) for what in whats}


@dataclass(frozen=True)
class StepChange:
    """Steps of one function, before and after."""

    key: StepKey
    before: Side
    after: Side
    welch: Welch | None = None
    """Test of the means of the runs; None if too few of them have such steps."""
    chance: float | None = None
    """Probability of a difference like this without a change, corrected for all rows that are tested; None without a
    test."""
    is_run: bool = False
    """Whether the steps are whole runs of a command, see `whole_runs`; ``key`` then has its names before and after."""
    mostly: str = ""
    """Function in which most of the difference of the times on a core is (hostile); "" if it is not known."""

    @property
    def difference(self) -> float:
        """ns that a step takes more."""
        return self.after.mean - self.before.mean

    @property
    def is_told(self) -> bool:
        """Whether it matters, rests on steps enough, and is more than noise if that can be known."""
        enough = self.is_run or min(self.before.count, self.after.count) >= thresholds.COMPARED_STEPS
        matters = abs(self.difference) >= thresholds.COMPARED_STEP * self.before.mean > 0
        return enough and matters and (self.chance is None or self.is_change)

    @property
    def is_change(self) -> bool:
        """Whether runs of one side differ so much less that this is no noise."""
        return differs(self.chance)

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
            "is_run": self.is_run,
            "mostly": json_text(self.mostly),
            "counts": [self.before.count, self.after.count],
            "before_ns": round(self.before.mean),
            "after_ns": round(self.after.mean),
            "margin_ns": self.welch and round(self.welch.margin),
            "chance": self.chance,
            "is_change": self.is_told and self.is_change,
            "is_told": self.is_told,
            "parts": [
                {"what": json_text(what), "before_ns": round(before), "after_ns": round(after)}
                for what, before, after in self.moved()
            ],
        }


def step_changes(before: Sequence[Profile], after: Sequence[Profile]) -> list[StepChange]:
    """Functions whose calls are steps on both sides, tested if enough runs have them. ``before``, ``after``: profiles
    with the names of `comparing.named`."""
    one, other = _sides(before), _sides(after)
    return [_change(key, one[key], other[key]) for key in one if key in other]


def _change(key: StepKey, before: list[Run], after: list[Run]) -> StepChange:
    one, other = Side(before), Side(after)
    enough = min(len(before), len(after)) >= thresholds.COMPARED_RUNS
    return StepChange(key, one, other, welch(one.means, other.means) if enough else None)


def _sides(runs: Sequence[Profile]) -> dict[StepKey, list[Run]]:
    """Steps of each run that has some, by key."""
    found: dict[StepKey, list[Run]] = {}
    for profile in runs:
        ranks, names = ranks_of(profile), names_of(profile)
        of: dict[StepKey, Run] = {}
        for each in profile.steps:
            key = StepKey(names.get(each.pid, each.process), ranks.get(each.pid), each.name)
            of.setdefault(key, Run()).add(each.steps, each.between)
        for key, run in of.items():
            if run.count:
                found.setdefault(key, []).append(run)
    return found


def sentence(change: StepChange) -> str:
    """``A step of train.py:train_step takes 88.1 ms instead of 43.6 ms (+102 %): +30.1 ms in load_batch → read, …``,
    escaped."""
    before, after = change.before.mean, change.after.mean
    who = f" in rank {change.key.rank}" if change.key.rank is not None else ""
    text = f"A {'run' if change.is_run else 'step'} of {change.key.name}{who} takes {duration(round(after))} "
    text += f"instead of {duration(round(before))}{_of_other(change)}"
    told = verdict(change.chance, is_change=change.is_change)
    text += f" ({100 * change.difference / before:+.0f} %)" + (f", which {told}" if told else "")
    sign = 1 if change.difference > 0 else -1
    least = thresholds.TELLING * abs(change.difference)
    parts = [(what, other - one) for what, one, other in change.moved() if sign * (other - one) >= least]
    said = [f"{'+' if more > 0 else '-'}{duration(round(abs(more)))} {_in(change, what)}" for what, more in parts]
    return printable(f"{text}: {', '.join(said)}." if said else f"{text}.")


def step_rows(change: StepChange) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a table: before, after and the difference in the unit of the first row, and what is done; escaped. Parts
    that do not differ in these digits are left out."""
    unit, size = _unit(max(change.before.mean, change.after.mean))
    steps = f"{count(change.before.count)} and {count(change.after.count)} {'runs' if change.is_run else 'steps'}"
    name = change.key.name if change.key.rank is None else f"{change.key.name} (rank {change.key.rank})"
    told = verdict(change.chance, is_change=change.is_change)
    title = f"{unit} of {name}, {steps}" + (f": {told}" if told else "")
    yield _row(title, change.before.mean / size, change.after.mean / size)
    parts = [_row(what, one / size, other / size) for what, one, other in change.moved()]
    yield from [row for row in parts if row[2] != _SAME][: thresholds.COMPARED_MOVED]


def _row(what: str, one: float, other: float) -> tuple[str, str, str, str]:
    more = f"{other - one:+.2f}"
    return f"{one:.2f}", f"{other:.2f}", _SAME if more in ("+0.00", "-0.00") else more, printable(what)


def _unit(ns: float) -> tuple[str, float]:
    """Unit in which a time has digits before its point, and its ns."""
    return next(each for each in _UNITS if ns >= each[1] or each == _UNITS[-1])


def _of_other(change: StepChange) -> str:
    """The command before, if it is another one."""
    return f" of {change.key.process}" if change.is_run and change.key.process != change.key.name else ""


def _in(change: StepChange, what: str) -> str:
    if what == ON_CPU and change.mostly:
        return f"{what}, mostly in {change.mostly}"
    return what if what in (ON_CPU, RUNNABLE, BETWEEN, BLOCKED) else f"in {what}"


_SAME = "same"
_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
