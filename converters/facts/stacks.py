"""Properties of the frames of many stacks, found out once per function, and the end of the program on each stack."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import attrgetter

from ..model import Frame, Stack
from .frame_names import bare, is_named, label, located
from .kernel_sites import kernel_wait_of, system_call_of
from .ownership import is_own
from .plumbing import called_by, in_library, is_plumbing, library_call
from .runtimes import is_in, is_master, parked_in
from .shared_frames import CALLED, NOTHING_SHARED, Shared
from .wait_functions import (
    ASKS_OF_PROGRAMS,
    COLLECTIVE_FILES,
    COLLECTIVES,
    FILE_LOCK_SCRIPTS,
    GPU_CALLS,
    GPU_FILES,
    LINKED_LOCKS,
    LOCK_OF_FILE,
    LOCKS_BY_TIMER,
    LOCKS_OF_PROGRAMS,
    LOCKS_OF_STORAGE,
    METADATA,
    METADATA_LOCK,
    NO_PLACE,
    PYTHON_LOCKS,
    ROW_LOCK,
    SLEEPS_OF_PROGRAMS,
    STORAGE_FILES,
    USER_LOCKS,
)

_PASS_ON = (
    # PostgreSQL: every wait of a server process goes through them.
    "WaitLatch",
    "WaitEventSetWait",
)
"""Prefixes of functions that are known to pass many different waits on, even if only one is seen (`shared_frames`)."""
_IS_KERNEL = attrgetter("is_kernel")
_SCRIPTS = ("python", "jit")


class Told:
    """Properties of one function, and of a Python function the line that runs. Equal ones are one object (`Stacks`)."""

    __slots__ = (
        *("asks", "bare", "file", "gpu", "in_brackets", "is_closure", "is_kernel", "is_library", "is_linked_lock"),
        *("is_master", "is_named", "is_own", "is_placeholder", "is_plumbing", "is_python"),
        *("is_script", "label", "located", "lock_by_timer", "lock_of_program", "mark", "meets", "name", "origin"),
        *("parked", "path", "sleeps", "storage_lock", "takes_python_lock", "tells", "user_lock", "waits_itself"),
    )

    def __init__(self, frame: Frame, shared: Shared) -> None:
        self.name, self.file = frame.name, frame.file
        self.is_kernel = frame.kind == "kernel"
        self.is_python = frame.kind == "python"
        self.is_script = frame.kind in _SCRIPTS
        self.is_own = is_own(frame)
        self.waits_itself = self.is_python and not self.is_own
        self.is_closure = self.is_python and ".<locals>." in self.name
        """Whether another function has made it: in libraries, what decorators put around functions."""
        self.is_named = is_named(frame)
        self.is_plumbing = is_plumbing(frame)
        self.is_library = self.is_named and in_library(frame)
        self.is_placeholder = _is_placeholder(frame)
        self.label = label(frame)
        self.located = located(frame) if self.is_own else ""
        self.bare = bare(frame.name)
        self.in_brackets = self.label.startswith("[")
        self.path = frame.module.path if frame.module else ""
        self.origin = frame.kind if self.is_script else self.path
        """File of the function; scripts of one language count as one."""
        self.mark = CALLED if self.bare.startswith(_PASS_ON) else shared.mark(frame)
        """See `shared_frames`."""
        self.parked = parked_in(frame)
        self.gpu = self.label if _is_of_gpu(frame) and GPU_CALLS.fullmatch(self.label) else ""
        self.meets = is_in(frame, COLLECTIVE_FILES) and COLLECTIVES.fullmatch(self.label) is not None
        self.user_lock = self.label if self.label.startswith(USER_LOCKS) else ""
        self.lock_by_timer = self.label if self.label in LOCKS_BY_TIMER else _file_lock(frame)
        self.lock_of_program = _lock_of_program(frame)
        self.is_linked_lock = LINKED_LOCKS.match(self.label) is not None
        self.takes_python_lock = self.label.startswith(PYTHON_LOCKS)
        self.storage_lock = _storage_lock(frame, self.label)
        self.is_master = is_master(frame)
        self.sleeps = _is_of_program(frame, SLEEPS_OF_PROGRAMS)
        self.asks = _is_of_program(frame, ASKS_OF_PROGRAMS)
        self.tells = bool(
            self.gpu or self.meets or self.lock_by_timer or self.is_linked_lock or self.sleeps or self.asks
        )
        """Whether the frame tells what its thread waits for, though it is the program's."""


def _storage_lock(frame: Frame, function: str) -> str:
    """`METADATA_LOCK` or `ROW_LOCK` for a function of MariaDB that waits for it; "" for all others."""
    if not LOCKS_OF_STORAGE.fullmatch(function) or not is_in(frame, STORAGE_FILES):
        return ""
    return METADATA_LOCK if METADATA.fullmatch(function) else ROW_LOCK


def _file_lock(frame: Frame) -> str:
    """`LOCK_OF_FILE` for a library's function that sleeps until a lock on a file is free; "" for all others."""
    is_one = frame.kind == "python" and FILE_LOCK_SCRIPTS.fullmatch(f"{frame.file}:{frame.name.rpartition('.')[2]}")
    return LOCK_OF_FILE if is_one else ""


class Parts:
    """The parts of one stack."""

    __slots__ = ("call", "called", "end", "is_marked", "kernel", "parked", "user")

    def __init__(self, user: Sequence[Told], call: str, kernel: str) -> None:
        self.user = user
        """Outermost first, without the kernel's."""
        self.call = call
        """The system call; "" if it is not known."""
        self.kernel = kernel
        """The innermost function of the kernel that is not the scheduler's; "" if it is not known."""
        end = len(user)
        while end and (user[end - 1].is_plumbing or user[end - 1].bare == call):
            end -= 1
        self.end = end
        """Number of frames in ``user`` before those that only pass on a call of the C library."""
        self.called = _called(user, end)
        """The function of the C library that was called; "" if there is none."""
        self.is_marked = False
        """A function parks, takes a lock of its program, or waits in it until it has to start others."""
        self.parked = ""
        """The function of a runtime in which the thread waits for work; "" if there is none."""


class Stacks:
    """The parts of many stacks. What a frame tells is found out once, by the frame's identity: readers share equal
    frames, and to hash one takes longer than all the rest. The stacks have to live as long as this object."""

    def __init__(self, shared: Shared = NOTHING_SHARED) -> None:
        """``shared`` are functions that tell little, because many other waits go through them (`shared_frames`)."""
        self._shared = shared
        self._told: dict[int, Told] = {}
        self._equal: dict[tuple[str, str, str | None, str, int], Told] = {}
        self._kernel: set[int] = set()
        """Frames of the kernel."""
        self._marked: set[int] = set()
        """Frames that park, take a lock of their program, or wait until they have to start others: few programs have
        any."""
        self._below: dict[tuple[int, ...], tuple[str, str]] = {}
        """System call and kernel wait, by the kernel's frames."""

    def of(self, stack: Stack) -> Parts:
        """The parts of ``stack``: user frames, then kernel frames, outermost first."""
        ids = tuple(map(id, stack))
        try:
            told = list(map(self._told.__getitem__, ids))
        except KeyError:
            told = list(map(self._tell, stack))
        end = len(told)
        while end and told[end - 1].is_kernel:
            end -= 1
        user, below, kernel = told[:end], ids[end:], stack[end:]
        if not self._kernel.isdisjoint(ids[:end]):  # others' readers mix them
            user = [each for each in told if not each.is_kernel]
            kernel = tuple(compress(stack, map(_IS_KERNEL, told)))
            below = tuple(map(id, kernel))
        known = self._below.get(below)
        if known is None:
            known = self._below[below] = system_call_of(kernel), kernel_wait_of(kernel)
        parts = Parts(user, *known)
        if self._marked and not self._marked.isdisjoint(ids):
            parts.is_marked = True
            parts.parked = next((each.parked for each in told if each.parked), "")
        return parts

    def _tell(self, frame: Frame) -> Told:
        told = self._told.get(id(frame))
        if told is None:
            told = self._told[id(frame)] = self._find(frame)
            if told.is_kernel:
                self._kernel.add(id(frame))
            if told.parked or told.lock_of_program or told.storage_lock or told.is_master:
                self._marked.add(id(frame))
        return told

    def _find(self, frame: Frame) -> Told:
        # An address tells nothing, and a line only of Python's functions.
        told_by_name = frame.module is None or frame.kind in _SCRIPTS or is_named(frame)
        name, line = frame.name if told_by_name else "", frame.line if frame.kind == "python" else 0
        path = frame.module.path if frame.module else None
        key = name, frame.kind, path, frame.file, line
        told = self._equal.get(key)
        if told is None:
            told = self._equal[key] = Told(frame, self._shared)
        return told


def _called(user: Sequence[Told], end: int) -> str:
    if end == len(user):
        return ""
    names = [each.bare if each.is_library else "" for each in reversed(user[end:])]
    return called_by(library_call(names, has_caller=end > 0), user[end - 1].path if end else "")


def _is_of_gpu(frame: Frame) -> bool:
    return frame.module is not None and GPU_FILES.fullmatch(frame.module.path) is not None


def _is_placeholder(frame: Frame) -> bool:
    """Whether it stands for a missing stack: ``[no stack]``, ``[switch not reported]``."""
    return frame.module is None and frame.name[:1] == "[" and (" " in frame.name or frame.name in NO_PLACE)


def _is_of_program(frame: Frame, table: Mapping[str, re.Pattern[str]]) -> bool:
    """Whether a table has a function, with a file that it is in."""
    files = table.get(label(frame))
    return files is not None and is_in(frame, files)


def _lock_of_program(frame: Frame) -> str:
    files = LOCKS_OF_PROGRAMS.get(frame.name)
    return frame.name if files is not None and is_in(frame, files) else ""
