"""Gloo's collectives, of probes at the entries of functions alone: those functions can throw.

A call begins when its function does. Inside of it, in the same thread, the function hands an object over to a thread
that does the work; when that is done, this thread calls a function of the object. What is used again later is the
object's address. A call that hands nothing over has failed: it is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .....converters.collectives.records import OPEN
from .....converters.collectives.signatures import COLLECTIVE, ENQUEUES, FINISHES, GLOO, MAKES, Signature, signature_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Begun(NamedTuple):
    """A function that a thread has begun. ``place``: that of its return address on the stack."""

    place: int
    group: int
    row: int


def joined(kept: NDArray[np.void], named: Callable[[int], str]) -> NDArray[np.void]:
    """The records, with those of each call of Gloo's made one, whose end is when it was done. ``kept``: of
    `argument_records.RECORD`; ``named``: the function of a number."""
    known = {number: of for number in np.unique(kept["function"]).tolist() if (of := signature_of(named(number)))}
    numbers = [number for number, of in known.items() if of.library == GLOO]
    is_mine = np.isin(kept["function"], numbers)
    if not is_mine.any():
        return kept
    mine = kept[is_mine]
    mine = mine[np.argsort(mine["began"], kind="stable")]
    join = _Join(mine, known)
    rows = np.array(sorted(join.ends), np.intp)
    found = mine[rows]
    found["ended"] = [join.ends[row] for row in rows.tolist()]
    makes = np.isin(found["function"], [number for number in numbers if known[number].kind == MAKES])
    found["made"] = np.where(makes, found["arguments"][:, 0], 0)
    found["result"] = 0
    return np.concatenate([kept[~is_mine], found])


class _Join:
    """Goes through the records in the order of their times. ``ends``: by row of a call, when it was done."""

    def __init__(self, mine: NDArray[np.void], known: dict[int, Signature]) -> None:
        self.ends: dict[int, int] = {}
        self._begun: dict[int, list[_Begun]] = {}
        """Functions by thread, the outermost first, that may be on its stack and have handed nothing over."""
        self._working: dict[tuple[int, int], int] = {}
        """Rows of calls that are not done, by process and address of the object."""
        for row, (of, tid, pid, place, began, made, arguments) in enumerate(_columns(mine, known)):
            if of.kind == MAKES:
                self.ends[row] = began
            elif of.kind == FINISHES:
                call = self._working.pop((pid, arguments[of.work]), None)
                if call is not None:
                    self.ends[call] = began
            else:
                begun = self._begun.setdefault(tid, [])
                while begun and begun[-1].place <= place:
                    begun.pop()
                if of.kind == COLLECTIVE:
                    begun.append(_Begun(place, arguments[of.comm], row))
                elif of.kind == ENQUEUES and (call := self._outermost(begun, arguments[of.comm])) is not None:
                    self.ends[call] = OPEN
                    self._working[pid, made] = call

    def _outermost(self, begun: list[_Begun], group: int) -> int | None:
        """Takes the outermost function of this group: those inside of it are parts of the call."""
        for at, each in enumerate(begun):
            if each.group == group:
                del begun[at]
                return each.row
        return None


def _columns(
    mine: NDArray[np.void], known: dict[int, Signature]
) -> Iterator[tuple[Signature, int, int, int, int, int, list[int]]]:
    of = [known[number] for number in mine["function"].tolist()]
    columns = (mine[name].tolist() for name in ("tid", "pid", "result", "began", "made", "arguments"))
    return zip(of, *columns, strict=True)
