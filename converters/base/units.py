"""Formats numbers for display: times, shares, counts, and columns that add up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_SMALL_UNITS = (("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))


def duration(ns: int) -> str:
    """A time in ns with three digits: ``850 ns``, ``1.52 ms``, ``12.3 s``, ``2 min 05 s``, ``1 h 05 min``."""
    if ns < 0:
        return "-" + duration(-ns)
    if ns < 1_000:
        return f"{ns} ns"
    for unit, size in _SMALL_UNITS[1:]:
        value = ns / size
        if unit == "s" and value >= _MINUTE - 0.05:
            break
        # A value that rounds to 1000 belongs to the next unit.
        if value < 999.5:
            decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{decimals}f} {unit}"
    return _long_duration(round(ns / 1_000_000_000))


def _long_duration(seconds: int) -> str:
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min {seconds % _MINUTE:02d} s"
    minutes = round(seconds / _MINUTE)
    if minutes < _DAY // _MINUTE:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(seconds / _HOUR)
    return f"{hours // 24} d {hours % 24:02d} h"


BILLIONTHS = "ppb"
"""The unit of shares: a whole has a billion of them."""
BILLION = 1_000_000_000


def share(part: int, whole: int) -> str:
    """``part`` of ``whole``: ``84.2 %``; ``0.0 %`` and ``100.0 %`` only if exact; "-" if ``whole`` is 0."""
    if whole <= 0:
        return "-"
    text = f"{100 * part / whole:.1f}"
    if text == "0.0" and part > 0:
        return "<0.1 %"
    if text == "100.0" and part < whole:
        return ">99.9 %"
    return f"{text} %"


def count(n: int) -> str:
    """A number with separators: ``31,204``."""
    return f"{n:,}"


def size(n: int) -> str:
    """A number of bytes: ``64 MiB``, ``1.50 GiB``, ``512 B``."""
    for unit, number in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= number:
            return f"{n // number} {unit}" if n % number == 0 else f"{n / number:.3g} {unit}"
    return f"{n} B"


def plural(n: int, noun: str) -> str:
    """``1 thread``, ``31,204 threads``, ``2 processes``."""
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{count(n)} {noun}{ending}"


def counted(n: int, kinds: str) -> str:
    """A number of things that are named in the plural: ``3 lines not understood``, ``1 line not understood``."""
    return f"{count(n)} {_PLURAL.sub(_singular, kinds, count=1) if n == 1 else kinds}"


def _singular(ending: re.Match[str]) -> str:
    return "y" if ending[0] == "ies" else ""


_PLURAL = re.compile(r"(?<=\w)ies\b|(?<=ss)es\b|(?<=[^\Ws])s\b")
"""The ending of the first noun in the plural."""


class Scale(NamedTuple):
    """Format of the cells of one column, which can be compared and added up by eye.

    A cell shows an integer number of steps; a step is one unit of its last digit: value × ``factor`` / ``step``.
    """

    factor: int
    step: int
    decimals: int
    unit: str

    def steps(self, parts: Sequence[int], total: int | None = None) -> list[int]:
        """Each part in steps, rounded so that they add up: to ``total`` steps, or to the rounded sum."""
        return apportion([part * self.factor for part in parts], self.step, total)

    def text(self, steps: int, exact: int) -> str:
        """The cell for ``steps``; a value (``exact`` > 0) that rounds to nothing is ``<0.01 s``."""
        sign, steps = ("<", 1) if steps == 0 and exact > 0 else ("", steps)
        return f"{sign}{steps / 10**self.decimals:,.{self.decimals}f} {self.unit}"


def time_scale(total: int) -> Scale:
    """One unit for all times in a column whose sum is ``total`` ns; the sum has four or five digits."""
    unit, size = next(((unit, size) for unit, size in reversed(_SMALL_UNITS) if total >= size), _SMALL_UNITS[0])
    if size == 1:
        return Scale(1, 1, 0, unit)
    decimals = 3 if total < 10 * size else 2 if total < 1_000 * size else 1
    return Scale(1, size // 10**decimals, decimals, unit)


def share_scale(whole: int) -> Scale:
    """Percent of ``whole`` (> 0), with one decimal."""
    return Scale(1_000, whole, 1, "%")


def apportion(parts: Sequence[int], step: int, total: int | None = None) -> list[int]:
    """``parts`` as numbers of steps that add up to ``total`` steps; None is the sum of the parts, rounded.

    By largest remainder: none is off by a step or more if ``total`` is close to the sum of the parts.
    """
    if not parts:
        return []
    if total is None:
        total = (2 * sum(parts) + step) // (2 * step)
    steps = [part // step for part in parts]
    for_each, for_some = divmod(total - sum(steps), len(parts))
    by_remainder = sorted(range(len(parts)), key=lambda i: (-(parts[i] % step), i))
    for rank, i in enumerate(by_remainder):
        steps[i] += for_each + (rank < for_some)
    return steps
