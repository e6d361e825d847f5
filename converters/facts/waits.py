"""Purposes of waits, from raw stacks: a lock, a timer, another thread, a peer, a device.

Only frames of the kernel are asked, and those of libraries and runtimes between the program's innermost function and
the system call: what a program calls its own functions changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from ..model import Frame, Stack
from ..model.states import IDLE, INTERRUPTIBLE, OTHER, RUNNABLE, STOPPED, TRACED
from .call_kinds import BY_EVENTS, BY_FILE, BY_THREAD, BY_TIMER, FEW_EVENTS_CALLS, ended_by
from .frame_names import bare, is_named, label
from .kernel_sites import kernel_wait_of, system_call_of, user_and_kernel
from .ownership import is_own
from .plumbing import called_by, in_library, is_plumbing, library_call
from .runtimes import LAUNCHER, Parked, is_master, waits_for_request
from .wait_functions import (
    BY_CALL,
    BY_KERNEL,
    CHILD_WAITS,
    COLLECTIVE,
    COLLECTIVE_SCRIPTS,
    COLLECTIVES,
    CONNECTIONS,
    EVENT_WAITS,
    FEW_EVENTS,
    FUTEX_WAITS,
    GPU_CALLS,
    GPU_FILES,
    JOINS,
    KERNEL_LOCKS,
    LINKED_LOCKS,
    LOADER,
    LOADERS,
    LOCKS_BY_TIMER,
    LOCKS_OF_PROGRAMS,
    LOCKS_OF_STORAGE,
    NO_PLACE,
    OF_PEER,
    PYTHON_LOCKS,
    QUEUES,
    ROW_LOCK,
    SCRIPT_JOINS,
    SELECTS,
    SELECTS_FOR_PEER,
    SIGNALS,
    SLEEPS,
    SLEEPS_OF_PROGRAMS,
    STORAGE_FILES,
    TIMED,
    USER_LOCKS,
)
from .wait_kinds import CHILD, CORE, HALTED, HELD, LOCK, PEER, SLEEP, THREAD, TOLD_BY_OTHERS, UNKNOWN, WORK

_BY_STATE = {STOPPED: HALTED, TRACED: HALTED, IDLE: WORK}
_INNERMOST = 4
"""A function that waits for a peer is one of so many innermost ones: ``sock_recv → sock_call → sock_call_ex``."""
_LIBRARY_DEPTH = 64
"""So many frames below the program's innermost function are asked."""


class Wait(NamedTuple):
    """Purpose of a wait."""

    kind: str
    """Of `wait_kinds`."""
    call: str = ""
    """The system call; without kernel frames, the function of the C library that was called; "" if neither is known."""
    kernel: str = ""
    """The innermost function of the kernel that is not the scheduler's; "" if it is not known."""
    lock: str = ""
    """The function that waits for a lock of the program; "" if there is none."""
    gpu: str = ""
    """The function of CUDA that waits until the GPU has done something; "" if there is none."""
    job: str = ""
    """The part of a training job: `LOADER`, `COLLECTIVE`; "" if it is none of them."""
    join: bool = False
    """It is for the end of another thread."""
    few: bool = False
    """It waits for one of a few files, not with epoll."""
    nowhere: bool = False
    """Nothing is known of its place."""
    has_user_frames: bool = True
    """It is not one of the kernel alone, or without a stack."""


class Waits:
    """The waits of many stacks. Cached by the identity of stacks and frames, which have to live as long as this
    object: readers share equal ones, and most frames are in many stacks."""

    def __init__(self) -> None:
        self._parked = Parked()
        self._known: dict[tuple[int, str], Wait] = {}
        self._below: dict[int, _Below] = {}
        self._frames: dict[int, _Frame] = {}
        self._kernels: dict[tuple[int, ...], tuple[str, str]] = {}

    def of(self, stack: Stack, state: str) -> Wait:
        """Purpose of a wait in this state (`model.states`). ``stack``: outermost frame first, without wakers."""
        key = id(stack), state
        found = self._known.get(key)
        if found is None:
            below = self._below.get(id(stack))
            if below is None:
                below = self._below[id(stack)] = self._look(stack)
            found = self._known[key] = below.wait(state)
        return found

    def parked_in(self, stack: Stack) -> str:
        """The function of a runtime in which a thread waits for work; "" if there is none."""
        below = self._below.get(id(stack))
        if below is None:
            below = self._below[id(stack)] = self._look(stack)
        return below.parked

    def _look(self, stack: Stack) -> _Below:
        user, kernel = user_and_kernel(stack)
        below = tuple(map(id, kernel))
        known = self._kernels.get(below)
        if known is None:
            known = self._kernels[below] = kernel_wait_of(kernel), system_call_of(kernel)
        frames = self._frames
        told = [frames.get(id(frame)) or self._tell(frame) for frame in (user if kernel else stack)]
        return _Below(told, *known, self._parked.of(stack))

    def _tell(self, frame: Frame) -> _Frame:
        found = self._frames[id(frame)] = _Frame(frame)
        return found


class _Frame:
    """Properties of one frame."""

    __slots__ = (
        *("bare", "frame", "gpu", "in_brackets", "is_library", "is_linked_lock", "is_of_storage", "is_own"),
        *("is_placeholder", "is_plumbing", "label", "lock_of_program", "lock_by_timer", "sleeps", "user_lock"),
    )

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.label = label(frame)
        self.bare = bare(frame.name)
        self.is_plumbing = is_plumbing(frame)
        self.is_library = is_named(frame) and in_library(frame)
        self.is_own = is_own(frame)
        self.is_placeholder = _is_placeholder(frame)
        self.in_brackets = self.label.startswith("[")
        self.gpu = self.label if _is_of_gpu(frame) and GPU_CALLS.fullmatch(self.label) else ""
        self.lock_of_program = _lock_of_program(frame)
        self.is_of_storage = LOCKS_OF_STORAGE.fullmatch(self.label) is not None and _is_in(frame, STORAGE_FILES)
        files = SLEEPS_OF_PROGRAMS.get(self.label)
        self.sleeps = files is not None and _is_in(frame, files)
        self.lock_by_timer = self.label if self.label in LOCKS_BY_TIMER else ""
        self.user_lock = self.label if self.label.startswith(USER_LOCKS) else ""
        self.is_linked_lock = LINKED_LOCKS.match(self.label) is not None


def wait_of(stack: Stack, state: str) -> Wait:
    """`Waits.of` for a single stack."""
    return Waits().of(stack, state)


class _Below:
    """Frames below the innermost function of the program: libraries, the system call, the kernel."""

    def __init__(self, user: Sequence[_Frame], kernel: str, system_call: str, parked: str) -> None:
        self.kernel = kernel
        self._user = user
        self.parked = parked
        self._placeholders = [each.frame.name for each in user if each.is_placeholder]
        self._only_placeholders = len(self._placeholders) == len(user)
        self._has_user_frames = bool(user)
        called, self._library, self._own = _split(user, system_call)
        self.call = system_call or called
        self._called = called

    def wait(self, state: str) -> Wait:
        """Purpose of a wait in this state."""
        nowhere = self._has_user_frames and self._only_placeholders and not self.kernel
        if state.startswith(RUNNABLE):
            # It waits no longer for what the kernel's functions show.
            return Wait(CORE, self.call, gpu=self._gpu(), nowhere=nowhere, has_user_frames=not self._only_placeholders)
        lock = self._lock()
        few = self.kernel in FEW_EVENTS if self.kernel else self.call in FEW_EVENTS_CALLS
        kind = self._kind(state, lock, few)
        join = self.parked == LAUNCHER or (kind == THREAD and self._is_for_an_end())
        job = self._job() if kind in TOLD_BY_OTHERS else ""
        has_user = not self._only_placeholders
        return Wait(kind, self.call, self.kernel, lock, self._gpu(), job, join, few, nowhere, has_user)

    def _kind(self, state: str, lock: str, few: bool) -> str:
        if self._is_unknown(state):
            return UNKNOWN
        if state in _BY_STATE:
            return _BY_STATE[state]
        if lock or KERNEL_LOCKS.match(self.kernel):
            return LOCK
        if state == INTERRUPTIBLE or (state == OTHER and self._shows_who_ends_it()):
            kind = self._ended_by_others(few)
            return SLEEP if kind == THREAD and self._sleeps() else kind
        return HELD

    def _sleeps(self) -> bool:
        """Whether a function that sleeps waits in a condition variable, until its time is over."""
        own = self._own[-_INNERMOST:]
        return any(SLEEPS.fullmatch(each.label) for each in self._library) or any(each.sleeps for each in own)

    def _is_unknown(self, state: str) -> bool:
        if self.kernel:
            return False
        if self._placeholders and self._only_placeholders and NO_PLACE.issuperset(self._placeholders):
            return True
        # An interruptible wait without a stack is, as a rule, that of an idle thread.
        is_told = state in _BY_STATE or state == INTERRUPTIBLE or not (self._has_user_frames or state == OTHER)
        return not is_told and self._only_placeholders

    def _gpu(self) -> str:
        """See `Wait.gpu`."""
        for each in self._library:
            if each.gpu:
                return each.gpu
        return next((each.gpu for each in self._own[-_INNERMOST:] if each.gpu), "")

    def _job(self) -> str:
        """See `Wait.job`."""
        for each in self._library:
            frame = each.frame
            place = f"{frame.file}:{frame.name.rpartition('.')[2]}" if frame.kind == "python" else ""
            if LOADERS.fullmatch(place):
                return LOADER
            if (COLLECTIVE_SCRIPTS if place else COLLECTIVES).fullmatch(place or each.label):
                return COLLECTIVE
        return ""

    def _lock(self) -> str:
        """See `Wait.lock`."""
        by = ended_by(self.call) if not self.kernel else ""
        if self.kernel in EVENT_WAITS or by == BY_EVENTS:
            return next((each.lock_of_program for each in self._own if each.lock_of_program), "")
        if BY_KERNEL.get(self.kernel) == SLEEP or by == BY_TIMER:
            inner = (*self._library, *reversed(self._own[-_INNERMOST:]))
            return next((each.lock_by_timer for each in inner if each.lock_by_timer), "")
        if by not in ("", BY_THREAD) or (self.kernel and self.kernel not in FUTEX_WAITS):
            return ""
        return self._lock_by_thread()

    def _lock_by_thread(self) -> str:
        """The lock that another thread of the process frees."""
        if self._called.startswith(USER_LOCKS):
            return self._called
        if self._called in TIMED and any(each.is_of_storage for each in self._own):
            return ROW_LOCK
        if found := next((each.user_lock for each in reversed(self._library) if each.user_lock), ""):
            return found
        if found := next((each.label for each in self._own[-_INNERMOST:] if each.is_linked_lock), ""):
            return found
        if found := next((each.lock_of_program for each in self._own if each.lock_of_program), ""):
            return found
        names = [self._called, *(each.label for each in reversed(self._library))]
        found = next((name for name in names if name.startswith(PYTHON_LOCKS)), "")
        return "" if not found or any(name.startswith(QUEUES) for name in names) or self._is_for_signal() else found

    def _is_for_signal(self) -> bool:
        """Whether the innermost function of a script is one of Python's library that takes locks to wait for signals;
        or none is known."""
        script = next((each for each in reversed(self._user) if each.frame.kind == "python"), None)
        if script is None:
            return True
        frame = script.frame
        is_programs = frame.file.startswith("/") and script.is_own
        return not is_programs and SIGNALS.match(f"{frame.file}:{frame.name}") is not None

    def _is_for_an_end(self) -> bool:
        """See `Wait.join`."""
        if JOINS.fullmatch(self._called):
            return True
        return any(
            SCRIPT_JOINS.fullmatch(f"{frame.file}:{frame.name}" if frame.kind == "python" else frame.name)
            if frame.kind in ("python", "jit")
            else JOINS.fullmatch(each.label)
            for each in self._library
            for frame in (each.frame,)
        )

    def _shows_who_ends_it(self) -> bool:
        """Whether the place alone shows that a wait, whose state is not known, is not for a disk."""
        if self.kernel:
            return self.kernel in BY_KERNEL
        return bool(self.parked) or ended_by(self.call) not in ("", BY_FILE)

    def _ended_by_others(self, few: bool) -> str:
        if self._is_for_work():
            return WORK
        if any(CHILD_WAITS.fullmatch(each.label) for each in self._library):
            return CHILD
        if few and self._is_for_peer():
            return PEER
        if kind := BY_KERNEL.get(self.kernel):
            return kind
        if not self.kernel and (by := ended_by(self.call)):
            return BY_CALL[by]
        return HELD if any(not each.in_brackets for each in self._user) else WORK

    def _is_for_work(self) -> bool:
        """Whether a server, a runtime or a pool has nothing to do until it gets a connection, a request or a task."""
        if self.parked or self.call in CONNECTIONS or waits_for_request([each.frame for each in self._library]):
            return True
        named = next((each.frame for each in reversed(self._own) if not each.in_brackets), None)
        return named is not None and is_master(named)

    def _is_for_peer(self) -> bool:
        """Whether one of the innermost functions of libraries waits for one other end: ``sock_recv_into`` of
        ``Session.get → … → SocketIO.readinto → sock_recv_into``. None outside of a script's."""
        return bool(peer_function([each.frame for each in self._library]))


def peer_function(library: Sequence[Frame]) -> str:
    """The function of a library that waits for what one other end does; "" if there is none. ``library``: the frames
    between the program and the C library, innermost first."""
    selects = False
    for frame in islice((frame for frame in library if is_named(frame) and not is_plumbing(frame)), _INNERMOST):
        name = label(frame)
        if SELECTS_FOR_PEER.fullmatch(name) or (OF_PEER.match(name) and not selects):
            return name
        if frame.kind == "python" and SELECTS.search(f"{frame.file}:{frame.name}"):
            selects = True
        elif frame.kind in ("python", "jit"):
            break
    return ""


def _split(user: Sequence[_Frame], system_call: str) -> tuple[str, Sequence[_Frame], Sequence[_Frame]]:
    """The function of the C library that was called; the frames of libraries that called it, innermost first; and
    the innermost frames of the program."""
    end = len(user)
    while end and (user[end - 1].is_plumbing or user[end - 1].bare == system_call):
        end -= 1
    names = [each.bare if each.is_library else "" for each in reversed(user[end:])]
    called = called_by(library_call(names, has_caller=end > 0), user[end - 1].frame if end else None)
    first = end
    while first and end - first < _LIBRARY_DEPTH and not user[first - 1].is_own:
        first -= 1
    library = user[first:end]
    return called, library[::-1], user[max(first - _LIBRARY_DEPTH, 0) : first]


def _is_of_gpu(frame: Frame) -> bool:
    return frame.module is not None and GPU_FILES.fullmatch(frame.module.path) is not None


def _is_placeholder(frame: Frame) -> bool:
    """Whether it stands for a missing stack: ``[no stack]``, ``[switch not reported]``."""
    return frame.module is None and frame.name[:1] == "[" and (" " in frame.name or frame.name in NO_PLACE)


def _lock_of_program(frame: Frame) -> str:
    files = LOCKS_OF_PROGRAMS.get(frame.name)
    return frame.name if files is not None and _is_in(frame, files) else ""


def _is_in(frame: Frame, files: re.Pattern[str]) -> bool:
    """Whether a function is one of an executable or a library of this name."""
    return frame.module is not None and files.fullmatch(frame.module.path.rpartition("/")[2]) is not None
