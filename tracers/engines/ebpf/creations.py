"""Places where threads were created: the stacks of those who created them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ....converters.model import Stack
from ...kernel.records import RUNNING, Origin, ThreadRecord
from ..rows import Row
from .lives import Lives

if TYPE_CHECKING:
    from .stacks import Stacks


def creation_rows(threads: Iterable[ThreadRecord], lives: Lives, of_sums: Mapping[int, int]) -> dict[int, Row]:
    """Rows with the stacks in which threads were created, by the thread's first life. Equal ones are one object.

    ``threads``: their processes have numbers. ``of_sums``: by the first life of a sum, one of its rows."""
    found: dict[int, Row] = {}
    known: dict[tuple[int, int, int], Row] = {}
    ends: dict[tuple[int, int], int] = {}
    for thread in (record.thread for record in threads):
        key = thread.key
        if not thread.made_in or not (key.tid or thread.first in of_sums):
            continue
        origin = Origin(thread.made_in, 0, 0, 0, key.tgid, of_sums.get(thread.first, key.life), RUNNING)
        epoch = lives.epoch(origin)
        # All have one life: a stack that was cut short is completed by those of the same one.
        origin = origin._replace(life=ends.setdefault((key.tgid, epoch), origin.life))
        found[thread.first] = known.setdefault((key.tgid, epoch, thread.made_in), Row(origin, "running", ()))
    return found


def distinct(rows: Mapping[int, Row]) -> list[Row]:
    """The rows of `creation_rows`, each once."""
    return list({id(row): row for row in rows.values()}.values())


class Creations:
    """Functions in which threads were created."""

    def __init__(self, rows: Mapping[int, Row], completed: Mapping[int, Row], stacks: Stacks) -> None:
        """``completed``: by the identity of a row, the one with the whole stack."""
        self._rows = rows
        self._made: dict[int, tuple[str, ...]] = {}
        if rows:
            from ....converters.facts.made_in import Creators  # not needed by most commands

            found: dict[int, Stack] = {id(row): stacks.of(completed[id(row)]) for row in distinct(rows)}
            creators = Creators()
            self._made = {number: creators.of(stack) for number, stack in found.items()}

    def of(self, first: int) -> tuple[str, ...]:
        """The functions, as in `ThreadTimes.made_in`, by the thread's first life."""
        row = self._rows.get(first)
        return self._made[id(row)] if row else ()
