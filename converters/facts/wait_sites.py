"""Frames of an off-CPU stack that tell where a thread waits: the caller, the API, the system call, the kernel wait.

Three or four names in a stack of 40 frames answer the question. The tables of functions that are
only plumbing are in this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ..model import Stack
from ..model.sites import Site
from .call_kinds import FEW_EVENTS_CALLS
from .runtimes import go_caller
from .shared_frames import CALLED, NOTHING_SHARED, Shared, passed_on
from .stacks import Parts, Stacks, Told
from .waits import peer_function

_SLEEPS = frozenset(("nanosleep", "clock_nanosleep"))
"""System calls of functions that sleep."""
GAP = "…"
"""Marks frames left out between two names in `Site.frames`."""

_NOTIFIED = ("sem_", "new_sem_", "old_sem_", "do_futex_wait", "pthread_cond_", "futex")
"""Begins of the functions in which a thread waits for another one's notice. A function of Python's library that does
it, such as `Queue.get` or `Condition.wait`, tells more."""


_Name = tuple[str, int, int]
"""A name, and the first and the last depth of the frames that it represents."""


class _Run(NamedTuple):
    """Consecutive frames of one module (or of a script)."""

    names: list[_Name]
    """The first and the last two; ``[libcuda.so.1]``, once, for a module without names."""
    is_named: bool
    outside: int
    """The depth of the frame before them that tells something; -1 if there is none."""


class Sites:
    """The sites of many stacks, which have to live as long as this object: see `Stacks`."""

    def __init__(self) -> None:
        self._stacks = Stacks()

    def of(self, stack: Stack) -> Site:
        """Site in which ``stack`` (user frames, then kernel frames, outermost first) waits."""
        return site_of(self._stacks.of(stack))


def site(stack: Stack, shared: Shared = NOTHING_SHARED) -> Site:
    """`Sites.of` for a single stack."""
    return site_of(Stacks(shared).of(stack))


def site_of(parts: Parts) -> Site:
    """Place in which a stack waits."""
    return Site(_user_chain(parts), parts.kernel)


def _user_chain(parts: Parts) -> tuple[str, ...]:
    user, called = parts.user, parts.called
    chosen, call = _own_chain(user, parts.end), _call(called, parts.call)
    if not chosen:
        caller = go_caller((each.label for each in reversed(user)), called)
        return tuple(call if caller == called else _call(caller, parts.call))
    innermost = chosen[-1][2]
    if call == [called] and user[innermost].waits_itself and called.startswith(_NOTIFIED):
        call = []
    between = user[innermost + 1 : parts.end] if call else ()
    hidden = [GAP] if between and any(told.is_named and not told.is_plumbing for told in between) else []
    if hidden and parts.call in FEW_EVENTS_CALLS and (peer := peer_function(between[::-1])):
        hidden.append(peer)
    elif hidden and parts.call in _SLEEPS and (caller := _sleeper(between)):
        hidden.append(caller)
    elif hidden and (meeting := next((told.label for told in between if told.meets), "")):
        hidden.append(meeting)
    return (*_with_gaps(_located(chosen, user)), *hidden, *call)


def _sleeper(between: Sequence[Told]) -> str:
    """The innermost function of a library that tells something, of a script if there is one: it sleeps, for its own
    reasons."""
    telling = [told for told in reversed(between) if told.is_named and not told.is_plumbing]
    return next((told.label for told in [*filter(lambda told: told.is_script, telling), *telling]), "")


def _located(chosen: list[_Name], user: Sequence[Told]) -> list[_Name]:
    """The names, that of the program's innermost function with the line that waits, if it is Python's."""
    for i in range(len(chosen) - 1, -1, -1):
        text, first, last = chosen[i]
        told = user[last]
        if told.located and told.label == text:
            return [*chosen[:i], (told.located, first, last), *chosen[i + 1 :]]
    return chosen


def _with_gaps(names: Sequence[_Name]) -> list[str]:
    """The names, and `GAP` where frames between two of them are left out."""
    texts: list[str] = []
    before, end = "", -1
    for text, first, last in names:
        if texts and first > end + 1 and text != before:
            texts.append(GAP)
        # A function may be called as what it calls; recursion is one name.
        if not texts or text != texts[-1]:
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


def _outward(user: Sequence[Told], depth: int) -> Iterator[int]:
    """The depths of the frames that tell something, from this depth outwards."""
    for each in range(depth, -1, -1):
        if not user[each].is_plumbing:
            yield each


def _own_chain(user: Sequence[Told], end: int) -> list[_Name]:
    """Names of the frames before ``end`` that are told: outermost first.

    What is decisive is the last step from a function of the program into a library, if there is one: it is known from
    the stack alone.
    """
    library: list[int] = []
    for depth in range(end - 1, -1, -1):
        told = user[depth]
        if told.is_plumbing:
            continue
        if told.is_own:
            break
        library.append(depth)
    else:
        return _callers(user, library[0]) if library else []
    outside = _callers(user, depth)
    if not library:
        return outside
    return [*(outside[:1] + outside[-1:] if len(outside) > 1 else outside), *_api(user, library, len(outside) == 1)]


def _api(user: Sequence[Told], library: Sequence[int], with_inner: bool) -> list[_Name]:
    """The library function that the program calls, and the innermost one; the library itself if they have no names."""
    named = [depth for depth in library if user[depth].is_named]
    if not named:
        return [(user[library[0]].label, library[-1], library[0])]
    entry = named[-1]
    while len(named) > 1 and user[named[-1]].is_closure and user[named[-2]].is_script:
        named.pop()  # what a decorator puts around the function that the program calls
    with_inner = with_inner and len(named) > 1 and not user[named[-1]].is_script
    called = (user[named[-1]].label, entry, named[-1])
    return [called, _name(user, named[0])] if with_inner else [called]


def _name(user: Sequence[Told], depth: int) -> _Name:
    return user[depth].label, depth, depth


def _callers(user: Sequence[Told], innermost: int) -> list[_Name]:
    """Caller and API: the frames on both sides of the last step from one module into another, one to four names."""
    behind = _behind_shared(user, innermost)
    if behind >= 0:
        return _telling_callers(user, behind)
    nameless: list[_Name] = []
    last = _run(user, innermost)
    while not last.is_named:
        if last.outside < 0:
            return last.names
        nameless, innermost = last.names, last.outside
        last = _run(user, innermost)
    names = last.names
    if last.outside < 0 or user[innermost].is_script:
        return names[-2:] + nameless
    outer = _run(user, last.outside)
    api = [outer.names[-1], *names[:1], *names[1:][-1:]]
    if len(names) == len(outer.names) == 1 and outer.outside >= 0:
        # A library that only passes the call on: its caller is more informative.
        api.insert(0, _run(user, outer.outside).names[-1])
    return api + nameless


def _behind_shared(user: Sequence[Told], innermost: int) -> int:
    """The depth of the innermost frame outside of the functions that only pass waits on (`passed_on`); -1 if there is
    none."""
    inside = passed_on(user[depth].mark for depth in range(innermost, -1, -1) if not user[depth].is_plumbing)
    return -1 if inside is None else next(islice(_outward(user, innermost), inside, None), -1)


def _telling_callers(user: Sequence[Told], inner: int) -> list[_Name]:
    """The innermost function that is not shared, the next shared one outside of it, and its caller."""
    outside = _outward(user, inner - 1)
    caller = first = next(outside, None)
    api = None
    while caller is not None and not user[caller].mark & CALLED:
        caller = next(outside, None)
    if caller is not None:
        api, first = caller, next(outside, None)
    told = [_name(user, depth) for depth in (first, api) if depth is not None and user[depth].is_named]
    return [*told, _name(user, inner)]


def _run(user: Sequence[Told], innermost: int) -> _Run:
    """The frames of one module from this one outwards."""
    last, depths, outside = user[innermost], [innermost], -1
    for depth in range(innermost - 1, -1, -1):
        told = user[depth]
        if told.is_plumbing:
            continue
        if told.origin != last.origin:
            outside = depth
            break
        depths.append(depth)
    if len(depths) == 1:
        return _Run([(last.label, innermost, innermost)], last.is_named, outside)
    named = [depth for depth in reversed(depths) if user[depth].is_named]
    # Only names at its ends are shown.
    names = [_name(user, depth) for depth in (named if len(named) <= 3 else [named[0], *named[-2:]])]
    return _Run(names or [(last.label, depths[-1], innermost)], bool(names), outside)
