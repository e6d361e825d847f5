"""Replaces stacks that were cut short by the complete stack of which each is the inner part, if there is only one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...kernel.records import ENDS
from ..rows import Row

_CUT = frozenset((ENDS.index("no unwind table"),))
"""Ends of walks that are right as far as they go, and go on once the table is loaded. A walk that ends for another
reason ends there every time: a complete stack with the same inner part is of another wait."""


class _Place(NamedTuple):
    """Place where a thread waits, as the kernel knows it: a thread that runs one program, and a kernel stack."""

    tgid: int
    life: int
    kstack: int


def complete(rows: Sequence[Row], stacks: Mapping[int, tuple[int, ...]], ends: Mapping[int, int]) -> list[Row]:
    """Gives a row whose user stack was cut the complete stack that it is the inner part of.

    Only a stack of the same thread with the same kernel stack counts, and only if there is exactly one: the first wait
    of a thread, taken before the tables were loaded, is usually one that it repeats.

    ``stacks``: frames by id, leaf first. ``ends``: by id, an index into `ENDS`; missing means complete.
    """
    cut = {(_place(row), stacks[row.origin.ustack]) for row in rows if _is_cut(row, stacks, ends)}
    if not cut:
        return list(rows)
    lengths: dict[_Place, set[int]] = defaultdict(set)
    for place, frames in cut:
        lengths[place].add(len(frames))
    found: dict[tuple[_Place, tuple[int, ...]], set[int]] = defaultdict(set)
    for row in rows:
        stack = row.origin.ustack
        if stack not in stacks or ends.get(stack):
            continue
        place = _place(row)
        for length in lengths.get(place, ()):
            inner = place, stacks[stack][:length]
            if inner in cut:
                found[inner].add(stack)
    return [_completed(row, stacks, ends, found) for row in rows]


def _is_cut(row: Row, stacks: Mapping[int, tuple[int, ...]], ends: Mapping[int, int]) -> bool:
    return row.origin.ustack in stacks and ends.get(row.origin.ustack) in _CUT


def _completed(
    row: Row,
    stacks: Mapping[int, tuple[int, ...]],
    ends: Mapping[int, int],
    found: Mapping[tuple[_Place, tuple[int, ...]], set[int]],
) -> Row:
    stack = row.origin.ustack
    if not _is_cut(row, stacks, ends):
        return row
    whole = found.get((_place(row), stacks[stack]), ())
    return row._replace(origin=row.origin._replace(ustack=next(iter(whole)))) if len(whole) == 1 else row


def _place(row: Row) -> _Place:
    origin = row.origin
    return _Place(origin.tgid, origin.life, origin.kstack)
