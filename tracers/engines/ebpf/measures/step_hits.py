"""Calls of Python functions, from the writes to the counts of references of their code objects.

A frame has a reference to its code object: the count is one more when a call begins, and one less when it ends. Other
references come and go, too: a look at ``f.__code__``, a ``def`` that is executed again, a traceback. A call is told
apart from these by the functions that the thread is in: at its begin and at its end, they are its caller and that one's
callers; and by the frame itself, which is there at its end.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ....cpython.functions import Function
from ....cpython.layouts import Version

HIT = struct.Struct("<II4Q4I2B6x")
"""struct step_hit of bpf/python_steps.bpf.c."""
INNERMOST, UNREADABLE, FRAME, FREE = 1, 2, 4, 8
"""Flags of a hit."""
MISSED_CHANGES = "changes of a Python function's count of references that the kernel did not report"
UNREADABLE_THREADS = "begins and ends of Python functions in threads that could not be read"
LOST_WRITES = "writes to a Python function's count of references without room in the ring buffer"
"""The name of this loss."""
_LEAVES_LAST = (3, 11)
"""Version in which the frame may still be the thread's innermost one when it gives its reference back."""
_MOVES_ON = (3, 12)
"""Version in which a caller's instruction is behind its inline cache when the function ends."""
_CACHES = (0, 2, 6, 18)
"""Bytes of those of instructions that call functions."""
_KEEPS_FRAMES = (3, 10)
"""Version up to which a code object keeps a frame, which a call takes first; and instructions have no inline caches,
behind which callers go on."""


class Hit(NamedTuple):
    """A write. ``references``: the count after it."""

    references: int
    time: int
    code: int
    caller: int
    """The code object of the innermost other function; 0: none."""
    callers: int
    """A hash of those that lead to it, with their instructions."""
    instruction: int
    tid: int
    tgid: int
    life: int
    inside: int
    """Number of the thread's functions that are this one."""
    flags: int


def parse_hit(data: bytes) -> Hit:
    """A record of the probes."""
    return Hit(*HIT.unpack_from(data)[1:])


class Call(NamedTuple):
    """A call that returned; times as in `Hit`."""

    begin: int
    end: int
    hit: Hit
    """Write at the begin of the call."""


@dataclass
class _Open:
    """A call that goes on, if it is one."""

    began: Hit
    references: int = 1
    """Number of references that the thread took since."""
    last: int = 0
    """Time when the frame may have given its reference back; 0: not yet."""


@dataclass
class Account:
    """Numbers of what is no call that returned."""

    uses: int = 0
    """References that were not given back where they were taken: of calls that an exception left, of looks at the
    function."""
    unreadable: int = 0
    missed: int = 0
    """Number of times that the count had changed by more than the write that was seen."""


class StepHits:
    """Takes the writes of one code object of a process, in their order."""

    def __init__(self, version: Version, references: int | None, function: Function) -> None:
        """``references``: the count before the first write; None: not known."""
        self._version = version
        self.function = function
        self._references = references
        self._open: dict[tuple[int, int], _Open] = {}
        self.account = Account()
        self.is_freed = False

    def take(self, hit: Hit) -> Call | None:
        """The call that a write shows to have ended, perhaps before."""
        change = None if self._references is None else hit.references - self._references
        self._references = hit.references
        if self.is_freed or not hit.references:
            self.is_freed = True
            return None
        thread = hit.tid, hit.life
        if hit.flags & UNREADABLE:
            self.account.unreadable += 1
            self._open.pop(thread, None)
            return None
        if change not in (-1, 1):
            self.account.missed += change is not None
            if not hit.inside:
                self._open.pop(thread, None)
            return None
        if hit.inside:
            self._inside(self._open.get(thread), hit, change)
            return None
        return self._outside(thread, hit, change)

    def _inside(self, call: _Open | None, hit: Hit, change: int) -> None:
        """The function is on the stack."""
        if call is None:
            return
        call.references += change
        is_last = self._version == _LEAVES_LAST and change < 0 and hit.flags & INNERMOST and hit.inside == 1
        began = call.began
        if is_last and (hit.caller, hit.callers) == (began.caller, began.callers):
            call.last = hit.time

    def _outside(self, thread: tuple[int, int], hit: Hit, change: int) -> Call | None:
        """Takes a hit at which the thread is outside: a call has ended, or begins."""
        call = self._open.get(thread)
        if call and change > 0 and self._keeps(call.began, hit):
            return None
        self._open.pop(thread, None)
        ended = None
        if call and change < 0 and self._returns(call.began, hit):
            ended = Call(call.began.time, hit.time, call.began)
        elif call and call.last:
            ended = Call(call.began.time, call.last, call.began)
        elif call:
            self.account.uses += 1
        if change > 0 and not (self._version <= _KEEPS_FRAMES and hit.flags & FREE):
            self._open[thread] = _Open(hit)
        return ended

    def _keeps(self, began: Hit, hit: Hit) -> bool:
        """Whether a frame is kept that an exception is about to leave: it takes another reference first."""
        if self._version <= _LEAVES_LAST or (hit.caller, hit.callers) != (began.caller, began.callers):
            return False
        return hit.instruction - began.instruction in (_CACHES if self._version == _MOVES_ON else (0,))

    def _returns(self, began: Hit, hit: Hit) -> bool:
        """Whether a frame ends in the place from which it was called."""
        if (hit.caller, hit.callers) != (began.caller, began.callers):
            return False
        if self._version > _KEEPS_FRAMES:
            return bool(hit.flags & FRAME)
        # There was none to be kept when the call began, so that one has ended.
        return bool(hit.flags & (FRAME | FREE)) and hit.instruction == began.instruction

    def finish(self) -> tuple[list[Call], list[Hit]]:
        """Calls that had ended, and those that go on."""
        still = self._open.values()
        ended = [Call(each.began.time, each.last, each.began) for each in still if each.last and not each.references]
        return ended, [each.began for each in still if not each.last or each.references]


def accounts(all_hits: Iterable[StepHits], past: Account | None = None) -> Account:
    """Account with the sum of these, and of the ``past`` one."""
    sums: defaultdict[str, int] = defaultdict(int)
    for each in (past or Account(), *(hits.account for hits in all_hits)):
        for name, number in vars(each).items():
            sums[name] += number
    return Account(**sums)
