"""Combines two profiles into one that shows what changed.

A differential profile has exactly two values, ``after`` and ``before``, in this order and in one unit.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ..base.errors import StallscopeError
from ..base.units import BILLION, BILLIONTHS
from ..model import Frame, Labels, Module, Profile, Sample, Stack, ValueType, parts
from ..model.ranks import LABELS
from ..model.remarks import Comment, OfSide
from ..model.wait_objects import LABEL as OBJECT
from ..writers.base.options import WriteOptions, value_index
from .labels import Without
from .samples import ByFrame
from .weight import value_name

AFTER: Final = "after"
BEFORE: Final = "before"

_OF_ONE_RUN = ("host", "input", "pid", "tid", OBJECT, *LABELS)
"""Labels that differ between runs of the same program."""


def is_differential(profile: Profile) -> bool:
    """Whether `differential` made the profile."""
    return [(value.name, value.aggregate) for value in profile.value_types] == [(AFTER, "sum"), (BEFORE, "sum")]


def differential(before: Profile, after: Profile, value: str = "", *, normalise: bool = False) -> Profile:
    """Both weights of every stack, 0 where it is missing; with ``normalise`` as shares of the total of their side.

    ``value`` chooses what is compared, see `compared`. Stacks are those of functions: addresses, lines, folders,
    build-ids and the versions of libraries belong to one build; ids of processes and threads and the host to one run.
    Losses and comments state their side; the accounts of threads are left out.
    Raises StallscopeError (exit code 2) if nothing can be compared.
    """
    base_name, name = compared(before, after, value)
    column = after.index(name)
    unit = BILLIONTHS if normalise else after.value_types[column].unit
    cells = _Cells()
    cells.add(after, column, 0)
    cells.add(before, before.index(base_name), 1)
    samples = list(cells.samples())
    sides = ((BEFORE, before), (AFTER, after))
    changed = replace(
        after,
        value_types=[ValueType(AFTER, unit), ValueType(BEFORE, unit)],
        samples=_normalised(samples) if normalise else samples,
        title=_title(before, after),
        host=after.host if before.host in ("", after.host) else f"{before.host} → {after.host}",
        lost={f"{kind} ({side})": count for side, each in sides for kind, count in each.lost.items()},
        comments=_comments(before, after),
        timeline=None,
        scheduling=None,
        critical=None,
        display=None,
        answered=None,
        default_value="",
        details=None,
        **parts.without(),
    )
    if normalise:
        changed.comments.append(f"shares of all {name}: before and after may have had different totals")
    return changed


def compared(before: Profile, after: Profile, value: str = "") -> tuple[str, str]:
    """The names of the values that `differential` compares, before and after.

    ``value`` is a name that both have, or time or count (see `weight.value_name`); "" is the default of ``after``,
    and in ``before`` the value with that name, or else with that unit. StallscopeError (exit code 2) if there is none.
    """
    wanted = after.value_types[value_index(after, WriteOptions(value=value_name(after, value)))]
    names = [each.name for each in before.value_types if each.aggregate == "sum" and each.unit == wanted.unit]
    name = value_name(before, value) if value else wanted.name
    if name not in names and names and not value:
        name = names[0]
    if name not in names:
        listed = ", ".join(f"{each.name} ({each.unit})" for each in before.value_types) or "nothing"
        raise StallscopeError(
            f"the profiles cannot be compared: {wanted.name} ({wanted.unit}) after, {listed} before",
            "choose with --value what both have",
            exit_code=2,
        )
    return name, wanted.name


class _Cells:
    """(stack, labels) → [after, before]."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str, str, str], Frame] = {}
        self._cells: dict[tuple[Stack, Labels], list[int]] = {}

    def add(self, profile: Profile, column: int, side: int) -> None:
        """Adds one column of ``profile`` on one side: 0 after, 1 before."""
        function = ByFrame(self._function).__getitem__
        shorter = Without(_OF_ONE_RUN)
        cells = self._cells
        for stack, values, labels in profile.samples:
            if amount := values[column]:
                cells.setdefault((tuple(map(function, stack)), shorter[labels]), [0, 0])[side] += amount

    def samples(self) -> Iterator[Sample]:
        """All samples, with both sides."""
        for (stack, labels), (after, before) in self._cells.items():
            yield Sample(stack, (after, before), labels)

    def _function(self, frame: Frame) -> Frame:
        """One frame for a function that is the same in both builds: the first one seen."""
        module = frame.module
        library = os.path.basename(module.path).partition(".so")[0] if module else ""
        key = (frame.name, frame.kind, library, os.path.basename(frame.file))
        if key not in self._functions:
            module = Module(module.path) if module else None
            self._functions[key] = frame._replace(address=0, line=0, module=module)
        return self._functions[key]


def _normalised(samples: list[Sample]) -> list[Sample]:
    if sum(sample.values[1] for sample in samples) <= 0:
        raise StallscopeError(
            "there is nothing before that could be scaled to what is after", "compare without --normalize", exit_code=2
        )
    after, before = (_shares([sample.values[side] for sample in samples]) for side in (0, 1))
    return [
        Sample(sample.stack, values, sample.labels)
        for sample, values in zip(samples, zip(after, before, strict=True), strict=True)
        if any(values)
    ]


def _shares(values: Sequence[int]) -> Iterator[int]:
    """Each in billionths of their sum; all of them together are the whole."""
    total = sum(values)
    exact = written = 0
    for value in values:
        # Rounds the sums, rather than adding rounded parts, to arrive at the exact total.
        exact += value * BILLION
        part = (2 * exact + total) // (2 * total) - written if total > 0 else 0
        written += part
        yield part


def _title(before: Profile, after: Profile) -> str:
    if before.title == after.title:
        return f"{after.title}: before and after" if after.title else "before and after"
    return f"{after.title or 'after'}, compared with {before.title or 'before'}"


def _comments(before: Profile, after: Profile) -> list[Comment]:
    both = [text for text in after.comments if text in before.comments]
    sides = ((BEFORE, before), (AFTER, after))
    return both + [OfSide(side, text) for side, each in sides for text in each.comments if text not in both]
