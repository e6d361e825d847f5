"""Files of cProfile and pstats (``python -m cProfile -o FILE``): functions and their callers, as stacks.

Such a file has no stacks. It is a dictionary {function: (calls without recursion, calls, own time, time with callees,
{caller: (calls, calls without recursion, own time, time with callees)})}. A function is (file, line, name); a caller's
numbers are those of its calls of the function. Stacks are constructed from each function upwards to its callers, by
dividing the function's own time:

- The own time is divided among the callers in proportion to the own time that each caused, which the file gives.
- The share of a caller is divided among its callers in proportion to the time with callees that they caused in it,
  and so on, up to functions without a caller. A function's time below a caller is therefore correct in total,
  while longer paths assume that it does not depend on the caller's caller.
- The part of a function's time beyond the shares of all its callers was called from outside of the profile: a root.
- Recursion: the part of a caller that is already on the path goes to the other callers. If there are no others, the
  caller is used a second time, so that a cycle is left where it was entered, but never a third time: the stack ends
  there, as it does after 200 frames.
- A share below 1/5,000 of the whole is not divided further, but follows the largest caller: the number of stacks
  is at most 5,000 plus the number of functions.

Nothing is lost: the sum over all stacks equals the sum of the own times; the same holds for calls. Source:
Lib/cProfile.py, Lib/pstats.py. The file is decoded by `marshal_data`, not by the marshal module.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...base.errors import StallscopeError
from ...model import Frame, Profile, Sample, Stack, ValueType
from ..base.options import ReadOptions
from ..base.python_frames import kind_of
from ..base.source import Source
from .marshal_data import decode

LIMIT = 256 << 20
"""Maximum size of a file, in bytes."""

_SMALLEST = 1 / 5_000
_TOLERANCE = 1e-6
"""Relative error that rounding may cause in a sum of times."""
_NOTHING = 1e-12
"""Times below this, in seconds, cannot be measured."""
_MAX_DEPTH = 200
_MAX_SECONDS = 1e9
_NANOSECONDS = 1_000_000_000
_SHAPE = "a file of cProfile: {(file, line, function): (calls, calls, seconds, seconds, callers)}"

_Function = tuple[str, int, str]
_Path = tuple[_Function, ...]
_Amount = tuple["_Function | None", float, float]
"""A caller (None: no caller), and the own seconds and calls attributed to it."""


class _Edge(NamedTuple):
    """The part of a function's numbers that one caller caused."""

    caller: _Function
    calls: float
    own: float
    total: float


class _Totals(NamedTuple):
    calls: int
    own: float
    total: float
    edges: list[_Edge]


def sniff(head: bytes) -> bool:
    """Whether it is a marshalled dictionary whose first key is a tuple of three."""
    if head[:1] not in (b"{", b"\xfb"):
        return False
    return head[1:3] in (b")\3", b"\xa9\3") or head[1:6] in (b"(\3\0\0\0", b"\xa8\3\0\0\0")


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per path, with its own time and the calls of its innermost function. Raises StallscopeError."""
    data = source.read_all(LIMIT)
    try:
        functions = _functions(decode(data))
    except ValueError as error:
        raise StallscopeError(f"{source.name} is not {_SHAPE}: {error}", "was it written to the end?") from error
    profile = Profile([ValueType("time", "nanoseconds"), ValueType("calls", "count")], title="cProfile")
    frames = {key: _frame(key) for key in functions}
    time, calls = _Rounded(_NANOSECONDS), _Rounded(1)
    for path, own, count in _Paths(functions).all():
        stack: Stack = tuple(frames[key] for key in reversed(path))
        values = time.next(own), calls.next(count)
        if any(values):
            profile.samples.append(Sample(stack, values))
    return profile


def _functions(document: Any) -> dict[_Function, _Totals]:
    if not isinstance(document, dict):
        raise ValueError("no dictionary")
    functions = {}
    for key, entry in document.items():
        if not isinstance(entry, tuple) or len(entry) != 5 or not isinstance(entry[4], dict):
            raise ValueError("a function without its four numbers and its callers")
        calls, own, total = _numbers(entry[1:4])
        edges = [_edge(caller, numbers) for caller, numbers in entry[4].items()]
        functions[_function(key)] = _Totals(int(calls), own, total, edges)
    for totals in list(functions.values()):
        for edge in totals.edges:
            functions.setdefault(edge.caller, _Totals(0, 0.0, 0.0, []))
    return functions


def _edge(caller: Any, numbers: Any) -> _Edge:
    if isinstance(numbers, int) and not isinstance(numbers, bool):  # the module profile counts only calls
        return _Edge(_function(caller), float(max(numbers, 0)), 0.0, 0.0)
    if not isinstance(numbers, tuple) or len(numbers) != 4:
        raise ValueError("a caller without its four numbers")
    return _Edge(_function(caller), *_numbers((numbers[0], *numbers[2:])))


def _function(key: Any) -> _Function:
    if not isinstance(key, tuple) or len(key) != 3:
        raise ValueError("a function that is no (file, line, name)")
    file, line, name = key
    if not isinstance(file, str) or not isinstance(name, str) or not isinstance(line, int):
        raise ValueError("a function that is no (file, line, name)")
    return file, line, name


def _numbers(entry: tuple[Any, ...]) -> tuple[float, float, float]:
    """(calls, own seconds, seconds with callees); negative times, from a clock that went backwards, become 0."""
    for number in entry:
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < _MAX_SECONDS:
            raise ValueError("a count or a time that is no number, or too large")
    calls, own, total = (float(number) if number > _NOTHING else 0.0 for number in entry)
    return calls, own, total


def _frame(key: _Function) -> Frame:
    file, line, name = key
    if file in ("~", ""):
        return Frame(name or "[unknown]", "native")
    return Frame(name or "[unknown]", kind_of(file), file=file, line=max(line, 0))


class _Paths:
    """Divides the own time of functions among the paths that lead to them."""

    def __init__(self, functions: dict[_Function, _Totals]) -> None:
        self._functions = functions
        self._smallest = _SMALLEST * sum(totals.own for totals in functions.values())
        self._parts: dict[_Function, list[tuple[_Function | None, float]]] = {}
        self._largest: dict[_Function, _Path] = {}

    def all(self) -> Iterator[tuple[_Path, float, float]]:
        """(path, innermost first; own seconds; calls), for every function."""
        for key, totals in self._functions.items():
            if not totals.own and not totals.calls:
                continue
            shares = _shares(totals.own, [edge.own for edge in totals.edges])
            counts = _shares(float(totals.calls), [edge.calls for edge in totals.edges])
            amounts: list[_Amount] = [(None, shares[0], counts[0])]
            amounts += [(e.caller, t, n) for e, t, n in zip(totals.edges, shares[1:], counts[1:], strict=True)]
            yield from self._up((key,), amounts)

    def _up(self, path: _Path, amounts: list[_Amount]) -> Iterator[tuple[_Path, float, float]]:
        """Depth first, without recursion. ``amounts``: how the path's amounts are divided among its callers."""
        open_ = [(path, amounts)]
        while open_:
            path, amounts = open_.pop()
            for caller, own, calls in self._allowed(path, amounts):
                if caller is None:
                    yield path, own, calls
                elif own <= self._smallest and not set(path).intersection(self._largest_callers(caller)):
                    yield (*path, *self._largest_callers(caller))[:_MAX_DEPTH], own, calls
                else:
                    parts = self._callers(caller)
                    open_.append(((*path, caller), [(each, own * part, calls * part) for each, part in parts]))

    def _allowed(self, path: _Path, amounts: list[_Amount]) -> list[_Amount]:
        """The callers to follow, and their parts; a small amount goes to the largest caller undivided."""
        own = sum(amount[1] for amount in amounts)
        calls = sum(amount[2] for amount in amounts)
        allowed: list[_Amount] = []
        for often in (0, 1):
            if len(path) < _MAX_DEPTH and not any(amount[1] or amount[2] for amount in allowed):
                allowed = [amount for amount in amounts if amount[0] is None or path.count(amount[0]) <= often]
        if not any(amount[1] or amount[2] for amount in allowed):
            return [(None, own, calls)]
        if own <= self._smallest:
            largest = max(allowed, key=lambda amount: (amount[1], amount[2]))
            return [(largest[0], own, calls)]
        times = [time for _, time, _ in allowed]
        counts = [count for _, _, count in allowed]
        by_time = _scaled(times if any(times) else counts, own)
        by_count = _scaled(counts if any(counts) else times, calls)
        return [(a[0], t, n) for a, t, n in zip(allowed, by_time, by_count, strict=True) if t or n]

    def _callers(self, key: _Function) -> list[tuple[_Function | None, float]]:
        """The callers of ``key``, with their share of its time with callees, or of its calls; shares add up to 1."""
        known = self._parts.get(key)
        if known is None:
            totals = self._functions[key]
            parts = _shares(totals.total, [edge.total for edge in totals.edges])
            if not sum(parts):
                parts = [0.0, *(edge.calls for edge in totals.edges)]
            if not sum(parts):
                parts[0] = 1.0
            callers = [None, *(edge.caller for edge in totals.edges)]
            pairs = zip(callers, _scaled(parts, 1.0), strict=True)
            known = self._parts[key] = [(caller, part) for caller, part in pairs if part]
        return known

    def _largest_callers(self, key: _Function) -> _Path:
        """``key``, its largest caller, that one's largest caller, and so on, until one repeats."""
        known = self._largest.get(key)
        if known is None:
            found = {key: None}
            at: _Function | None = key
            while at is not None and len(found) < _MAX_DEPTH:
                at = max(self._callers(at), key=lambda pair: pair[1])[0]
                if at in found:
                    break
                if at is not None:
                    found[at] = None
            known = self._largest[key] = tuple(found)
        return known


def _scaled(parts: list[float], whole: float) -> list[float]:
    total = sum(parts)
    return [part * whole / total for part in parts]


def _shares(whole: float, parts: list[float]) -> list[float]:
    """The rest that ``parts`` leave of ``whole``, then ``parts``, scaled to add up to ``whole`` if nothing is left."""
    total = math.fsum(parts)
    if total > whole * (1 - _TOLERANCE):
        return [0.0, *(part * whole / total for part in parts)] if total else [whole, *parts]
    return [whole - total, *parts]


class _Rounded:
    """Integers with the same sum as the fractions: the remainder from rounding one is carried to the next."""

    def __init__(self, scale: int) -> None:
        self._scale = scale
        self._exact = 0.0
        self._written = 0

    def next(self, value: float) -> int:
        self._exact += value * self._scale
        step = max(round(self._exact) - self._written, 0)
        self._written += step
        return step
