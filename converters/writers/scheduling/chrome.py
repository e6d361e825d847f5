"""The scheduler's events as Chrome trace events: a track for each thread and each core, and arrows for wake-ups.

As in Google's "Trace Event Format" document: complete events (``X``) for the states of threads, flow events
(``s``, ``f``) inside them, ``sf`` and ``stackFrames`` for stacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np

from ...base.text import printable
from ...model import Frame, Stack
from ...model.call_spans import of_threads
from ...model.cores import LOST, OTHERS, tenants
from ...model.phases import NOBODY, STATES, phases
from ...model.scheduling import NO_STACK, Array, Scheduling, Threads
from ...model.states import BLOCKED, RUNNING
from ...model.timeline import CORES
from ..base.wait_names import wait_name

_PART = 1 << 16
_BLOCKED = {STATES.index(state) for state in BLOCKED}
_RUNNING = STATES.index(RUNNING)
_CALLS = CORES + (1 << 24)
"""The track of the first thread's calls; the others follow."""
_NOT_THREADS = {OTHERS: "[not traced]", LOST: "[events lost]"}


def events(scheduling: Scheduling, frames: StackFrames) -> Iterator[str]:
    """All events, each a JSON object."""
    found = phases(scheduling)
    places = _places(scheduling.threads)
    yield from _names(scheduling, places)
    for part in _parts(found):
        yield from _states(scheduling, part, places, frames)
    yield from _arrows(scheduling, found, places)
    yield from _calls(scheduling, places)
    cores = tenants(scheduling)
    yield from _core_names(np.unique(cores["cpu"]).tolist())
    yield from _cores(scheduling, cores)


class StackFrames:
    """The object ``stackFrames``, a tree: each number stands for a frame with its callers."""

    def __init__(self, stacks: list[Stack]) -> None:
        self._numbers: dict[tuple[int, Frame], int] = {}
        self.innermost = [self._number(stack) for stack in stacks]
        """Number of the innermost frame of each stack; 0 for an empty one."""

    def _number(self, stack: Stack) -> int:
        parent = 0
        for frame in stack:
            parent = self._numbers.setdefault((parent, frame), len(self._numbers) + 1)
        return parent

    def members(self) -> Iterator[str]:
        """``"7":{…}``, callers before callees."""
        for (parent, frame), number in self._numbers.items():
            about = {"category": frame.kind, "name": printable(frame.name)}
            if parent:
                about["parent"] = str(parent)
            yield f'"{number}":{json.dumps(about)}'


def _parts(array: Array) -> Iterator[Array]:
    for at in range(0, len(array), _PART):
        yield array[at : at + _PART]


def _places(threads: Array) -> list[tuple[int, int]]:
    """Process and thread id of each row. A thread whose id was used before gets a free one."""
    free = count(CORES + (1 << 20))
    taken: set[tuple[int, int]] = set()
    places = [(0, 0)] * len(threads)
    for row in np.argsort(threads["begin"], kind="stable").tolist():
        place = (int(threads["tgid"][row]), int(threads["tid"][row]))
        if place in taken:
            place = (place[0], next(free))
        taken.add(place)
        places[row] = place
    return places


def _metadata(kind: str, pid: int, tid: int | None, **args: str | int) -> str:
    ids = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return json.dumps({"ph": "M", "name": kind, **ids, "args": args})


def _names(scheduling: Scheduling, places: list[tuple[int, int]]) -> Iterator[str]:
    named: set[int] = set()
    for thread, (pid, tid) in zip(scheduling.threads.tolist(), places, strict=True):
        own, _, _, name, process = thread
        if pid not in named:
            named.add(pid)
            yield _metadata("process_name", pid, None, name=printable(scheduling.names[process]))
        again = f" ({own} again)" if tid != own else ""
        yield _metadata("thread_name", pid, tid, name=printable(scheduling.names[name]) + again)


def _states(scheduling: Scheduling, found: Array, places: list[tuple[int, int]], frames: StackFrames) -> Iterator[str]:
    names: dict[tuple[int, int], str] = {}
    for begin, end, thread, stack, _, cpu, state in found.tolist():
        pid, tid = places[thread]
        key = (state, stack if state in _BLOCKED else NO_STACK)
        if key not in names:
            names[key] = _head(scheduling, *key, frames)
        times = f'"ts":{_micros(begin)},"dur":{_micros(end - begin)}'
        core = f',"args":{{"core":{cpu}}}' if state == _RUNNING else ""
        yield f'{names[key]},{times},"pid":{pid},"tid":{tid}{core}}}'


def _head(scheduling: Scheduling, state: int, stack: int, frames: StackFrames) -> str:
    """The beginning of the events for one state and stack."""
    told = STATES[state]
    name = wait_name(scheduling, stack, told)
    innermost = frames.innermost[stack] if stack != NO_STACK else 0
    return f'{{"ph":"X","name":{json.dumps(name)},"cat":"{told}"' + (f',"sf":{innermost}' if innermost else "")


def _arrows(scheduling: Scheduling, found: Array, places: list[tuple[int, int]]) -> Iterator[str]:
    """Arrows from the waker's running slice to the woken thread's wait for a core: both slices must exist."""
    woken = found[found["waker"] != NOBODY]
    wakers = np.where(woken["waker"] > 0, Threads(scheduling.threads).rows(woken["waker"], woken["begin"]), -1)
    known = wakers >= 0
    for number, (begin, thread, waker) in enumerate(
        zip(woken["begin"][known].tolist(), woken["thread"][known].tolist(), wakers[known].tolist(), strict=True)
    ):
        same = f'"name":"wakes","cat":"wake-up","id":{number},"ts":{_micros(begin)}'
        for kind, row in (('"s"', waker), ('"f","bp":"e"', thread)):
            pid, tid = places[row]
            yield f'{{"ph":{kind},{same},"pid":{pid},"tid":{tid}}}'


def _calls(scheduling: Scheduling, places: list[tuple[int, int]]) -> Iterator[str]:
    """Calls on tracks of their own: a call begins and ends in the middle of the thread's states, and events of one
    track must nest."""
    calls, rows = of_threads(scheduling, Threads(scheduling.threads))
    for row in np.unique(rows).tolist():
        name = printable(scheduling.names[scheduling.threads["name"][row]])
        yield _metadata("thread_name", places[row][0], _CALLS + row, name=f"{name}: calls")
    names = [f'"name":{json.dumps(printable(each.name))},"cat":"{each.kind}"' for each in scheduling.call_names]
    ends = np.minimum(calls["end"], scheduling.end)
    for part, until, of in zip(_parts(calls), _parts(ends), _parts(rows), strict=True):
        columns = (part["name"], part["begin"], until, of)
        for name, begin, end, row in zip(*(column.tolist() for column in columns), strict=True):
            times = f'"ts":{_micros(begin)},"dur":{_micros(end - begin)}'
            yield f'{{"ph":"X",{names[name]},{times},"pid":{places[row][0]},"tid":{_CALLS + row}}}'


def _core_names(cpus: Iterable[int]) -> Iterator[str]:
    yield _metadata("process_name", CORES, None, name="cores")
    yield _metadata("process_sort_index", CORES, None, sort_index=-1)
    for cpu in cpus:
        yield _metadata("thread_name", CORES, CORES + 1 + cpu, name=f"core {cpu}")
        yield _metadata("thread_sort_index", CORES, CORES + 1 + cpu, sort_index=cpu)


def _cores(scheduling: Scheduling, cores: Array) -> Iterator[str]:
    """The thread on each core; nothing where it was idle."""
    ends = np.full(len(cores), scheduling.end, np.int64)
    same = cores["cpu"][1:] == cores["cpu"][:-1]
    ends[:-1][same] = cores["time"][1:][same]
    shown = (cores["next_tid"] != 0) & (ends > cores["time"])
    known = Threads(scheduling.threads)
    names: dict[tuple[int, int], str] = {}
    for part, until in zip(_parts(cores[shown]), _parts(ends[shown]), strict=True):
        rows = known.rows(part["next_tid"], part["time"])
        columns = (part["next_tid"], rows, part["cpu"], part["time"], until)
        for tid, row, cpu, begin, end in zip(*(column.tolist() for column in columns), strict=True):
            if (tid, row) not in names:
                names[tid, row] = json.dumps(_tenant(scheduling, tid, row))
            times = f'"ts":{_micros(begin)},"dur":{_micros(end - begin)}'
            yield f'{{"ph":"X","name":{names[tid, row]},"cat":"core",{times},"pid":{CORES},"tid":{CORES + 1 + cpu}}}'


def _tenant(scheduling: Scheduling, tid: int, row: int) -> str:
    if tid in _NOT_THREADS:
        return _NOT_THREADS[tid]
    return printable(f"{scheduling.names[scheduling.threads['name'][row]]} {tid}") if row >= 0 else f"thread {tid}"


def _micros(ns: int) -> str:
    """Exact, as a decimal number."""
    return f"{ns // 1000}.{ns % 1000:03}"
