"""The stacks of a trace's rows: user frames, then kernel frames, resolved in bulk."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import attrgetter

from ....converters.base.units import plural
from ....converters.model import Frame, Stack
from ....converters.model.losses import NOT_TAKEN
from ...base.progress import MANY, Progress
from ...kernel.records import ENDS, LOST, NEW, OTHER, OTHER_STACKS, RUNNING, STACK_SHED
from ...symbols.kallsyms import Kallsyms
from ...symbols.lines import LineTool
from ...symbols.process import NOW
from ...symbols.symboliser import UNMAPPED, Symboliser
from ..rows import Row
from .capture import Capture
from .pythonic import PLAIN, Python, PythonStacks

_LOST_STACK = Frame("[stack lost]", "other")
_NO_STACK = Frame("[no stack]", "other")
_UNREPORTED = Frame("[switch not reported]", "other")
_NOT_BEGUN = Frame("[not started yet]", "other")
_NOT_SAMPLED = Frame("[not sampled]", "other")
_NOT_TAKEN = Frame(NOT_TAKEN, "other")
_STANDING_FOR = {OTHER_STACKS: (Frame("[other stacks]", "other"),), LOST: (Frame("[lost]", "other"),)}
_SCHEDULE = "__schedule"
_UNNAMED = re.compile(r"\[(?!stack lost|stack not taken|no stack|not started|not sampled|switch not|other stacks|lost)")
"""The symboliser's names for frames without a symbol: [libfoo.so+0x1a2b], [anon], [unmapped], …"""
_NO_TABLE, _NO_RULE = ENDS.index("no unwind table"), ENDS.index("no unwind rule")
_STARTS = ("_start", "__clone", "clone", "__clone3", "clone3")
_SCHEDULER_FRAMES = 6
"""Maximum number of frames from a thread's wait to `__schedule`."""
_NAME_OF = attrgetter("name")
_TRACING = ("bpf_", "__bpf_", "__traceiter_", "___bpf_prog_run")

_Space = tuple[int, int, int]
"""Process id, epoch of its address space, id of the user stack."""


class Stacks:
    """The frames of every stack that a row refers to."""

    def __init__(
        self,
        capture: Capture,
        rows: Iterable[Row],
        lines: LineTool | None,
        python: Python = PLAIN,
        *,
        kernel_addresses: bool = False,
    ) -> None:
        """``kernel_addresses``: frames of the kernel have absolute ones."""
        self.kernel_addresses = kernel_addresses
        self.missing = 0
        """Stacks whose frames were lost."""
        self.ends: Counter[str] = Counter()
        """Incomplete stacks, by reason."""
        self.unnamed: Counter[str] = Counter()
        """Frames without a name in distinct stacks, by the module that they are in."""
        self._capture = capture
        rows = list(rows)
        self.progress = Progress()
        """Progress line, to be cleared when all stacks are joined, which takes as long as to name their functions."""
        if len(rows) >= MANY:
            self.progress.show(f"naming the functions of {plural(len(rows), 'stack')}")
        kernel_names = Kallsyms.read(absolute=kernel_addresses)
        symboliser = Symboliser(capture.spaces, kernel_names, lines, self.progress.show)
        known = capture.stacks
        kernel = sorted({row.origin.kstack for row in rows if row.origin.kstack in known})
        named = symboliser.kernel_stacks([known[stack] for stack in kernel])
        self._kernel = dict(zip(kernel, named, strict=True))
        user = sorted({self._space(row) for row in rows if row.origin.ustack in known})
        functions = PythonStacks(capture.python, python)
        parts = [functions.split(known[stack]) for _, _, stack in user]
        requests = [(tgid, epoch, native) for (tgid, epoch, _), (native, _) in zip(user, parts, strict=True)]
        self.problems = symboliser.problems
        marked = _Marked(capture.api)
        frames = map(marked.of, map(without_strays, symboliser.user_stacks(requests)))
        self._native = dict(zip(user, frames, strict=True))
        """User stacks without Python functions."""
        self._user = {
            space: functions.joined(self._native[space], words, whole=not capture.ends.get(space[2]))
            for space, (_, words) in zip(user, parts, strict=True)
        }
        self.nameless = len(functions.nameless)
        """Python functions without a name."""
        trimmed = {stack: without_tracing(frames) for stack, frames in self._kernel.items()}
        self._switched = _with_scheduler(trimmed)
        """Kernel stacks of waits, without the frames of our own programs at the switch."""
        self._whole: dict[tuple[_Space, int, bool, str], Stack] = {}
        self._places: dict[int, str] = {}
        """Place of a frame by its `id`: `_place` if it has no name, else ""."""

    def _unnamed_places(self, stack: Stack) -> Iterator[str]:
        """The place of each frame without a name. Looked up by identity: stacks share their frames."""
        try:
            return filter(None, list(map(self._places.__getitem__, map(id, stack))))
        except KeyError:
            for frame in stack:
                self._places[id(frame)] = _place(frame) if _UNNAMED.match(frame.name) else ""
            return filter(None, [self._places[id(frame)] for frame in stack])

    def _space(self, row: Row) -> _Space:
        # For a thread that waits at the end of the trace, its process's current mappings are known.
        origin = row.origin
        if row.is_open:
            return origin.tgid, NOW, origin.ustack
        return origin.tgid, self._capture.lives.epoch(origin), origin.ustack

    def of(self, row: Row) -> Stack:
        """User frames, then kernel frames; or one that says why there are none."""
        origin = row.origin
        if origin.ustack in _STANDING_FOR:
            return (*_STANDING_FOR[origin.ustack], *_frame_of(row.call))
        if origin.state == NEW:
            return (_NOT_BEGUN,)
        where = self._space(row), origin.kstack, origin.state == RUNNING, row.call
        stack = self._whole.get(where)
        if stack is None:
            stack = self._whole[where] = self._join(*where)
            self.unnamed.update(self._unnamed_places(stack))
        if stack:
            return stack
        if origin.state == RUNNING:
            return (_NOT_SAMPLED,)
        # Added while it slept, without its stack; or its switch-out was not reported.
        return (_UNREPORTED,) if origin.state == OTHER else (_NO_STACK,)

    def parts_of(self, row: Row) -> tuple[Stack, Stack]:
        """The user frames and all kernel frames of a row of a thread that was running."""
        return self._user.get(self._space(row), ()), self._kernel.get(row.origin.kstack, ())

    def end_of(self, row: Row) -> int:
        """End of the walk up the user stack, as index into ENDS; -1 without one."""
        found = self._native.get(self._space(row))
        return -1 if found is None else self._end(row.origin.ustack, found)

    def cut_in(self, row: Row) -> str:
        """The module of the outermost frame of an incomplete user stack; "" if the stack is complete or missing."""
        frames = self._native.get(self._space(row), ())
        if not frames or not self._end(row.origin.ustack, frames):
            return ""
        outermost = frames[0]
        return _place(outermost) if outermost.module or outermost.name[:1] == "[" else ""

    def is_late(self, row: Row) -> bool:
        """Whether the walk may have ended early because a table was not compiled yet."""
        tables = self._capture.tables
        if tables is None or not tables.late or self._capture.ends.get(row.origin.ustack) != _NO_TABLE:
            return False
        frames = self._native.get(self._space(row), ())
        return any(frame.module is not None and frame.module.path in tables.late for frame in frames)

    def _end(self, stack: int, frames: Stack) -> int:
        end = self._capture.ends.get(stack, 0)
        # Some C libraries (musl) have no unwind rules for the assembly where a thread starts.
        return 0 if end == _NO_RULE and frames and frames[0].name in _STARTS else end

    def _join(self, user: _Space, kernel: int, running: bool, call: str) -> Stack:
        """``call``: a frame between both; "" for none."""
        frames: Stack = ()
        # All frames of a sample were running, even if part of a switch or of our programs.
        below = (self._kernel if running else self._switched).get(kernel)
        parts = (user[2], self._user.get(user), self._native.get(user)), (kernel, below, below)
        for place, (wanted, found, walked) in enumerate(parts):
            # A function that was counted at its entry is there already.
            is_there = bool(frames) and frames[-1].name == call and frames[-1].kind == "api"
            frames += _frame_of(call) if place and not is_there else ()
            if found is not None and walked is not None:
                frames += found
                if end := self._end(wanted, walked):
                    self.ends[ENDS[end]] += 1
            elif wanted == STACK_SHED:
                frames += (_NOT_TAKEN,)
            elif wanted:
                frames += (_LOST_STACK,)
                self.missing += 1
        return frames


def _frame_of(call: str) -> Stack:
    """Frame of a call, which is between the user's frames and the kernel's; "" for none."""
    return (Frame(call, "api"),) if call else ()


class _Marked:
    """Gives the frames of functions whose calls were timed their kind."""

    def __init__(self, api: Collection[tuple[str, str]]) -> None:
        self._api = api
        self._names = {name for _, name in api}
        self._known: dict[Frame, Frame] = {}

    def of(self, stack: Stack) -> Stack:
        """Stack with equal frames as one object, which stacks share."""
        if self._names.isdisjoint(map(_NAME_OF, stack)):
            return stack
        return tuple(self._frame(frame) if frame.name in self._names else frame for frame in stack)

    def _frame(self, frame: Frame) -> Frame:
        if frame.module is None or (frame.module.path, frame.name) not in self._api:
            return frame
        return self._known.setdefault(frame, frame._replace(kind="api"))


def _place(frame: Frame) -> str:
    return os.path.basename(frame.module.path) if frame.module else frame.name


def without_strays(stack: Stack) -> Stack:
    """Stack without any unmapped address and its callers: there the walk had gone wrong."""
    if UNMAPPED not in map(_NAME_OF, stack):
        return stack
    for i in range(len(stack) - 2, -1, -1):
        if stack[i].name == UNMAPPED:
            return stack[i + 1 :]
    return stack


def without_tracing(stack: Stack) -> Stack:
    """Kernel frames without our own: nothing below __schedule, where the tracepoint is."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i].name == _SCHEDULE:
            return stack[: i + 1]
    return tuple(frame for frame in stack if not frame.name.startswith(_TRACING))


def _with_scheduler(stacks: Mapping[int, Stack]) -> dict[int, Stack]:
    """Adds the scheduler's frames, which the kernel omits in stacks of sleeping threads, to threads found asleep, if
    the same wait was seen at a switch, and always with the same functions."""
    asleep: dict[str, list[Stack]] = defaultdict(list)
    for stack in {id(stack): stack for stack in stacks.values()}.values():
        if stack and stack[-1].name != _SCHEDULE:
            asleep[stack[-1].name].append(stack)
    seen: dict[Stack, dict[tuple[str, ...], Stack]] = defaultdict(dict)
    for stack in stacks.values():
        if not stack or stack[-1].name != _SCHEDULE:
            continue
        for inner in range(1, min(_SCHEDULER_FRAMES + 1, len(stack))):
            for begin in asleep.get(stack[-inner - 1].name, ()):
                if stack[:-inner] == begin:
                    seen[begin][tuple(frame.name for frame in stack[-inner:])] = stack
    whole = {begin: next(iter(found.values())) for begin, found in seen.items() if len(found) == 1}
    return {number: whole.get(stack, stack) if stack else stack for number, stack in stacks.items()}
