"""Adds up what runs by the program's innermost Python function: its lines and what it calls are rows of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ..facts import thresholds
from ..facts.frame_names import without_line
from .figures import Running


class Work(NamedTuple):
    """Samples of the same threads in one function. Names are hostile."""

    frames: tuple[str, ...]
    in_kernel: bool
    weight: int
    samples: int
    mostly: str
    """Function that it calls, if most of the weight is there, and not all; else ""."""
    mostly_weight: int
    whose: Running
    """A row of these threads."""


def by_function(running: Iterable[Running]) -> list[Work]:
    """Most weight first. Rows of other threads, and those without a Python function, stay as they are."""
    groups: dict[object, list[Running]] = defaultdict(list)
    for row in running:
        end = _end(row.frames)
        function = tuple(map(without_line, row.frames[:end])) if end else (row.frames, row.in_kernel)
        # Rows of a function can be added up only if they are of the same threads: then their weight is the same, too.
        whose = frozenset((who.process, who.thread, who.main, who.threads, frozenset(who.tids)) for who in row.who)
        groups[function, bool(end), whose, row.threads_weight].append(row)
    return sorted(map(_together, groups.values()), key=lambda work: (-work.weight, work.frames, work.in_kernel))


def _end(frames: tuple[str, ...]) -> int:
    """The number of frames up to the innermost function with a line, which is the program's; 0 without one."""
    return next((i for i in range(len(frames), 0, -1) if without_line(frames[i - 1]) != frames[i - 1]), 0)


def _together(rows: list[Running]) -> Work:
    first, end = rows[0], _end(rows[0].frames)
    weight, samples = sum(row.weight for row in rows), sum(row.samples for row in rows)
    if len(rows) == 1:
        return Work(first.frames, first.in_kernel, weight, samples, "", 0, first)
    lines = {row.frames[:end] for row in rows}
    frames = lines.pop() if len(lines) == 1 else tuple(map(without_line, first.frames[:end]))
    called: dict[str, int] = defaultdict(int)
    for row in rows:
        if len(row.frames) > end:
            called[row.frames[-1]] += row.weight
    most, time = max(called.items(), key=lambda entry: (entry[1], entry[0]), default=("", 0))
    mostly = most if time >= thresholds.CALLED_MOSTLY * weight else ""
    return Work(frames, all(row.in_kernel for row in rows), weight, samples, mostly, time if mostly else 0, first)
