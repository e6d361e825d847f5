"""Calls by process, with names and the threads of each, from calls by thread, as measures count them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from ...converters.model import Labels
from ...converters.model.call_ioctls import CallIoctls
from ...converters.model.calls import CallTimes, together
from ...converters.model.copies import Copies
from ..kernel.records import Origin
from .rows import Timed

_Part = TypeVar("_Part", CallIoctls, Copies)
MOST = 1 << 14
"""Number of entries of single threads at most; the calls of others are added up by process."""
OTHERS = "[other threads]"


class Naming(Protocol):
    """Names processes and threads, as `names.Names` does."""

    def labels(self, origin: Origin, state: str, is_open: bool, /) -> Labels:
        """pid, process, tid and thread, at least."""
        ...

    def pid(self, number: int, /) -> tuple[int, int]:
        """The pid of a process, and the so many-th process with this pid that it is."""
        ...

    def process(self, number: int, /) -> str:
        """The name of a process."""
        ...


def calls_by_process(timed: Iterable[Timed], names: Naming) -> list[CallTimes]:
    """An entry per name, device or library, and process. ``origin.tgid`` is the number of a process."""
    parts: dict[tuple[int, str, str, str], dict[tuple[int, int], list[CallTimes]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for origin, call in timed:
        call = _named(call, dict(names.labels(origin, "", False)))
        key = origin.tgid, call.name, call.device, call.library
        parts[key][call.tid, call.tid_life].append(call)
    made = []
    for threads in parts.values():
        each = [_as_thread(together(calls), calls[0]) for calls in threads.values()]
        process = together(each)
        process.threads = sorted(each, key=lambda call: (-call.total - call.open_time, call.tid, call.tid_life))
        made.append(process)
    _bound(made)
    return made


def parts_by_process(made: Iterable[tuple[Origin, _Part]], names: Naming) -> list[_Part]:
    """An entry per function, command or direction, and process, of those by thread. ``tgid`` is as above."""
    found: dict[object, _Part] = {}
    for origin, part in made:
        key = origin.tgid, part.what
        if key in found:
            found[key].add(part)
        else:
            pid, life = names.pid(origin.tgid)
            found[key] = replace(part, pid=pid, pid_life=life, process=names.process(origin.tgid))
    return list(found.values())


def _named(call: CallTimes, labels: Mapping[str, str | int]) -> CallTimes:
    return replace(
        call,
        process=str(labels["process"]),
        pid=int(labels.get("pid", 0)),
        pid_life=int(labels.get("pid-life", 1)),
        thread=str(labels["thread"]),
        tid=int(labels.get("tid", 0)),
        tid_life=int(labels.get("tid-life", 1)),
    )


def _as_thread(call: CallTimes, first: CallTimes) -> CallTimes:
    return replace(call, tid=first.tid, tid_life=first.tid_life, thread=first.thread)


def _bound(processes: Sequence[CallTimes]) -> None:
    """Keeps the `MOST` longest threads; the first one of each process's calls, too, if it has no other."""
    if sum(len(process.threads) for process in processes) <= MOST:
        return
    longest = sorted(_threads(processes), key=lambda call: -call.total - call.open_time)[:MOST]
    kept = set(map(id, longest))
    for process in processes:
        rest = [thread for thread in process.threads if id(thread) not in kept]
        process.threads = [thread for thread in process.threads if id(thread) in kept]
        if rest:
            process.threads.append(replace(together(rest), thread=OTHERS))


def _threads(processes: Iterable[CallTimes]) -> Iterator[CallTimes]:
    for process in processes:
        yield from process.threads
