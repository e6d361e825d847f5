"""Files of cProfile and pstats (``python -m cProfile -o FILE``): functions, and who called them, as stacks.

Such a file has no stacks: {function: (calls without recursion, calls, own time, time with callees, {caller: (calls,
calls without recursion, own time, time with callees) of what it called})}, a function being (file, line, name). Stacks
are made of it upwards, for the own time of each function:

- it is shared out among the callers in proportion to the own time that each caused (their edges say it exactly);
- the share of a caller is shared out among its callers in proportion to the time with callees that those caused in
  it, and so on, up to functions that nobody called. So a function's time below a caller is right in sum, while
  longer paths assume that it does not depend on the caller's caller.
- What a function has beyond all of its callers' shares was called from outside of the profile: that is a root.
- Recursion: a caller that is on the path already leaves its part to the others. Where there are no others it is taken
  for a second time, so that a cycle is left where it was entered; never for a third: there the stack ends, and so it
  does after 200 frames.
- A share below 1/5,000 of the whole is not divided any more, but follows the caller with the largest one: the stacks
  are at most that many plus the functions.

Nothing gets lost: the sum over all stacks is the sum of the own times, and so are the calls. Source: Lib/cProfile.py,
Lib/pstats.py. The file is decoded by `marshal_data`, not by the marshal module.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import StallscopeError
from ..model import Frame, Profile, Sample, Stack, ValueType
from .marshal_data import decode
from .options import ReadOptions
from .python_frames import kind_of
from .source import Source

LIMIT = 256 << 20
"""Bytes of a file."""

_SMALLEST = 1 / 5_000
_TOLERANCE = 1e-6
"""What a sum of times may be off by rounding, as a part of it."""
_NOTHING = 1e-12
"""Seconds that cannot be measured."""
_MAX_DEPTH = 200
_MAX_SECONDS = 1e9
_NANOSECONDS = 1_000_000_000
_SHAPE = "a file of cProfile: {(file, line, function): (calls, calls, seconds, seconds, callers)}"

_Function = tuple[str, int, str]
_Path = tuple[_Function, ...]
_Amount = tuple["_Function | None", float, float]
"""A caller (None: nobody), and the own seconds and calls that go to it."""


class _Edge(NamedTuple):
    """What one caller caused in a function."""

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
    if isinstance(numbers, int) and not isinstance(numbers, bool):  # The module profile counts calls only.
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
    """(calls, own seconds, seconds with callees); times that a clock which went backwards made negative are 0."""
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
    """Divides the own time of functions among the paths to them."""

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
        """Depth first, without recursion: ``amounts`` are what each caller (None: no caller) takes of the path's."""
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
        """The callers that go on, and their parts: all for the largest if it is little."""
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
        """Who called ``key``, by the part of its time with callees that they caused, or of its calls; adds up to 1."""
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
        """``key``, its largest caller, the largest one of that …, as far as none comes twice."""
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
    """``parts`` as they add up to ``whole``, what they leave of it in front of them."""
    total = math.fsum(parts)
    if total > whole * (1 - _TOLERANCE):
        return [0.0, *(part * whole / total for part in parts)] if total else [whole, *parts]
    return [whole - total, *parts]


class _Rounded:
    """Whole numbers whose sum is that of the fractions: what rounding takes from one, the next one gets."""

    def __init__(self, scale: int) -> None:
        self._scale = scale
        self._exact = 0.0
        self._written = 0

    def next(self, value: float) -> int:
        self._exact += value * self._scale
        step = max(round(self._exact) - self._written, 0)
        self._written += step
        return step
