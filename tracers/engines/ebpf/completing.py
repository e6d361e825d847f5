"""Replaces stacks that were cut short by the complete stack of which each is the inner part, if there is only one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...kernel.records import ENDS
from ...measures.protocol import Row

_CUT = frozenset((ENDS.index("no unwind table"),))
"""Such walks are right as far as they go, and go on once the table is loaded. A walk that ends for another reason ends
there every time: a complete stack with the same inner part is of another wait."""


class _Place(NamedTuple):
    """Where a thread waits, as the kernel knows it: a process's program, one of its threads, and a kernel stack."""

    tgid: int
    execs: int
    tid: int
    kstack: int


def complete(rows: Sequence[Row], stacks: Mapping[int, tuple[int, ...]], ends: Mapping[int, int]) -> list[Row]:
    """Gives a row whose user stack was cut the complete stack that it is the inner part of.

    Only a stack of the same thread with the same kernel stack counts, and only if there is exactly one: the first wait
    of a thread, taken before the tables were loaded, is usually one that it repeats.

    ``stacks``: frames by id, leaf first. ``ends``: by id, an index into `ENDS`; missing means complete.
    """
    cut = {stack for stack, end in ends.items() if end in _CUT and stack in stacks}
    if not cut:
        return list(rows)
    wanted = {_place(row) for row in rows if row.origin.ustack in cut}
    whole: dict[_Place, set[int]] = defaultdict(set)
    for row in rows:
        stack = row.origin.ustack
        if stack in stacks and not ends.get(stack) and (place := _place(row)) in wanted:
            whole[place].add(stack)
    made = []
    for row in rows:
        stack = row.origin.ustack
        if stack in cut:
            frames = stacks[stack]
            found = [each for each in whole.get(_place(row), ()) if stacks[each][: len(frames)] == frames]
            if len(found) == 1:
                row = row._replace(origin=row.origin._replace(ustack=found[0]))
        made.append(row)
    return made


def _place(row: Row) -> _Place:
    origin = row.origin
    return _Place(origin.tgid, origin.execs, origin.tid, origin.kstack)
