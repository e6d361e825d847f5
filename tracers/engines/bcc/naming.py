"""Names the stacks of what was gathered, and makes the profile's rows of it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....converters.model import Frame, Stack
from ....converters.model.states import RUNNABLE_STATES, RUNNING
from ...base import procfs
from ...symbols.kallsyms import Kallsyms
from ...symbols.process import NOW, ProcessSpaces
from ...symbols.symboliser import Symboliser
from ..asleep import Asleep
from ..ebpf.stacks import without_strays, without_tracing
from ..named_rows import LOST, NO_STACK, NOT_SAMPLED, OTHER_STACKS, Place, add_wait
from .gathered import OTHER_STACK, Wait
from .layouts import FRAMES, LOST_STACK, NEW, KernelPlace

_STANDING_FOR: Mapping[int, Stack] = {
    LOST_STACK: (Frame(LOST, "other"),),
    OTHER_STACK: (Frame(OTHER_STACKS, "other"),),
}
_NO_STACK: Stack = (Frame(NO_STACK, "other"),)
_NOT_BEGUN: Stack = (Frame("[not started yet]", "other"),)
_NOT_SAMPLED: Stack = (Frame(NOT_SAMPLED, "other"),)
_STACK_LOST = Frame("[stack lost]", "other")
_PYTHON = "_PyEval_EvalFrame"
"""Begin of the names of the functions of CPython's interpreter loop."""

_Space = tuple[int, int, int]
"""Number of a process, epoch of its address space, id of the stack."""


@dataclass
class Named:
    """Rows with names; ``missing``: stacks whose frames were lost; ``cut``: stacks that had more frames."""

    waits: dict[Place, list[int]] = field(default_factory=dict)
    running: dict[Place, list[int]] = field(default_factory=dict)
    missing: int = 0
    cut: int = 0
    has_python: bool = False
    problems: Sequence[str] = ()


class Naming:
    """Names for the stacks of all rows, in bulk."""

    def __init__(
        self,
        stacks: Mapping[int, bytes],
        spaces: ProcessSpaces,
        places: Iterable[tuple[KernelPlace, bool]],
        *,
        kernel_addresses: bool,
    ) -> None:
        """``places``: of the rows, and whether they are of waits that go on. ``kernel_addresses``: absolute ones."""
        self._spaces = spaces
        self.missing: set[int] = set()
        found = set(places)
        symboliser = Symboliser(spaces, Kallsyms.read(absolute=kernel_addresses))
        kernel = sorted({place.kstack for place, _ in found} & stacks.keys())
        named = symboliser.kernel_stacks([_addresses(stacks[number]) for number in kernel])
        self._kernel = dict(zip(kernel, named, strict=True))
        self._switched = {number: without_tracing(stack) for number, stack in self._kernel.items()}
        user = sorted({self._space(place, is_open) for place, is_open in found if place.ustack in stacks})
        requests = [(number, epoch, _addresses(stacks[stack])) for number, epoch, stack in user]
        self._user = dict(zip(user, map(without_strays, symboliser.user_stacks(requests)), strict=True))
        self.problems = list(symboliser.problems)
        used = {stack for place, _ in found for stack in (place.ustack, place.kstack)}
        self.cut = sum(len(stacks[stack]) == 8 * FRAMES for stack in used & stacks.keys())
        self.has_python = any(frame.name.startswith(_PYTHON) for stack in self._user.values() for frame in stack)
        self._same: dict[Stack, Stack] = {}

    def _space(self, place: KernelPlace, is_open: bool) -> _Space:
        number = self._spaces.number(place.tgid, place.life)
        return number, NOW if is_open else self._spaces.epoch(number, place.life), place.ustack

    def stack(self, place: KernelPlace, *, is_open: bool, running: bool) -> Stack:
        """User frames, then kernel frames; or one that says why there are none. Equal stacks are one object: those who
        read them look them up by identity."""
        if place.ustack in _STANDING_FOR:
            return _STANDING_FOR[place.ustack]
        if place.state == NEW and not running:
            return _NOT_BEGUN
        parts: Stack = ()
        kernel = self._kernel if running else self._switched
        for number, frames in (
            (place.ustack, self._user.get(self._space(place, is_open))),
            (place.kstack, kernel.get(place.kstack)),
        ):
            if number and frames is None:
                self.missing.add(number)
                parts += (_STACK_LOST,)
            parts += frames or ()
        return self._same.setdefault(parts, parts) or (_NOT_SAMPLED if running else _NO_STACK)


def named(
    waits: Sequence[Wait], running: Mapping[KernelPlace, tuple[int, int]], stacks: Mapping[int, bytes],
    spaces: ProcessSpaces, *, kernel_addresses: bool = False,
) -> Named:  # fmt: skip
    """The rows of both measures."""
    places = [*((wait.place, wait.is_open) for wait in waits), *((place, False) for place in running)]
    living = {place.tgid for place, is_open in places if is_open}
    for pid in living:
        spaces.refresh(pid)
    naming = Naming(stacks, spaces, places, kernel_addresses=kernel_addresses)
    result = Named(problems=naming.problems, cut=naming.cut, has_python=naming.has_python)
    for wait in waits:
        stack = naming.stack(wait.place, is_open=wait.is_open, running=False)
        where = Place(wait.place.tgid, wait.place.tid, wait.state, stack, wait.is_open)
        add_wait(result.waits, where, wait.values)
    for place, values in running.items():
        stack = naming.stack(place, is_open=False, running=True)
        row = result.running.setdefault(Place(place.tgid, place.tid, RUNNING, stack), [0, 0])
        row[0] += values[0]
        row[1] += values[1]
    result.missing = len(naming.missing)
    return result


def with_sleepers(
    rows: Mapping[Place, list[int]], asleep: Asleep, seen: Mapping[int, int], ended: int
) -> dict[Place, list[int]]:
    """The rows, with the stacks of threads that slept when they were ``seen``, by tid, in that one wait: which had no
    switch from a core. Times: CLOCK_MONOTONIC, ns."""
    found: dict[Place, list[int]] = {}
    slept: set[int] = set()
    for place, row in sorted(rows.items(), key=lambda each: each[0].state in RUNNABLE_STATES):
        is_first = place.stack == _NO_STACK and row[1] == 1 and place.tid in seen
        if is_first and place.state not in RUNNABLE_STATES:
            until = ended if place.is_open else seen[place.tid] + row[0]
            slept |= {place.tid} if asleep.has(place.tid, until) else set()
        if is_first and place.tid in slept:
            place = replace(place, stack=asleep.stack(place.tid) or place.stack)
        add_wait(found, place, row)
    return found


def process_names(pids: Iterable[int], spaces: ProcessSpaces) -> dict[int, str]:
    """Names of processes by pid; of a process whose pid another one has now, the later one's."""
    found = {pid: procfs.comm(pid) for pid in pids}
    return {pid: name or (spaces.processes[pid].comm if pid in spaces.processes else "") for pid, name in found.items()}


def _addresses(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"={len(data) // 8}Q", data)
