"""Looks at a thread in /proc at a moment, and the state that it was in when its stack was taken.

The kernel says for a thread that sleeps at which instruction it will go on, and in which system call it is
(/proc/PID/task/TID/syscall). So a state of /proc and a stack of eu-stack that were taken at different moments can be
compared: only if both are at the same place does the state belong to the stack.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TypeVar

from ...outside.reads import Memory

_T = TypeVar("_T")

RUNS, WOKEN, ASLEEP = "R", "W", "S"
"""Letters: on a core or waiting for one; waiting for one after a wait; in a wait. Others are those of proc(5)."""

_CALLS = {"x86_64": (2, b"\x0f\x05"), "aarch64": (4, b"\x01\x00\x00\xd4")}
"""Length and bytes of the instruction that calls the kernel: syscall, svc #0."""
_ONLY_WAIT = {
    # poll, select, pause, nanosleep, accept, wait4, semop, msgrcv, rt_sigtimedwait, rt_sigsuspend, futex, io_getevents,
    # restart_syscall, semtimedop, clock_nanosleep, epoll_wait, mq_timedreceive, waitid, pselect6, ppoll, epoll_pwait,
    # accept4, epoll_pwait2, futex_waitv
    "x86_64": frozenset(
        (7, 23, 34, 35, 43, 61, 65, 70, 128, 130, 202, 208, 219, 220, 230, 232, 243, 247, 270, 271, 281, 288, 441, 449)
    ),
    # io_getevents, epoll_pwait, pselect6, ppoll, waitid, futex, nanosleep, clock_nanosleep, restart_syscall,
    # rt_sigsuspend, rt_sigtimedwait, mq_timedreceive, msgrcv, semtimedop, semop, accept, accept4, wait4, epoll_pwait2,
    # futex_waitv
    "aarch64": frozenset((4, 22, 72, 73, 95, 98, 101, 115, 128, 133, 137, 183, 188, 192, 193, 202, 242, 260, 441, 449)),
}
"""Numbers of system calls that, where they sleep at all, use next to no time of a core."""
_ENDED = ("", "Z", "X", "x")
_USUAL = (RUNS, ASLEEP, "D")
_MOST = 1 << 16


@dataclass(frozen=True)
class Look:
    """A thread at a moment."""

    letter: str = ""
    """State of proc(5); "" when the thread is gone."""
    is_traced: bool = False
    """Whether another process holds it by ptrace(2): then the state is what that process made it."""
    number: int = -1
    """Number of the system call in which it sleeps; -1 outside of one."""
    address: int | None = None
    """Address at which it will go on, if it sleeps; None where that cannot be told."""

    @property
    def sleeps(self) -> bool:
        return not self.is_traced and self.letter != RUNS and self.letter not in _ENDED


def look(pid: int, tid: int) -> Look:
    """The thread now."""
    seen = _state(pid, tid)
    if not seen.sleeps:
        return seen
    try:
        # One read: old kernels make the text anew for each, and "running" could be followed by the end of another.
        with open(f"/proc/{pid}/task/{tid}/syscall", "rb", buffering=0) as file:
            words = (file.read(512) or b"").split()
    except OSError:  # gone, or not for this user
        return seen
    again = _state(pid, tid)
    if again != seen:  # what was read may be of either state
        return again if again.is_traced or again.letter in _ENDED else Look(RUNS)
    if len(words) < 3:  # "running"
        return Look(RUNS)
    return Look(seen.letter, number=int(words[0]), address=int(words[-1], 16))


def _state(pid: int, tid: int) -> Look:
    letter, tracer = "", 0
    try:
        with open(f"/proc/{pid}/task/{tid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"State:"):
                    letter = line.split()[1].decode()
                elif line.startswith(b"TracerPid:"):
                    tracer = int(line.split()[1])
                    break
    except OSError:
        return Look()
    return Look(letter, tracer != 0)


class States:
    """Finds the states of threads at their stacks. Remembers where threads were seen asleep."""

    def __init__(self) -> None:
        self._waits: dict[tuple[int, int], int] = {}
        """Number of the system call, by process and the address behind the instruction that calls it."""
        self._at_call: dict[tuple[int, int], bool] = {}

    def note(self, pid: int, seen: Look) -> None:
        """Remembers where a thread of the process sleeps."""
        if seen.sleeps and seen.number >= 0 and seen.address is not None:
            _keep(self._waits, (pid, seen.address), seen.number)

    def of(self, pid: int, address: int, before: Look, after: Look) -> str:
        """Letter of the state of a thread that was stopped at this address.

        ``before``: shortly before it was stopped; ``after``: after it went on. A place where a thread sleeps in one of
        them is a wait. A stack outside of a system call, or in one in which no thread was ever seen asleep, is not.
        """
        for seen in (before, after):
            if seen.sleeps and seen.address == address:
                return seen.letter
        if before.letter not in _USUAL:
            return before.letter
        if before.sleeps and before.address is None:
            return before.letter if before.letter != ASLEEP or self._in_kernel(pid, address) else RUNS
        number = self._waits.get((pid, address)) if self._in_kernel(pid, address) else None
        if number is None:
            return RUNS
        if number in _ONLY_WAIT.get(platform.machine(), ()):
            return ASLEEP if before.sleeps else WOKEN
        return before.letter

    def _in_kernel(self, pid: int, address: int) -> bool:
        """Whether the instruction before this address calls the kernel; True where that cannot be told."""
        known = self._at_call.get((pid, address))
        if known is None:
            known = is_call(pid, address)
            _keep(self._at_call, (pid, address), known)
        return known


def _keep(table: dict[tuple[int, int], _T], key: tuple[int, int], value: _T) -> None:
    if len(table) >= _MOST:
        table.clear()
    table[key] = value


def is_call(pid: int, address: int) -> bool:
    """Whether the instruction before this address of the process calls the kernel; True where it cannot be read."""
    length, call = _CALLS.get(platform.machine(), (0, b""))
    if not length or address <= length:
        return True
    memory = Memory(pid)
    try:
        return memory.read(address - length, length) == call
    except OSError:
        return True
    finally:
        memory.close()
