"""Places where calls spent their time: rows by thread, state and stack, as SystemTap tells them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ....converters.model import Frame, Module, Stack
from ....converters.readers.stap.stacks import Stacks
from ..named_rows import NO_STACK, Place
from .functions import Function

_MOST_PLACES = 1 << 19
_MOST_INNER = 1 << 12
"""Places in one call that wait for their callers; others have what SystemTap could tell."""
_NO_MODULE = Module("")
_TRAMPOLINE = Frame("[unknown]", "native")
"""A function whose return has a probe returns to code of the kernel's: where a walk ends."""

Places = dict["Key", list[int]]
"""Time in ns, and number of calls."""


class What(NamedTuple):
    """Name of what was called."""

    name: str
    device: str
    """Device of an ioctl."""
    locks: str = ""
    library: str = ""
    """Path of a function's file."""

    @property
    def file(self) -> str:
        """The name of a function's file."""
        return os.path.basename(self.library)


class Key(NamedTuple):
    """Key of a place where time was spent, by the numbers of stacks."""

    pid: int
    tid: int
    state: str
    user: tuple[int, ...]
    """Stacks: of the place; then of the callers of each timed call that it is in, from the inner to the outer one."""
    kernel: int
    call: What | None
    """Call that is a frame between both stacks; None: a function is among the user's frames."""
    of_calls: bool
    """Whether it belongs to the measure of functions' calls."""
    is_open: bool = False


def add_place(places: Places, key: Key, time: int, calls: int, most: int | None = None) -> None:
    """Adds to a place; if there are ``most`` already, to one without its stacks."""
    if key not in places and len(places) >= (_MOST_PLACES if most is None else most):
        key = key._replace(user=(-1,), kernel=0)
    row = places.setdefault(key, [0, 0])
    row[0] += time
    row[1] += calls


class CallPlaces:
    """All places of calls that are over, or that go on at the end."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        """``functions``: those that are timed, by name."""
        self._marked = {(each.path, each.shown) for each in functions.values()}
        self._places: Places = {}

    def add(self, places: Places) -> None:
        """Takes the places of a call, with all callers that are known."""
        for key, (time, calls) in places.items():
            add_place(self._places, key, time, calls, _MOST_PLACES)

    def inside(self, outer: Places, places: Places) -> None:
        """Gives the places of a call to the one around it, which will know more callers."""
        for key, (time, calls) in places.items():
            if key in outer or len(outer) < _MOST_INNER:
                add_place(outer, key, time, calls, _MOST_INNER)
            else:
                self.add({key: [time, calls]})

    def rows(self, stacks: Stacks, *, of_calls: bool) -> dict[Place, list[int]]:
        """Rows of time and number of calls: of those of functions with the ioctls in them, or of other ioctls."""
        rows: dict[Place, list[int]] = {}
        for key, (time, calls) in self._places.items():
            if key.of_calls == of_calls:
                place = Place(key.pid, key.tid, key.state, self._stack(key, stacks), key.is_open)
                row = rows.setdefault(place, [0, 0])
                row[0] += time
                row[1] += calls
        return rows

    def _stack(self, key: Key, stacks: Stacks) -> Stack:
        """User frames, the call, and the kernel's frames. Timed functions are of a kind of their own."""
        user = tuple(
            frame._replace(kind="api") if ((frame.module or _NO_MODULE).path, frame.name) in self._marked else frame
            for frame in joined(key.user, stacks) or (Frame(NO_STACK, "other"),)
        )
        return (*user, *_frame(key), *stacks.of(key.kernel, 0))


def joined(numbers: tuple[int, ...], stacks: Stacks) -> Stack:
    """One stack of user frames, the outermost first. ``numbers``: see `Key.user`."""
    whole: Stack = ()
    for number in reversed(numbers):
        frames = stacks.of(0, number)
        if whole and frames[:1] == (_TRAMPOLINE,):
            whole += frames[1:]
        elif frames:
            whole = frames
    return whole


def with_callers(places: Places, user: int) -> Places:
    """The places of a call, which has the callers ``user``."""
    if not user:
        return places
    return {key._replace(user=(*key.user, user)): row for key, row in places.items()}


def _frame(key: Key) -> Stack:
    what = key.call
    if what is None or (not what.device and key.is_open and any(key.user)):  # then it is where the thread waits
        return ()
    if not what.device:
        return (Frame(what.name, "api", Module(what.library) if what.library else None),)
    return (Frame(f"{what.name} {what.device}", "api"),)
