"""The processes for which a condition holds, with the values that it has asked for."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ...base.text import json_text, printable
from ...base.units import count, duration
from ...facts import thresholds
from ...facts.facts import Facts
from ...facts.identity import kernel_id, shown_id
from ...facts.wait_sums import Thread
from ...rules.rank_states import RankStates
from ...rules.verdict import IDLE
from ..process_verdicts import ProcessVerdict
from . import words
from .expression import Comparison, Condition, Joined, Not, Operator, Quantity, TextComparison
from .figures import Figures
from .places import places_in_jobs
from .words import Measure

_COMPARE: Mapping[Operator, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Measured:
    """Value that a quantity of a condition had."""

    quantity: Quantity
    value: float
    """ns, a fraction of 1, or a plain number."""
    whole: int
    """ns of which it is a part; 0: of nothing."""

    def __str__(self) -> str:
        """``blocked(main) 71.3 %``"""
        return f"{printable(str(self.quantity))} {self._figure()}"

    def _figure(self) -> str:
        measure = words.QUANTITIES[self.quantity.word]
        if measure is Measure.TIME:
            return f"{100 * self.value / self.whole:.1f} % ({duration(round(self.value))})"
        if measure is Measure.LENGTH:
            return duration(round(self.value))
        if measure is Measure.SHARE:
            return f"{100 * self.value:.1f} %"
        return count(round(self.value)) if self.value == round(self.value) else f"{self.value:,.2f}"

    def to_json(self) -> dict[str, Any]:
        """Plain data: ``value`` is in ns for times; ``share`` is a fraction of 1, null for a part of nothing."""
        share = round(self.value / self.whole, 6) if self.whole else None
        return {"quantity": json_text(str(self.quantity)), "value": round(self.value, 6), "share": share}


@dataclass(frozen=True)
class Holding:
    """Process for which a condition holds. The name is unescaped (hostile)."""

    name: str
    pid: int
    """Id of the process, as the kernel has it."""
    kind: str
    """Kind of its verdict, see `rules.verdict.KINDS`."""
    values: tuple[Measured, ...]

    def __str__(self) -> str:
        """``train (pid 12): blocked(main) 71.3 % (713 ms)``"""
        told = ", ".join(map(str, self.values)) or f"verdict {self.kind}"
        return f"{printable(self.name)} (pid {shown_id(self.pid)}): {told}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``json.dumps``."""
        values = [each.to_json() for each in self.values]
        return {"name": json_text(self.name), "pid": self.pid, "kind": self.kind, "values": values}


def holding(
    condition: Condition,
    facts: Facts,
    rows: Sequence[ProcessVerdict],
    pids: Collection[int] | None = None,
    jobs: Iterable[RankStates] = (),
) -> list[Holding]:
    """The processes for which it holds, in the order of ``rows``; those that are not known well enough are left out.

    ``pids``: the kernel's ids of the processes that are looked at; None: all. ``jobs``: with their ranks' times.
    """
    return list(_holding(condition, facts, rows, pids, jobs))


def _holding(
    condition: Condition,
    facts: Facts,
    rows: Sequence[ProcessVerdict],
    pids: Collection[int] | None,
    jobs: Iterable[RankStates],
) -> Iterator[Holding]:
    places = places_in_jobs(jobs)
    threads: dict[int, list[Thread]] = defaultdict(list)
    for thread in facts.own:
        threads[thread[0]].append(thread)
    for row in rows:
        for pid in row.pids:
            if pids is not None and kernel_id(pid) not in pids:
                continue
            share = row.share if row.kind != IDLE else None
            figures = Figures(facts, pid, threads[pid], share, places.get(pid))
            judged = _Judged(figures, row.kind, _name(facts, threads[pid], row))
            if judged.holds(condition):
                yield Holding(judged.name, kernel_id(pid), row.kind, tuple(judged.values.values()))


def _name(facts: Facts, threads: Sequence[Thread], row: ProcessVerdict) -> str:
    main = next((each for each in threads if each[0] == each[1]), None) or next(iter(threads), None)
    return facts.threads[main].process if main else row.name


class _Judged:
    """A condition on one process: whether it holds, and the values that decided it."""

    def __init__(self, figures: Figures, kind: str, name: str) -> None:
        self._figures, self._kind, self.name = figures, kind, name
        self.values: dict[Quantity, Measured] = {}
        """Values by what was asked for."""

    def holds(self, condition: Condition) -> bool | None:
        """None: it is not known."""
        if isinstance(condition, Not):
            found = self.holds(condition.of)
            return None if found is None else not found
        if isinstance(condition, Joined):
            parts = [self.holds(each) for each in condition.parts]
            decides = condition.how == "or"
            if decides in parts:
                return decides
            return None if None in parts else not decides
        return self._text(condition) if isinstance(condition, TextComparison) else self._number(condition)

    def _text(self, condition: TextComparison) -> bool:
        if condition.word == words.VERDICT:
            return (self._kind == condition.text) is condition.is_equal
        return fnmatchcase(self.name, condition.text) is condition.is_equal

    def _number(self, condition: Comparison) -> bool | None:
        found = self._figures.of(condition.quantity)
        if found is None:
            return None
        value, whole = found
        self.values[condition.quantity] = Measured(condition.quantity, value, whole)
        if condition.value.unit == "%" and whole:
            value /= whole
        return _COMPARE[condition.operator](value, condition.value.number)


def told(found: Sequence[Holding]) -> str:
    """``a (pid 1): …; b (pid 2): … and 3 more``"""
    first = "; ".join(map(str, found[: thresholds.HOLDING_NAMED]))
    more = len(found) - thresholds.HOLDING_NAMED
    return f"{first} and {count(more)} more" if more > 0 else first
