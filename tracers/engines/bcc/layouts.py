"""Layouts that the programs and user space exchange: mirrors the structures of ``programs.c``. Times: CLOCK_MONOTONIC,
ns."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from ....converters.model.states import BY_LETTER
from ....converters.model.states import OTHER as OTHER_STATE

FRAMES = 127
"""Frames of a stack, at most; the kernel's own default limit (kernel.perf_event_max_stack)."""
STATES, PREEMPTED, OTHER, NEW, SAMPLED = 16, 0, 13, 14, 15
"""Number of states, and those that are no bit of prev_state."""
LOST_STACK = (1 << 64) - 1
"""Stands for the stack of a wait of which a switch was not reported."""
ENDED = "XxZ"
"""Letters of threads that have run for the last time: include/trace/events/sched.h, also of kernels before 4.14."""


class Phase(IntEnum):
    """UNKNOWN: of a thread that was taken in, until its first event."""

    UNKNOWN = 0
    ON_CPU = 1
    BLOCKED = 2
    RUNNABLE = 3
    GONE = 4


class Counter(IntEnum):
    """Index into the map of counters."""

    NEW_WAITS = 0
    NEW_SAMPLES = 1
    NEW_STACKS = 2
    NEW_ENDED = 3
    LOST_WAITS = 4
    LOST_TIME = 5
    """ns of these waits."""
    LOST_SAMPLES = 6
    LOST_STACKS = 7
    LOST_THREADS = 8
    UNSEEN = 9
    """Switches that were not reported."""
    UNSEEN_TIME = 10
    """ns of which it is not known what the thread did."""


_ACCOUNT = struct.Struct(f"=11Q4I{STATES}Q16s")
_PLACE = struct.Struct("=3Q4I")
_SUM = struct.Struct("=7Q")
_ENDED_KEY = struct.Struct("=QII")
CONTROL = struct.Struct("=4I")
"""Whether the programs run; the table of each pair; a process that joins at its next exec, or 0; nothing."""
NUMBER = struct.Struct("=Q")
TID = struct.Struct("=I")
ACCOUNT_SIZE, PLACE_SIZE, SUM_SIZE, ENDED_KEY_SIZE = _ACCOUNT.size, _PLACE.size, _SUM.size, _ENDED_KEY.size
STACK_SIZE = 8 + 8 * FRAMES


class KernelAccount(NamedTuple):
    """``struct account``."""

    life: int
    start: int
    since: int
    out: int
    woken: int
    end: int
    on_cpu: int
    runnable: int
    switches: int
    ustack: int
    kstack: int
    tgid: int
    phase: int
    state: int
    is_new: int
    blocked: tuple[int, ...]
    comm: bytes

    @staticmethod
    def unpack(data: bytes) -> KernelAccount:
        values = _ACCOUNT.unpack(data)
        head, blocked, comm = values[:15], values[15 : 15 + STATES], values[-1].partition(b"\0")[0]
        return KernelAccount._make((*head, blocked, comm))

    @staticmethod
    def seed(tgid: int, state: int, now: int) -> bytes:
        """A thread that is there already."""
        return _ACCOUNT.pack(now, now, now, now, *[0] * 7, tgid, Phase.UNKNOWN, state, 0, *[0] * STATES, b"")


class KernelPlace(NamedTuple):
    """``struct place``."""

    ustack: int
    kstack: int
    life: int
    tid: int
    tgid: int
    state: int
    pad: int = 0

    @staticmethod
    def unpack(data: bytes) -> KernelPlace:
        return KernelPlace(*_PLACE.unpack(data))


class WaitSum(NamedTuple):
    """``struct wait_sum``."""

    number: int
    blocked: int
    blocked_min: int
    blocked_max: int
    runnable: int
    runnable_min: int
    runnable_max: int

    @staticmethod
    def unpack(data: bytes) -> WaitSum:
        return WaitSum(*_SUM.unpack(data))

    def plus(self, other: WaitSum) -> WaitSum:
        return WaitSum(
            self.number + other.number,
            self.blocked + other.blocked,
            min(self.blocked_min, other.blocked_min),
            max(self.blocked_max, other.blocked_max),
            self.runnable + other.runnable,
            min(self.runnable_min, other.runnable_min),
            max(self.runnable_max, other.runnable_max),
        )


def ended_tid(key: bytes) -> int:
    """Thread id in ``struct ended_key``."""
    return int(_ENDED_KEY.unpack(key)[1])


def frames(value: bytes) -> tuple[int, ...]:
    """The addresses of ``struct stack``, innermost first."""
    (size,) = NUMBER.unpack_from(value)
    count = min(size // 8, FRAMES)
    return struct.unpack_from(f"={count}Q", value, 8)


def state_index(letter: str, letters: dict[int, str]) -> int:
    """Index of a letter of proc(5), as the programs number states; ``letters``: of prev_state, by bit."""
    if letter == "R":
        return PREEMPTED
    return next((bit.bit_length() for bit, each in letters.items() if each == letter), OTHER)


def state_name(index: int, letters: dict[int, str]) -> str:
    """The state of `states.BLOCKED` with this number."""
    return BY_LETTER.get(letters.get(1 << index - 1, ""), OTHER_STATE) if 0 < index < OTHER else OTHER_STATE
