"""Frames of an off-CPU stack that tell where a thread waits: the caller, the API, the system call, the kernel wait.

Three or four names in a stack of 40 frames answer the question. The tables of functions that are
only plumbing are in this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ..model import Frame, Stack
from ..model.sites import Site
from .call_kinds import FEW_EVENTS_CALLS
from .frame_names import bare, is_named, label, located
from .kernel_sites import kernel_wait_of, system_call_of, user_and_kernel
from .ownership import is_own
from .plumbing import called_by, in_library, is_plumbing, library_call
from .shared_frames import CALLED, NOTHING_SHARED, Shared, passed_on
from .waits import peer_function

GAP = "…"
"""Marks frames left out between two names in `Site.frames`."""

_PASS_ON = (
    # PostgreSQL: every wait of a server process goes through them.
    "WaitLatch",
    "WaitEventSetWait",
)
"""Prefixes of functions that are known to pass many different waits on, even if only one is seen (`shared_frames`)."""

_NOTIFIED = ("sem_", "new_sem_", "old_sem_", "do_futex_wait", "pthread_cond_", "futex")
"""Begins of the functions in which a thread waits for another one's notice. A function of Python's library that does
it, such as `Queue.get` or `Condition.wait`, tells more."""


_Name = tuple[str, int, int]
"""A name, and the first and the last depth of the frames that it represents."""


class _Run(NamedTuple):
    """Consecutive frames of one module (or of a script)."""

    is_script: bool
    is_named: bool
    names: list[_Name]
    """The first and the last two; ``[libcuda.so.1]``, once, for a module without names."""


class _Told:
    """Properties of one frame."""

    __slots__ = (
        *("bare", "is_library", "is_named", "is_own", "is_plumbing", "is_script", "label", "located", "mark", "origin"),
        "waits_itself",
    )

    def __init__(self, frame: Frame, shared: Shared) -> None:
        self.is_script = frame.kind in ("python", "jit")
        self.is_own = is_own(frame)
        self.waits_itself = frame.kind == "python" and not self.is_own
        self.is_named = is_named(frame)
        self.is_plumbing = is_plumbing(frame)
        self.is_library = self.is_named and in_library(frame)
        self.label = label(frame)
        self.located = located(frame) if self.is_own else ""
        self.bare = bare(frame.name)
        self.origin = frame.kind if self.is_script else frame.module.path if frame.module else ""
        self.mark = CALLED if self.bare.startswith(_PASS_ON) else shared.mark(frame)


_Own = tuple[_Told, int]
"""What a frame tells, and its depth in the stack."""


class Sites:
    """The sites of many stacks. What a frame tells is found out once, by the frame's identity: readers share equal
    frames, and to hash one takes longer than all the rest. The stacks have to live as long as this object."""

    def __init__(self, shared: Shared = NOTHING_SHARED) -> None:
        """``shared`` are functions that tell little, because many other waits go through them (`shared_frames`)."""
        self._shared = shared
        self._told: dict[int, _Told] = {}
        self._below: dict[tuple[int, ...], tuple[str, str]] = {}
        """System call and kernel wait, by the kernel's frames."""

    def of(self, stack: Stack) -> Site:
        """Site in which ``stack`` (user frames, then kernel frames, outermost first) waits."""
        user, kernel = user_and_kernel(stack)
        below = tuple(map(id, kernel))
        if below not in self._below:
            self._below[below] = system_call_of(kernel), kernel_wait_of(kernel)
        system_call, wait = self._below[below]
        return Site(self._user_chain(user, system_call), wait)

    def _user_chain(self, user: Stack, system_call: str) -> tuple[str, ...]:
        end = len(user)
        names: list[str] = []
        while end:
            told = self._tell(user[end - 1])
            if not told.is_plumbing and told.bare != system_call:
                break
            names.append(told.bare if told.is_library else "")
            end -= 1
        called = called_by(library_call(names, has_caller=end > 0), user[end - 1] if end else None)
        chosen, call = _own_chain(self._own(user, end)), _call(called, system_call)
        if (
            chosen
            and call == [called]
            and self._tell(user[chosen[-1][2]]).waits_itself
            and called.startswith(_NOTIFIED)
        ):
            call = []
        between = user[chosen[-1][2] + 1 : end] if chosen and call else ()
        hidden = [GAP] if self._has_names(between) else []
        if hidden and system_call in FEW_EVENTS_CALLS:
            hidden += filter(None, [peer_function(between[::-1])])
        own = _with_gaps(self._located(chosen, user))
        # A function may be called as what it calls; recursion is one name.
        return (*(name for i, name in enumerate(own) if not i or name != own[i - 1]), *hidden, *call)

    def _located(self, chosen: list[_Name], user: Stack) -> list[_Name]:
        """The names, that of the program's innermost function with the line that waits, if it is Python's."""
        for i, (text, first, last) in reversed(list(enumerate(chosen))):
            told = self._tell(user[last])
            if told.located and told.label == text:
                return [*chosen[:i], (told.located, first, last), *chosen[i + 1 :]]
        return chosen

    def _own(self, user: Stack, end: int) -> Iterator[_Own]:
        """The frames before ``end`` that tell something, innermost first."""
        for depth in range(end - 1, -1, -1):
            if not (told := self._tell(user[depth])).is_plumbing:
                yield told, depth

    def _has_names(self, frames: Stack) -> bool:
        return any(told.is_named and not told.is_plumbing for told in map(self._tell, frames))

    def _tell(self, frame: Frame) -> _Told:
        known = self._told.get(id(frame))
        if known is None:
            known = self._told[id(frame)] = _Told(frame, self._shared)
        return known


def site(stack: Stack, shared: Shared = NOTHING_SHARED) -> Site:
    """`Sites.of` for a single stack."""
    return Sites(shared).of(stack)


def _with_gaps(names: Sequence[_Name]) -> list[str]:
    """The names, and `GAP` where frames between two of them are left out."""
    texts: list[str] = []
    before, end = "", -1
    for text, first, last in names:
        if texts and first > end + 1 and text != before:
            texts.append(GAP)
        texts.append(text)
        before, end = text, last
    return texts


def _call(called: str, system_call: str) -> list[str]:
    """The library function called, the system call, or both: ``pthread_cond_wait``; ``ioctl``; ``fread``, ``read``."""
    if called.startswith(("futex_", "lll_futex")) or not called:
        return [system_call] if system_call else ["futex"] if called else []
    if system_call in ("", "futex") or called in system_call:
        return [called]
    return [called, system_call]


def _own_chain(frames: Iterator[_Own]) -> list[_Name]:
    """Names of the frames that tell most, outermost first; ``frames``: innermost first.

    What is decisive is the last step from a function of the program into a library, if there is one: it is known from
    the stack alone.
    """
    library: list[_Own] = []
    for entry in frames:
        if entry[0].is_own:
            break
        library.append(entry)
    else:
        return _callers(iter(library))
    outside = _callers(chain((entry,), frames))
    if not library:
        return outside
    return [*(outside[:1] + outside[-1:] if len(outside) > 1 else outside), *_api(library, len(outside) == 1)]


def _api(frames: Sequence[_Own], with_inner: bool) -> list[_Name]:
    """The library function that the program calls, and the innermost one; the library itself if they have no names."""
    named = [(told, depth) for told, depth in frames if told.is_named]
    if not named:
        return [(frames[0][0].label, frames[-1][1], frames[0][1])]
    ends = [named[-1], named[0]] if with_inner and len(named) > 1 and not named[-1][0].is_script else [named[-1]]
    return [(told.label, depth, depth) for told, depth in ends]


def _callers(own: Iterator[_Own]) -> list[_Name]:
    """Caller and API: the frames on both sides of the last step from one module into another, one to four names.

    ``own``: frames, innermost first. Only those that are needed are taken.
    """
    passed: list[_Own] = []
    if inner := _behind_shared(own, passed):
        return _telling_callers(inner, own)
    runs = _runs(chain(passed, own))
    nameless: list[_Name] = []
    last = next(runs, None)
    while last and not last.is_named:
        nameless = last.names
        last = next(runs, None)
    if not last:
        return nameless
    names, outer = last.names, next(runs, None)
    if last.is_script or not outer:
        return names[-2:] + nameless
    api = [outer.names[-1], *names[:1], *names[1:][-1:]]
    if len(names) == len(outer.names) == 1 and (outermost := next(runs, None)):
        # A library that only passes the call on: its caller is more informative.
        api.insert(0, outermost.names[-1])
    return api + nameless


def _behind_shared(own: Iterator[_Own], passed: list[_Own]) -> _Own | None:
    """The innermost frame outside of the functions that only pass waits on (`passed_on`); None if there is none.
    ``passed`` gets the frames taken from ``own``."""

    def marks() -> Iterator[int]:
        for entry in own:
            passed.append(entry)
            yield entry[0].mark

    inside = passed_on(marks())
    return passed[inside] if inside is not None and inside < len(passed) else None


def _telling_callers(inner: _Own, outside: Iterator[_Own]) -> list[_Name]:
    """The innermost function that is not shared, the next shared one outside of it, and its caller."""
    caller = first = next(outside, None)
    api = None
    while caller and not caller[0].mark & CALLED:
        caller = next(outside, None)
    if caller:
        api, first = caller, next(outside, None)
    told = [(each[0].label, each[1], each[1]) for each in (first, api) if each and each[0].is_named]
    return [*told, (inner[0].label, inner[1], inner[1])]


def _runs(own: Iterator[_Own]) -> Iterator[_Run]:
    """Innermost first, as ``own``."""
    run: list[_Own] = []
    for entry in own:
        if run and entry[0].origin != run[0][0].origin:
            yield _run(run)
            run = []
        run.append(entry)
    if run:
        yield _run(run)


def _run(run: list[_Own]) -> _Run:
    last, depth = run[0]
    if len(run) == 1:
        return _Run(last.is_script, last.is_named, [(last.label, depth, depth)])
    named = [entry for entry in reversed(run) if entry[0].is_named]
    # Only names at its ends are shown.
    ends = named if len(named) <= 3 else [named[0], *named[-2:]]
    names = [(told.label, depth, depth) for told, depth in ends]
    return _Run(last.is_script, bool(names), names or [(last.label, run[-1][1], depth)])
