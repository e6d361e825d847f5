"""The DWARF call frame virtual machine (DWARF 5, 6.4.2), run over many functions at once.

The event that last changed a rule is a running maximum over the events' numbers. Where DW_CFA_restore_state restored
remembered rules, the answer is the one at the matching DW_CFA_remember_state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .events import (
    BY_EXPRESSION,
    CFA_OFFSET,
    CFA_REGISTER,
    COLUMNS,
    RECALL,
    REMEMBER,
    START,
    Addresses,
    Events,
    Programs,
    read_events,
)
from .rows import DAMAGED, UNKNOWN, pack
from .rules import NOT_TOLD, States, encode_all

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLANK = (BY_EXPRESSION, -1, NOT_TOLD, NOT_TOLD, NOT_TOLD)
"""The rules before a CIE's first instruction, by column."""


class Rows(NamedTuple):
    """Rows of programs, one program after another."""

    location: NDArray[np.int64]
    """Bytes from the function's start."""
    word: NDArray[np.uint32]
    """Rules of each row as packed by `rows.pack`."""
    counts: NDArray[np.int64]
    """Number of rows per program, at least one. A program that makes no sense has one, `UNKNOWN`."""


def run(programs: Programs, addresses: Addresses, budget: list[int]) -> Rows:
    """The rows of ``programs``; for ``budget`` and exceptions see `rules.encode_all`."""
    import numpy as np

    machine = _Machine(read_events(programs, addresses), programs.initial)
    events, damaged = machine.events, machine.damaged
    last = np.ones(len(events.program), bool)  # of several at one location, the last
    last[:-1] = (events.program[1:] != events.program[:-1]) | (events.location[1:] != events.location[:-1])
    is_start = events.changes == START
    which = np.flatnonzero(np.where(damaged[events.program], is_start, last))
    words = encode_all(machine.states(which), programs.octets, budget)
    program = events.program[which]
    words[damaged[program]] = pack(UNKNOWN, DAMAGED)
    changed = np.ones(len(which), bool)
    changed[1:] = (words[1:] != words[:-1]) | (program[1:] != program[:-1])
    counts = np.bincount(program[changed], minlength=len(programs.begin))
    return Rows(events.location[which][changed], words[changed], counts)


def run_initial(programs: Programs) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(the rules at the end of the CIEs' programs, `COLUMNS` numbers each, which CIEs make no sense)."""
    import numpy as np

    machine = _Machine(read_events(programs, Addresses(8, False, None)), programs.initial)
    events = machine.events
    end = np.searchsorted(events.program, np.arange(len(programs.begin)), "right") - 1
    # A CIE's rules hold from the start: it must neither advance nor leave state remembered.
    machine.damaged[events.program[events.location > 0]] = True
    depth = np.cumsum((events.changes == REMEMBER).astype(np.int64) - (events.changes == RECALL))
    machine.damaged[1:] |= np.diff(depth[end]) != 0
    machine.damaged[0] |= depth[end[0]] != 0
    return np.stack(machine.states(end), axis=1), machine.damaged


class _Machine:
    """Computes which rules are in force after an event."""

    def __init__(self, events: Events, initial: NDArray[np.int64]) -> None:
        import numpy as np

        self.events, self.damaged, self._initial = events, events.damaged, initial
        self._numbers = np.arange(len(events.program))
        self._recalls, self._remembered = self._match()
        self._refuse_mixed_cfa()

    def states(self, which: NDArray[np.int64]) -> States:
        """The rules after each of the events ``which``; arbitrary for events of damaged programs."""
        return States(*(self._column(column, which) for column in range(COLUMNS)))

    def _match(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(each RECALL, the REMEMBER before it). Programs that recall state they never remembered are damaged."""
        import numpy as np

        events = self.events
        which = np.flatnonzero(events.changes >= REMEMBER)
        program, recalls = events.program[which], events.changes[which] == RECALL
        if not recalls.any():
            return which[:0], which[:0]
        depth = np.cumsum(np.where(recalls, -1, 1))
        first = np.flatnonzero(np.diff(program, prepend=-1))
        before = depth[first] - np.where(recalls[first], -1, 1)
        depth -= np.repeat(before, np.diff(first, append=len(which)))
        self.damaged[program[depth < 0]] = True
        bad = self.damaged[program]
        events.changes[which[bad]] = 0
        which, program, recalls, level = which[~bad], program[~bad], recalls[~bad], (depth + recalls)[~bad]
        # In the order of (program, level), each recall follows its remember.
        order = np.lexsort((which, level, program))
        which, recalls = which[order], recalls[order]
        at = np.flatnonzero(recalls)
        pairs = np.argsort(which[at])
        return which[at][pairs], which[at - 1][pairs]

    def _refuse_mixed_cfa(self) -> None:
        """DWARF 5, 6.4.2.2: only a CFA that is register plus offset can have one of the two changed alone."""
        import numpy as np

        events = self.events
        if (events.register != BY_EXPRESSION).all():
            return
        alone = np.flatnonzero((events.changes == 1 << CFA_REGISTER) | (events.changes == 1 << CFA_OFFSET))
        mixed = self._column(CFA_REGISTER, alone - 1) == BY_EXPRESSION
        self.damaged[events.program[alone[mixed]]] = True

    def _column(self, column: int, which: NDArray[np.int64]) -> NDArray[np.int64]:
        import numpy as np

        events = self.events
        if column > CFA_OFFSET and np.count_nonzero(events.changes & 1 << column) == len(self._initial):
            unchanged: NDArray[np.int64] = self._initial[events.program[which], column]
            return unchanged
        changes = (events.changes & (1 << column | RECALL)) != 0
        source = np.maximum.accumulate(np.where(changes, self._numbers, 0))
        self._follow(source)
        source = source[which]
        numbers = events.register if column == CFA_REGISTER else events.number
        found: NDArray[np.int64] = numbers[source]
        if column > CFA_OFFSET:  # a START sets only the CFA
            initial = np.flatnonzero(events.changes[source] == START)
            found[initial] = self._initial[events.program[source[initial]], column]
        return found

    def _follow(self, source: NDArray[np.int64]) -> None:
        """Substitutes, for each RECALL in ``source``, what was in force at its REMEMBER."""
        import numpy as np

        if not len(self._recalls):
            return
        aim = np.zeros(len(source), np.int64)  # one for each RECALL
        aim[self._recalls] = source[self._remembered]
        is_recall = self.events.changes == RECALL
        again = self._recalls
        while len(again):
            again = again[is_recall[aim[again]]]
            aim[again] = aim[aim[again]]
        back = np.flatnonzero(is_recall[source])
        source[back] = aim[source[back]]
