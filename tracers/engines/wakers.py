"""The frames of who woke a thread: behind the thread's own, as FlameGraph's chain graphs have them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from ...converters.model import Frame, Labels, Stack
from ...converters.model.wakers import SEPARATOR, WAKER, joined_tids
from ..kernel.records import (
    BY_CORE,
    BY_DEVICE,
    BY_NOBODY,
    BY_SOFTIRQ,
    BY_THREAD,
    BY_TIMER,
    RUNNING,
    Origin,
    Waker,
)
from .rows import Row

_ACTIONS = Path("/sys/kernel/irq")
_SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
"""Names of softirqs as in /proc/softirqs, in the order of enum in include/linux/interrupt.h."""
_TIMERS = ("TIMER", "HRTIMER")
_WOKEN_BY = "try_to_wake_up"
_ENTRIES = ("asm_sysvec_", "asm_common_interrupt", "asm_spurious_interrupt", "asm_fred_")
"""Begins of functions in which an interrupt begins: what lies outside is what it interrupted."""
_INTERRUPTED = ("irq_exit_rcu", "__irq_exit_rcu", "irq_exit")
"""A softirq that runs when an interrupt ends, and not by a thread's own call."""


class Lives(Protocol):
    """Owners of ids, as `lives.Lives` knows them."""

    def numbered(self, origin: Origin, /) -> Origin:
        """Origin with the number of the process instead of its pid."""
        ...

    def first(self, life: int, /) -> int:
        """The first life of a thread; -1: not known."""
        ...


class Stacks(Protocol):
    """Stacks with names, as `stacks.Stacks` has them."""

    def parts_of(self, row: Row, /) -> tuple[Stack, Stack]:
        """The user's and the kernel's frames."""
        ...


class Names(Protocol):
    """Names as `names.Names` has them."""

    def process(self, pid: int, /) -> str:
        """The name of a process, by its number."""
        ...

    def thread(self, pid: int, first: int, /) -> str:
        """Name of a thread, by its first life."""
        ...


def by_rows(rows: Sequence[Row], lives: Lives) -> list[Row]:
    """A row for each waker of these rows: so that its stacks and its process get names."""
    wakers = {waker for chain in {row.wakers for row in rows} for waker in chain}
    return [_row(waker, lives) for waker in wakers if waker.ustack or waker.kstack]


def _row(waker: Waker, lives: Lives) -> Row:
    origin = Origin(waker.ustack, waker.kstack, 0, waker.tid, waker.tgid, waker.life, RUNNING)
    return Row(lives.numbered(origin), "", ())


class Wakers:
    """Tells who wakers are."""

    def __init__(self, lives: Lives, stacks: Stacks, names: Names, ours: Collection[int] = ()) -> None:
        """``ours``: pids of the tracer and of the processes that work for it."""
        self._lives, self._stacks, self._names, self._ours = lives, stacks, names, frozenset(ours)
        self._chains: dict[tuple[Waker, ...], tuple[Stack, Labels]] = {(): ((), ())}
        self._parts: dict[Waker, tuple[Stack, str, bool]] = {}
        self._frames: dict[Frame, Frame] = {}
        self._devices: dict[int, str] = {}

    def of(self, wakers: tuple[Waker, ...]) -> tuple[Stack, Labels]:
        """The frames, and labels that tell who ended the wait."""
        found = self._chains.get(wakers)
        if found is None:
            found = self._chains[wakers] = self._chain(wakers)
        return found

    def processes(self) -> dict[int, str]:
        """Names of the processes of all wakers so far, by pid."""
        threads = [waker for waker, (_, _, is_interrupt) in self._parts.items() if waker.tgid and not is_interrupt]
        return {waker.tgid: self._names.process(_row(waker, self._lives).origin.tgid) for waker in threads}

    def _chain(self, wakers: tuple[Waker, ...]) -> tuple[Stack, Labels]:
        frames: Stack = ()
        labels: dict[str, str | int] = {}
        tids: list[int] = []
        for waker in wakers:
            part = self._parts.get(waker)
            if part is None:
                part = self._parts[waker] = self._part(waker)
            stack, name, is_interrupt = part
            tids.append(0 if is_interrupt else waker.tid)
            key = "chain_thread" if labels else "waker_thread"
            labels.setdefault("waker", name)
            if not is_interrupt:
                labels[key] = self._thread(waker)
            frames += (SEPARATOR, *stack, self._frame(Frame(name, WAKER)))
            if is_interrupt:
                break  # whom it interrupted has nothing to do with it
        if tids[0]:
            labels["waker_tid"] = tids[0]
        if len(tids) > 1:
            labels["chain_tids"] = joined_tids(tids)
        return frames, tuple(sorted(labels.items()))

    def _thread(self, waker: Waker) -> str:
        number = _row(waker, self._lives).origin.tgid
        return self._names.thread(number, self._lives.first(waker.life))

    def _part(self, waker: Waker) -> tuple[Stack, str, bool]:
        """The stack of a waker, innermost first; its name; whether it is an interrupt, or the tracer, which no chain
        leads through either."""
        row = _row(waker, self._lives)
        user, kernel = self._stacks.parts_of(row)
        kernel = _from_wakeup(kernel)
        is_interrupt = not waker.tid
        if waker.context == BY_SOFTIRQ and waker.tid:
            is_interrupt = any(frame.name in _INTERRUPTED for frame in kernel)
        if is_interrupt:
            user, kernel = (), _own_part(kernel)
        elif waker.tgid in self._ours:
            return (), "[tracer]", True
        stack = tuple(self._frame(frame) for frame in reversed((*user, *kernel)))
        return stack, self._name(waker, is_interrupt), is_interrupt

    def _frame(self, frame: Frame) -> Frame:
        """Frame of a waker; equal ones are shared."""
        new = frame._replace(kind=WAKER)
        return self._frames.setdefault(new, new)

    def _name(self, waker: Waker, is_interrupt: bool) -> str:
        softirq = _SOFTIRQS[waker.number] if waker.number < len(_SOFTIRQS) else str(waker.number)
        if waker.context == BY_THREAD or (waker.context == BY_SOFTIRQ and not is_interrupt):
            name = self._names.process(_row(waker, self._lives).origin.tgid)
            return f"{name}-{waker.tgid} {softirq}" if name.startswith("ksoftirqd/") else f"{name}-{waker.tgid}"
        if waker.context == BY_TIMER or (waker.context == BY_SOFTIRQ and softirq in _TIMERS):
            return "[timer]"
        if waker.context == BY_SOFTIRQ:
            return f"[softirq {softirq}]"
        if waker.context == BY_DEVICE:
            return f"[interrupt {self._device(waker.number)}]"
        if waker.context == BY_CORE:
            return "[another core]"
        return "[still waiting]" if waker.context == BY_NOBODY else "[unknown waker]"

    def _device(self, number: int) -> str:
        """The names under which drivers have requested an interrupt; else its number."""
        if number not in self._devices:
            try:
                found = (_ACTIONS / str(number) / "actions").read_text("utf-8", "replace").strip()
            except OSError:
                found = ""
            self._devices[number] = found or str(number)
        return self._devices[number]


def _from_wakeup(kernel: Stack) -> Stack:
    """Stack without the frames of our own programs, which run where a thread is woken."""
    for i in range(len(kernel) - 1, -1, -1):
        if kernel[i].name == _WOKEN_BY:
            return kernel[: i + 1]
    return kernel


def _own_part(kernel: Stack) -> Stack:
    """Part of a stack from the beginning of the interrupt on."""
    for i in range(len(kernel) - 1, -1, -1):
        if kernel[i].name.startswith(_ENTRIES):
            return kernel[i:]
    return kernel
