"""Calls that a trace with SystemTap times: of ioctl(2) and of functions, and what their threads did meanwhile."""

from __future__ import annotations

import errno
import stat
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from ....converters.base.units import plural
from ....converters.model.call_ioctls import CallIoctls
from ....converters.model.calls import BUCKETS, CallTimes, bucket_of
from ....converters.model.states import RUNNING
from ....converters.readers.stap.lines import Descriptor, Exit, FunctionCall, Inside, IoctlCall, Left, Line, Wait
from ....converters.readers.stap.stacks import Stacks
from ...ioctls import commands, nvidia
from ...ioctls.devices import Device, device_of
from ...kernel.records import Origin
from ...probe_targets import results
from ..named_rows import Place
from ..rows import LEFT_OUT, Timed
from .call_places import CallPlaces, Key, Places, What, add_place, with_callers
from .functions import Function
from .threads import Part

if TYPE_CHECKING:
    from ....converters.model.sharing import SharedCall
    from ..sharing import Sharing

_MOST_WAITS = 1 << 12
"""Waits of one call that are kept one by one, to tell who was inside meanwhile."""
_MOST_FILES = 1 << 16
_UNTOLD = 1_000_000_000
"""No call runs for so many ns without a wait, which would tell of it; if one does, it is not known to be inside."""
_MOST_EVENTS = 1 << 16
"""Calls and waits that are handed on together."""
_NO_FILE = Descriptor(0, 0, 0, 0, b"", b"")


@dataclass(slots=True)
class _Call:
    """A call that a thread is in. Times in ns, and of all of its time."""

    began: int
    blocked: int = 0
    runnable: int = 0
    waits: Counter[Part] = field(default_factory=Counter)
    """Times of its waits, without those of inner calls, by part without its length."""
    inner: int = 0
    """Time in calls of functions that this one made."""
    inner_on_cpu: int = 0
    """Time on a core in all calls that this one made."""
    places: Places = field(default_factory=dict)
    """Places of calls that it made, which have returned."""
    ioctls: dict[What, CallIoctls] = field(default_factory=dict)
    """Ioctls that it made, or that calls made which it made."""
    asleep: list[tuple[int, int]] = field(default_factory=list)
    """Times since when it was blocked, and until when."""


class Calls:
    """Takes lines, and waits; gives rows and calls."""

    def __init__(self, functions: Mapping[str, Function] = MappingProxyType({}), *, alone: bool = True) -> None:
        """``functions``: those that are timed, by name. ``alone``: no functions are timed, only ioctls."""
        self.lost: Counter[str] = Counter({LEFT_OUT: 0})
        self.unfinished = 0
        self._functions, self._alone = functions, alone
        self._inside: defaultdict[int, list[_Call]] = defaultdict(list)
        """Calls that go on, by thread, the outermost first."""
        self._files: dict[tuple[int, int], Descriptor] = {}
        self._going_on: list[IoctlCall | FunctionCall] = []
        self._places = CallPlaces(functions)
        self._times: dict[tuple[int, int, What], CallTimes] = {}
        self._parts: dict[tuple[int, int, What, What], CallIoctls] = {}
        """Ioctls by thread, function and what they are."""
        self._shared = _Shared()

    def take(self, line: Line) -> None:
        """The next line."""
        if isinstance(line, Inside):
            self._inside[line.tid].append(_Call(line.time))
        elif isinstance(line, (IoctlCall, FunctionCall)):
            if line.is_open:
                self._going_on.append(line)
            else:
                self._call(line, line.length)
        elif isinstance(line, Left):
            self._forget([self._returned(line.tid, line.time)])
        elif isinstance(line, Descriptor):
            self._descriptor(line)
        elif isinstance(line, Exit):
            self._forget(self._inside.pop(line.tid, ()))

    def _forget(self, calls: Iterable[_Call]) -> None:
        """Forgets what is not known to return: only the calls in it are known."""
        for call in calls:
            self._places.add(call.places)

    def waited(self, wait: Wait, parts: Iterable[Part]) -> None:
        """A thread has waited, or still waits, for these times in these states."""
        if not (calls := self._inside.get(wait.tid)):
            return
        call = calls[-1]
        for part in parts:
            call.waits[part._replace(time=0, whole=0)] += part.time
            if part.state.startswith("runnable"):
                call.runnable += part.time
            else:
                call.blocked += part.time
                self._note_sleep(call, wait.since, wait.since + part.time)

    def _note_sleep(self, call: _Call, since: int, until: int) -> None:
        if len(call.asleep) < _MOST_WAITS:
            call.asleep.append((since, until))
        else:
            self.lost[LEFT_OUT] += 1

    def _returned(self, tid: int, began: int) -> _Call:
        """The call of a thread that began then; what it did is forgotten."""
        calls = self._inside.get(tid, [])
        while calls and calls[-1].began > began:  # its return was not seen
            self._forget([calls.pop()])
        call = calls.pop() if calls and calls[-1].began == began else _Call(began)
        if not calls:
            self._inside.pop(tid, None)
        return call

    def _descriptor(self, line: Descriptor) -> None:
        if len(self._files) >= _MOST_FILES:
            self._files.clear()  # they are told again when they change
            self.lost["files"] += 1
        self._files[line.pid, line.fd] = line

    def finish(self, ended: int) -> None:
        """The trace has ended then: takes the calls that go on, of which inner ones began later."""
        for line in sorted(self._going_on, key=lambda each: -each.time):
            self._call(line, max(ended - line.time, 0))
        self._going_on = []
        for calls in self._inside.values():
            self._forget(calls)
        self._inside.clear()

    def _call(self, line: IoctlCall | FunctionCall, length: int) -> None:
        call = self._returned(line.tid, line.time)
        around = self._inside.get(line.tid, [])
        if isinstance(line, IoctlCall):
            file = self._files.get((line.pid, line.fd), _NO_FILE)._replace(pid=0, fd=0)
            what = _named(file, line.command)
            self._shared.add(line, call, what, _device(file), length)
            begins = (each.began for calls in self._inside.values() for each in calls)
            self._shared.settle(line.time + length, begins)
            if around:
                _add_ioctl(call.ioctls, what, line, call, length)
        else:
            what = self._function(line, call)
        self._find_places(line, call, what, length)
        if isinstance(line, FunctionCall) or self._alone:
            self._count(line, call, what, length)
        if around:
            _add_to_outer(around[-1], call, length, is_function=isinstance(line, FunctionCall))
            self._places.inside(around[-1].places, call.places)
        else:
            self._places.add(call.places)

    def _function(self, line: FunctionCall, call: _Call) -> What:
        path, shown = self._functions.get(line.function, Function("", line.function))
        what = What(shown, "", library=path)
        for ioctl, made in call.ioctls.items():
            key = line.pid, line.tid, what, ioctl
            if key not in self._parts:
                self._parts[key] = CallIoctls(what.name, what.file, line.pid, "", ioctl.name, ioctl.device)
            self._parts[key].add(made)
        return what

    def _find_places(self, line: IoctlCall | FunctionCall, call: _Call, what: What, length: int) -> None:
        """Adds those of a call to those of the calls in it."""
        is_function = isinstance(line, FunctionCall)
        of_calls = is_function or line.tid in self._inside
        for part, time in call.waits.items():
            kernel, user = part.origin
            shown = None if is_function else what
            key = Key(line.pid, line.tid, part.state, (user,), kernel, shown, of_calls, part.is_open)
            add_place(call.places, key, time, 0)
        if is_function and not line.is_open:  # a system call returns without a trampoline
            call.places = with_callers(call.places, line.user)
        on_cpu = max(length - call.blocked - call.runnable - call.inner_on_cpu, 0)
        key = Key(line.pid, line.tid, RUNNING, (line.user,), 0, what, of_calls, line.is_open)
        add_place(call.places, key, on_cpu, int(not line.is_open and (is_function or self._alone)))

    def _count(self, line: IoctlCall | FunctionCall, call: _Call, what: What, length: int) -> None:
        key = line.pid, line.tid, what
        if key not in self._times:
            self._times[key] = CallTimes(what.name, what.device, line.pid, "", locks=what.locks, library=what.file)
        times = self._times[key]
        if line.is_open:
            self.unfinished += 1
            times.open_count += 1
            times.open_time += length
            times.open_inner += call.inner
        else:
            add_call(times, length, min(call.blocked, length), call.runnable)
            times.inner += min(call.inner, length)
        if name := _error(line):
            times.errors[name] = times.errors.get(name, 0) + 1

    def rows(self, stacks: Stacks, *, of_calls: bool) -> dict[Place, list[int]]:
        """See `CallPlaces.rows`."""
        return self._places.rows(stacks, of_calls=of_calls)

    def timed(self) -> list[Timed]:
        """The calls by thread."""
        return [Timed(Origin(0, 0, 0, tid, pid, 0, 0), times) for (pid, tid, _), times in self._times.items()]

    def call_ioctls(self) -> list[tuple[Origin, CallIoctls]]:
        """The ioctls in functions' calls, by thread."""
        return [(Origin(0, 0, 0, tid, pid, 0, 0), part) for (pid, tid, _, _), part in self._parts.items()]

    def remarks(self) -> Iterator[str]:
        """Sentences that the reader should know."""
        if self.unfinished:
            calls = plural(self.unfinished, "ioctl" if self._alone else "call")
            yield f"{calls} had not ended: their time is in the picture, up to the end"

    def shared(self, ended: int) -> list[SharedCall]:
        """Calls in which several processes were at the same time."""
        return self._shared.found(ended)


def add_call(times: CallTimes, length: int, blocked: int, runnable: int) -> None:
    """Counts a call that returned after ``length`` ns."""
    times.min = min(times.min, length) if times.count else length
    times.max = max(times.max, length)
    times.count += 1
    times.total += length
    times.blocked += blocked
    times.runnable += min(runnable, length - blocked)
    latencies = list(times.latencies or (0,) * BUCKETS)
    latencies[bucket_of(length)] += 1
    times.latencies = tuple(latencies)


@lru_cache(maxsize=1 << 12)
def _named(file: Descriptor, command: int) -> What:
    device = _described(file)
    return What(commands.name(device.file, command), device.name, commands.locks(device.file, command, 0))


def _described(file: Descriptor) -> Device:
    return device_of(stat.S_IFMT(file.mode), file.device, file.filesystem, file.basename)


def _device(file: Descriptor) -> Hashable:
    """Equal for files whose calls can wait for each other, as in `ioctl_records.Targets.device`."""
    if stat.S_ISCHR(file.mode) and file.device >> 20 == nvidia.MAJOR:
        return "NVIDIA"
    return stat.S_IFMT(file.mode), file.device


def _error(line: IoctlCall | FunctionCall) -> str:
    """The name of a failed call's error; "" if it did not fail, or has not ended."""
    if isinstance(line, IoctlCall):
        return errno.errorcode.get(line.error, f"errno {line.error}") if line.error else ""
    code = line.result & 0xFFFFFFFF
    return results.error_name(line.function, code) if code and results.has_errors(line.function) else ""


def _add_ioctl(made: dict[What, CallIoctls], what: What, line: IoctlCall, call: _Call, length: int) -> None:
    ioctl = CallIoctls("", "", line.pid, "", what.name, what.device)
    if line.is_open:
        ioctl.open_count, ioctl.open_time = 1, length
    else:
        ioctl.count, ioctl.total, ioctl.blocked, ioctl.runnable = 1, length, call.blocked, call.runnable
    made[what] = ioctl


def _add_to_outer(outer: _Call, call: _Call, length: int, *, is_function: bool) -> None:
    """Adds a call to the one that made it."""
    outer.blocked += call.blocked
    outer.runnable += call.runnable
    outer.inner += length if is_function else 0
    outer.inner_on_cpu += max(length - call.blocked - call.runnable, 0)
    for what, ioctl in call.ioctls.items():
        outer.ioctls.setdefault(
            what, replace(ioctl, count=0, total=0, blocked=0, runnable=0, open_count=0, open_time=0)
        )
        outer.ioctls[what].add(ioctl)


class _Shared:
    """Hands calls and their waits to `sharing.Sharing`, many at a time."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[What, Hashable], int] = {}
        self._fresh: list[tuple[int, int, int, int, int, int]] = []
        self._going_on: dict[tuple[int, int], int] = {}
        self._sharing: Sharing | None = None

    def add(self, line: IoctlCall, call: _Call, what: What, device: Hashable, length: int) -> None:
        number = self._numbers.setdefault((what, device), len(self._numbers))
        if line.is_open:
            key = number, line.pid
            self._going_on[key] = min(line.time, self._going_on.get(key, line.time))
            return
        self._fresh.append((line.time, line.time + length, number, line.pid, line.tid, 0))
        self._fresh += [(since, until, number, line.pid, line.tid, 1) for since, until in call.asleep]

    def settle(self, now: int, going_on: Iterable[int]) -> None:
        """Works, if there are many, on those before ``going_on``, the begins of calls that have not returned."""
        if len(self._fresh) >= _MOST_EVENTS:
            self._hand().settle(min(now - _UNTOLD, *going_on, now), {})

    def _hand(self) -> Sharing:
        from ..sharing import Sharing  # it needs numpy

        if self._sharing is None:
            self._sharing = Sharing(self._device)
        self._sharing.hand(self._fresh)
        self._fresh = []
        return self._sharing

    def _device(self, number: int) -> Hashable:
        return list(self._numbers)[number][1]

    def found(self, ended: int) -> list[SharedCall]:
        sharing = self._hand()
        sharing.settle(ended, self._going_on, final=True)
        shared = []
        names = list(self._numbers)
        for number, call in sharing.found.items():
            call.name, call.device = names[number][0][:2]
            if call.shared:
                shared.append(call)
        return shared
