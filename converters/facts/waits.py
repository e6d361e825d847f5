"""Kinds of waits of blocked threads, from their raw stacks: a lock, a timer, another thread, a peer, a device.

Only frames of the kernel are asked, and those of libraries and runtimes between the program's innermost function and
the system call: what a program calls its own functions changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from ..model import Stack
from ..model.states import IDLE, INTERRUPTIBLE, OTHER, RUNNABLE, STOPPED, TRACED
from . import thresholds
from .call_kinds import BY_EVENTS, BY_FILE, BY_PEER, BY_THREAD, BY_TIMER, FEW_EVENTS_CALLS, ended_by
from .runtimes import LAUNCHER, PROGRESS, waits_for_request
from .stacks import Parts, Stacks, Told
from .wait_functions import (
    BY_CALL,
    BY_KERNEL,
    CHILD_WAITS,
    CLIENT_CALLS,
    CLIENT_SCRIPTS,
    CLIENTS,
    COLLECTIVE,
    COLLECTIVE_SCRIPTS,
    COLLECTIVES,
    CONNECTIONS,
    EVENT_WAITS,
    FEW_EVENTS,
    FOR_ALL_RANKS,
    FOR_ALL_SCRIPTS,
    FREEZERS,
    FUTEX_WAITS,
    JOINS,
    KERNEL_LOCKS,
    LOADER,
    LOADERS,
    NO_PLACE,
    OF_PEER,
    PYTHON_LOCKS,
    QUEUE_FILES,
    QUEUES,
    SCRIPT_JOINS,
    SELECTS,
    SELECTS_FOR_PEER,
    SIGNALS,
    SLEEPS,
    STARTS,
    STARTS_WAIT,
    TIMED,
    USER_LOCKS,
)
from .wait_kinds import (
    CHILD,
    CORE,
    EVENTS,
    HALTED,
    HELD,
    LOCK,
    PEER,
    SLEEP,
    THREAD,
    TOLD_BY_OTHERS,
    UNKNOWN,
    WORK,
)

_BY_STATE = {STOPPED: HALTED, TRACED: HALTED, IDLE: WORK}
_LIBRARY_DEPTH = 64
"""Most frames that are asked: of libraries below the program's innermost function, and of the program itself."""
_IN_BRACKETS, _IS_PLACEHOLDER = attrgetter("in_brackets"), attrgetter("is_placeholder")
_TAKES_PYTHON_LOCK, _TELLS = attrgetter("takes_python_lock"), attrgetter("tells")


class Wait(NamedTuple):
    """Kind of a wait, and what shows it."""

    kind: str
    """One of the kinds in `wait_kinds`."""
    call: str = ""
    """The system call; without kernel frames, the function of the C library that was called; "" if neither is known."""
    kernel: str = ""
    """The innermost function of the kernel that is not the scheduler's; "" if it is not known."""
    lock: str = ""
    """The function that waits for a lock of the program; "" if there is none."""
    gpu: str = ""
    """The function of CUDA that waits until the GPU has done something; "" if there is none."""
    asks: bool = False
    """Whether the wait is for the answer to what the program itself has asked: never for work."""
    job: str = ""
    """The part of a training job: `LOADER`, `COLLECTIVE`; or `STARTED`; "" if it is none of them."""
    join: bool = False
    """Whether the wait is for the end of another thread."""
    few: bool = False
    """Whether the wait is for one of a few files, not with epoll."""
    nowhere: bool = False
    """Nothing is known of its place."""
    has_user_frames: bool = True
    """Whether the stack has frames of the program: not the kernel's alone, and not none."""
    for_all: bool = False
    """Whether a function tells that all ranks take part in the operation for which it waits."""


class Waits:
    """The waits of many stacks. The part of a stack that decides is often the same, and is looked at once. The stacks
    have to live as long as this object: see `Stacks`."""

    def __init__(self) -> None:
        self._stacks = Stacks()
        self._known: dict[str, dict[_Below, Wait]] = defaultdict(dict)

    def of(self, stack: Stack, state: str) -> Wait:
        """Wait of a thread in this state (`model.states`). ``stack``: outermost frame first, without wakers."""
        return self.at(self._stacks.of(stack), state)

    def job(self, stack: Stack) -> tuple[str, str]:
        """See `Wait.job`: of a thread that runs there, too; and the library's function that tells, if it is one."""
        below = _below(self._stacks.of(stack))
        return below.job(), below.operation()

    def polls(self, stack: Stack) -> str:
        """The function of a library whose thread runs while it waits, of one that runs there and moves no data; else
        ""."""
        parts = self._stacks.of(stack)
        moves = ended_by(parts.call or parts.called) in (BY_FILE, BY_PEER)
        return parts.parked if parts.parked in PROGRESS and not moves else ""

    def at(self, parts: Parts, state: str) -> Wait:
        """Wait of a stack in parts."""
        below, known = _below(parts), self._known[state]
        found = known.get(below)
        if found is None:
            found = known[below] = below.wait(state)
        return found


def wait_of(stack: Stack, state: str) -> Wait:
    """`Waits.of` for a single stack."""
    return Waits().of(stack, state)


def _script(of: Told) -> str:
    """``file:function`` of Python; "" for others."""
    return f"{of.file}:{of.name.rpartition('.')[2]}" if of.is_python else ""


class _Below(NamedTuple):
    """All that decides: what is below the innermost function of the program, and what is known of that one."""

    system_call: str
    kernel: str
    called: str
    """The function of the C library that was called."""
    library: tuple[Told, ...]
    """The frames of libraries that called it, outermost first."""
    own: tuple[Told, ...]
    """Innermost frames of the program that tell what it waits for, outermost first."""
    parked: str
    is_master: bool
    """The program's innermost function is one in which a process waits until it has to start others."""
    lock_of_program: str
    """The outermost one in the program's frames."""
    storage_lock: str
    """`METADATA_LOCK` or `ROW_LOCK`, if a function of the program takes such a lock: the innermost one; else ""."""
    script: Told | None
    """The innermost function of a script, if it is asked for; None if there is none."""
    placeholders: tuple[str, ...]
    """The names of the frames, if all of them stand for missing ones."""
    has_user_frames: bool
    has_name: bool
    """The function of one of the user's frames is known."""

    @property
    def call(self) -> str:
        """See `Wait.call`."""
        return self.system_call or self.called

    def wait(self, state: str) -> Wait:
        """Wait in this state."""
        only_placeholders = self._only_placeholders
        nowhere = bool(self.placeholders) and not self.kernel
        if state.startswith(RUNNABLE):
            # It waits no longer for what the kernel's functions show.
            return Wait(CORE, self.call, gpu=self._gpu(), nowhere=nowhere, has_user_frames=not only_placeholders)
        lock = self._lock()
        few = self.kernel in FEW_EVENTS if self.kernel else self.call in FEW_EVENTS_CALLS
        kind = self._kind(state, lock, few)
        join = self.parked == LAUNCHER or (kind == THREAD and self._is_for_an_end())
        job = self.job() if kind in TOLD_BY_OTHERS else ""
        asks = kind == PEER and self._asks()
        has_user = not only_placeholders
        for_all = job == COLLECTIVE and self._is_for_all()
        return Wait(kind, self.call, self.kernel, lock, self._gpu(), asks, job, join, few, nowhere, has_user, for_all)

    @property
    def _only_placeholders(self) -> bool:
        return bool(self.placeholders) or not self.has_user_frames

    def _kind(self, state: str, lock: str, few: bool) -> str:
        if self._is_unknown(state):
            return UNKNOWN
        if state in _BY_STATE:
            return _BY_STATE[state]
        if self.kernel in FREEZERS:
            return HALTED
        if lock or KERNEL_LOCKS.match(self.kernel):
            return LOCK
        if state == INTERRUPTIBLE or (state == OTHER and self._shows_who_ends_it()):
            kind = self._ended_by_others(few)
            return SLEEP if kind == THREAD and self._sleeps() else kind
        return CHILD if self.call in STARTS and self.kernel in STARTS_WAIT else HELD

    def _sleeps(self) -> bool:
        """Whether a function that sleeps waits in a condition variable, until its time is over."""
        return any(SLEEPS.fullmatch(each.label) for each in self.library) or any(each.sleeps for each in self.own)

    def _is_unknown(self, state: str) -> bool:
        if self.kernel:
            return False
        if self.placeholders and NO_PLACE.issuperset(self.placeholders):
            return True
        # An interruptible wait without a stack is, as a rule, that of an idle thread.
        is_told = state in _BY_STATE or state == INTERRUPTIBLE or not (self.has_user_frames or state == OTHER)
        return not is_told and self._only_placeholders

    def _gpu(self) -> str:
        """See `Wait.gpu`."""
        return next((each.gpu for each in (*reversed(self.library), *self.own) if each.gpu), "")

    def job(self) -> str:
        """See `Wait.job`."""
        for each in reversed(self.library):
            place = _script(each)
            if LOADERS.fullmatch(place):
                return LOADER
            if (COLLECTIVE_SCRIPTS if place else COLLECTIVES).fullmatch(place or each.label):
                return COLLECTIVE
        return COLLECTIVE if any(each.meets for each in self.own) else ""

    def operation(self) -> str:
        """Innermost function of a communication library in which ranks wait for others; "" if there is none."""
        of_library = (each.label for each in reversed(self.library) if not _script(each))
        of_own = (each.label for each in reversed(self.own) if each.meets)
        return next((label for label in (*of_library, *of_own) if COLLECTIVES.fullmatch(label)), "")

    def _is_for_all(self) -> bool:
        """See `Wait.for_all`."""
        meets = (*self.library, *(each for each in self.own if each.meets))
        places = ((_script(each), each.label) for each in meets)
        return any((FOR_ALL_SCRIPTS if place else FOR_ALL_RANKS).fullmatch(place or label) for place, label in places)

    def _lock(self) -> str:
        """See `Wait.lock`."""
        by = ended_by(self.call) if not self.kernel else ""
        if self.kernel in EVENT_WAITS or by == BY_EVENTS:
            return self.lock_of_program
        if BY_KERNEL.get(self.kernel) == SLEEP or by == BY_TIMER:
            inner = (*reversed(self.library), *reversed(self.own))
            return next((each.lock_by_timer for each in inner if each.lock_by_timer), "")
        if by not in ("", BY_THREAD) or (self.kernel and self.kernel not in FUTEX_WAITS):
            return ""
        return self._lock_by_thread()

    def _lock_by_thread(self) -> str:
        """The lock that another thread of the process frees."""
        if self.called.startswith(USER_LOCKS):
            return self.called
        if self.called in TIMED and self.storage_lock:
            return self.storage_lock
        if found := next((each.user_lock for each in self.library if each.user_lock), ""):
            return found
        if found := next((each.label for each in self.own if each.is_linked_lock), "") or self.lock_of_program:
            return found
        names = [self.called, *(each.label for each in self.library)]
        found = next((name for name in names if name.startswith(PYTHON_LOCKS)), "")
        return "" if not found or self._is_for_item(names) or self._is_for_signal() else found

    def _is_for_item(self, names: Iterable[str]) -> bool:
        """Whether it is a queue of Python that is waited for. ``names``: of the functions below the program's."""
        return any(name.startswith(QUEUES) for name in names) or any(
            QUEUE_FILES.fullmatch(each.path) for each in self.library
        )

    def _is_for_signal(self) -> bool:
        """Whether the innermost function of a script is one of Python's library that takes locks to wait for signals;
        or none is known."""
        script = self.script
        if script is None:
            return True
        is_programs = script.file.startswith("/") and script.is_own
        return not is_programs and SIGNALS.match(f"{script.file}:{script.name}") is not None

    def _is_for_an_end(self) -> bool:
        """See `Wait.join`."""
        if JOINS.fullmatch(self.called):
            return True
        return any(
            SCRIPT_JOINS.fullmatch(f"{each.file}:{each.name}" if each.is_python else each.name)
            if each.is_script
            else JOINS.fullmatch(each.label)
            for each in self.library
        )

    def _shows_who_ends_it(self) -> bool:
        """Whether the place alone shows that a wait, whose state is not known, is not for a disk."""
        if self.kernel:
            return self.kernel in BY_KERNEL
        return bool(self.parked) or ended_by(self.call) not in ("", BY_FILE)

    def _ended_by_others(self, few: bool) -> str:
        if self._is_for_work():
            return WORK
        if any(CHILD_WAITS.fullmatch(each.label) for each in self.library):
            return CHILD
        if (few and self._is_for_peer()) or (self._may_be_for_peer() and self._asks()):
            return PEER
        if kind := BY_KERNEL.get(self.kernel):
            return kind
        if not self.kernel and (by := ended_by(self.call)):
            return BY_CALL[by]
        return HELD if self.has_name else WORK

    def _is_for_work(self) -> bool:
        """Whether a server, a runtime or a pool has nothing to do until it gets a connection, a request or a task."""
        is_server = self.parked or self.is_master or self.call in CONNECTIONS
        return bool(is_server) or waits_for_request(reversed(self.library))

    def _may_be_for_peer(self) -> bool:
        return not self.kernel or BY_KERNEL.get(self.kernel) in (EVENTS, PEER)

    def _asks(self) -> bool:
        """See `Wait.asks`."""
        if CLIENT_CALLS.fullmatch(self.called) or CLIENT_CALLS.fullmatch(self.system_call):
            return True
        return any(each.asks for each in self.own) or any(
            CLIENT_SCRIPTS.fullmatch(f"{each.file}:{each.name.rpartition('.')[2]}")
            if each.is_python
            else CLIENTS.fullmatch(each.label)
            for each in self.library
        )

    def _is_for_peer(self) -> bool:
        """Whether one of the innermost functions of libraries waits for one other end: ``sock_recv_into`` of
        ``Session.get → … → SocketIO.readinto → sock_recv_into``. None outside of a script's."""
        return bool(peer_function(self.library[::-1]))


def peer_function(library: Sequence[Told]) -> str:
    """The function of a library that waits for what one other end does; "" if there is none. ``library``: the frames
    between the program and the C library, innermost first."""
    selects = False
    for each in islice((each for each in library if each.is_named and not each.is_plumbing), thresholds.INNERMOST):
        if SELECTS_FOR_PEER.fullmatch(each.label) or (OF_PEER.match(each.label) and not selects):
            return each.label
        if each.is_python and SELECTS.search(f"{each.file}:{each.name}"):
            selects = True
        elif each.is_script:
            break
    return ""


def _below(parts: Parts) -> _Below:
    user, first = parts.user, parts.end
    while first and parts.end - first < _LIBRARY_DEPTH and not user[first - 1].is_own:
        first -= 1
    library = tuple(user[first : parts.end])
    lock, script, is_master, storage_lock = "", None, False, ""
    if parts.is_marked:
        own = user[max(first - _LIBRARY_DEPTH, 0) : first]
        lock = next((each.lock_of_program for each in own if each.lock_of_program), "")
        is_master = next((each.is_master for each in reversed(own) if not each.in_brackets), False)
        storage_lock = next((each.storage_lock for each in reversed(own) if each.storage_lock), "")
    if parts.called.startswith(PYTHON_LOCKS) or any(map(_TAKES_PYTHON_LOCK, library)):
        script = next((each for each in reversed(user) if each.is_python), None)
    return _Below(
        parts.call,
        parts.kernel,
        parts.called,
        library,
        tuple(filter(_TELLS, user[max(first - thresholds.INNERMOST, 0) : first])),
        parts.parked,
        is_master,
        lock,
        storage_lock,
        script,
        tuple(each.name for each in user) if user and all(map(_IS_PLACEHOLDER, user)) else (),
        bool(user),
        not all(map(_IN_BRACKETS, user)),
    )
