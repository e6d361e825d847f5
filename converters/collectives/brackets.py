"""Calls of a thread between one that begins something and one that ends it: a group of NCCL, the capture of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .records import CallTable
from .signatures import COLLECTIVE, POINT_TO_POINT, signature_of

_CALLS, _BEGINS, _ENDS = 1, 2, 3


class Bracket(NamedTuple):
    """Rows of the collectives and messages inside, and of the call that ends the outermost bracket; None: none did."""

    rows: Sequence[int]
    end: int | None


def brackets(table: CallTable, begins: str, ends: str) -> Iterator[Bracket]:
    """Brackets of all threads. ``begins``, ``ends``: kinds of functions, see `signatures`."""
    import numpy as np

    numbers = {COLLECTIVE: _CALLS, POINT_TO_POINT: _CALLS, begins: _BEGINS, ends: _ENDS}
    known = [signature_of(name) for name in table.names]
    by_function = np.array([numbers.get(each.kind, 0) if each else 0 for each in known], np.int8)
    if not {_BEGINS, _ENDS} & {*by_function.tolist()}:
        return
    kinds = by_function[table.calls["function"]]
    rows = np.flatnonzero(kinds)
    calls = table.calls[rows]
    order = rows[np.lexsort((calls["began"], calls["tid"], calls["pid"]))]
    threads = table.calls[["pid", "tid"]][order]
    for part in np.split(order, np.flatnonzero(threads[1:] != threads[:-1]) + 1):
        of = kinds[part].tolist()
        if _ENDS in of or _BEGINS in of:
            yield from _of_thread(part.tolist(), of, any_lost=table.lost > 0)


def _of_thread(rows: Sequence[int], kinds: Sequence[int], *, any_lost: bool) -> Iterator[Bracket]:
    """Brackets of one thread. The first one may have begun before the trace. ``any_lost``: calls are missing; brackets
    are seldom inside of others, and so one that begins in another one says that the end of that is missing."""
    inside: list[int] = []
    depth, is_first = 0, True
    for row, kind in zip(rows, kinds, strict=True):
        if kind == _CALLS:
            inside += [row] if depth or is_first else []
        elif kind == _BEGINS:
            if not depth or any_lost:
                inside.clear()
            depth = 1 if any_lost else depth + 1
            is_first = False
        else:
            depth -= 1
            if depth == 0 or (depth < 0 and is_first and not any_lost):
                yield Bracket(tuple(inside), row)
            if depth <= 0:
                inside.clear()
            depth, is_first = max(depth, 0), False
    if depth and inside:
        yield Bracket(tuple(inside), None)
