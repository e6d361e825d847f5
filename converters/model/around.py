"""The Python functions in which calls were made, as spans around these calls.

A function is known only at the begins of calls: its span goes from the first call that it makes to the end of the last
one of those that follow each other with it. It does not tell when the function itself began and returned, or whether
it did so in between.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as chained
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from .call_spans import of_threads
from .samples import Stack
from .scheduling import NO_STACK, Array, Scheduling, Threads

DRAWN = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),  # after that of the recording if it is still to come
        ("thread", "<i4"),  # row of Scheduling.threads
        ("name", "<i4"),  # index of the names
        ("level", "<i2"),  # that of a call; less than 0 for a Python function around calls
    ]
)
"""Layout of a drawn span. Spans of a thread nest: of two that have a time in common, that with the lower level is
around the other one."""

CATEGORY = "python around calls"
"""Category of spans of Python functions: it says that nobody may take their length for that of the function."""
DEEPEST = 128
"""Functions that are shown around a call, the outermost ones."""
_PART = 1 << 16


class Named(NamedTuple):
    """Name of something that is drawn. ``name`` is hostile; ``category``: a kind of a `CallName`, or `CATEGORY`."""

    name: str
    category: str


class _Function(NamedTuple):
    """A Python function; its lines do not tell it from another one."""

    name: str
    file: str


def drawn_calls(scheduling: Scheduling, known: Threads) -> tuple[Array, list[Named]]:
    """Python functions, then the calls of traced threads; rows of `DRAWN`, both sorted so that none comes before one
    that is around it. ``known``: the scheduling's threads."""
    calls, rows = of_threads(scheduling, known)
    functions, names = _around(scheduling.stacks, calls, rows)
    made = np.zeros(len(calls), DRAWN)
    for column in ("begin", "end", "level"):
        made[column] = calls[column]
    made["thread"], made["name"] = rows, calls["name"] + len(names)
    names += [Named(each.name, each.kind) for each in scheduling.call_names]
    return np.concatenate([functions, made]), names


def _around(stacks: Sequence[Stack], calls: Array, rows: Array) -> tuple[Array, list[Named]]:
    """The Python functions around outermost calls: what Python code does that is called back inside of a call is not
    drawn. ``calls`` and ``rows``: as `of_threads` gives them."""
    numbers: dict[_Function, int] = {}
    used = np.unique(calls["stack"])
    found = {stack: _chain(stacks[stack], numbers) for stack in used[used != NO_STACK].tolist()}
    if not any(found.values()):
        return np.zeros(0, DRAWN), []
    chains = dict.fromkeys(((), *found.values()))
    places = {chain: i for i, chain in enumerate(chains)}
    # The last one is that of NO_STACK.
    of_stack = np.zeros(int(used[-1]) + 2, np.int32)
    for stack, chain in found.items():
        of_stack[stack] = places[chain]
    runs = _runs(calls, rows, of_stack[calls["stack"]])
    return _nested(runs, list(chains)), [Named(each.name, CATEGORY) for each in numbers]


def _chain(stack: Stack, numbers: dict[_Function, int]) -> tuple[int, ...]:
    """The numbers of the Python functions of a stack, outermost first; new ones are added."""
    functions = (_Function(frame.name, frame.file) for frame in stack if frame.kind == "python")
    return tuple(numbers.setdefault(each, len(numbers)) for each in islice(functions, DEEPEST))


class _Run(NamedTuple):
    """Outermost calls of a thread that follow each other, all with the same functions around them."""

    thread: int
    chain: int
    begin: int
    end: int


_NOBODY = _Run(-1, 0, 0, 0)


def _runs(calls: Array, rows: Array, chains: Array) -> Iterator[_Run]:
    order = np.lexsort((calls["level"], calls["begin"], rows))
    order = order[_outermost(calls[order], rows[order])]
    calls, rows, chains = calls[order], rows[order], chains[order]
    changes = np.flatnonzero((rows[1:] != rows[:-1]) | (chains[1:] != chains[:-1])) + 1
    first, last = np.append(0, changes), np.append(changes, len(calls)) - 1
    columns = rows[first], chains[first], calls["begin"][first], calls["end"][last]
    for at in range(0, len(first), _PART):
        yield from map(_Run, *(column[at : at + _PART].tolist() for column in columns))


def _outermost(calls: Array, rows: Array) -> Array:
    """True for each of the calls, sorted by thread and begin, that begins after the ends of those before it."""
    times, ends = np.unique(calls["end"], return_inverse=True)
    latest = np.maximum.accumulate(rows.astype(np.int64) * len(times) + ends)
    # The latest end of an earlier call of the thread; -1: it is the first one.
    place = np.append(-1, latest[:-1] - rows[1:].astype(np.int64) * len(times))
    found: Array = (place < 0) | (times[np.maximum(place, 0)] <= calls["begin"])
    return found


def _nested(runs: Iterable[_Run], chains: Sequence[tuple[int, ...]]) -> Array:
    """Rows of `DRAWN`, by thread and begin, outer ones first."""
    columns = {name: array("q") for name in DRAWN.names or ()}
    opened: list[int] = []
    for before, run in pairwise(chained([_NOBODY], runs, [_NOBODY])):
        chain = chains[run.chain]
        same = _common(chains[before.chain], chain) if before.thread == run.thread else 0
        for place in opened[same:]:
            columns["end"][place] = before.end
        del opened[same:]
        for depth, function in enumerate(chain[same:], same):
            opened.append(len(columns["begin"]))
            for name, value in zip(columns, (run.begin, 0, run.thread, function, depth - DEEPEST), strict=True):
                columns[name].append(value)
    made = np.zeros(len(columns["begin"]), DRAWN)
    for name, column in columns.items():
        made[name] = column
    return made


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Number of elements, from the beginning on, that are the same in both."""
    same = (a == b for a, b in zip(one, other, strict=False))
    return next((i for i, equal in enumerate(same) if not equal), min(len(one), len(other)))
