"""Python functions whose code objects are freed while they are watched: a program defines them again, or drops them.

The new code object is often where a freed one was. Its breakpoint stays for a while: the writes there show from the
first one on what a function did that is found to be there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator

from .....converters.base.text import printable
from .....converters.base.units import duration, plural
from ....cpython.functions import Function
from .step_hits import Hit

_MOST_HITS = 1 << 14
"""Writes that are kept of a place until it is known what is there."""
_STRANGE = 64
"""Number of writes to a place that has no function after which its breakpoint only slows the program down."""
_MOST_TIMES = 1 << 10
"""Times of a function that are kept apart; more are told as a part of the last one."""
_Key = tuple[int, str, str]
"""Process, file and name: another definition may be in another line."""


class FreedPlace:
    """Place where a code object was. What is there now may be anything."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        """Writes to the object that is there since its first reference; empty if not all of them are known."""
        self._writes = 0

    def add(self, hit: Hit) -> None:
        """A write. Allocators write to free memory, too: what is no count of references that goes on begins anew."""
        self._writes += 1
        goes_on = self.hits and abs(hit.references - self.hits[-1].references) == 1 and hit.references
        if goes_on and len(self.hits) < _MOST_HITS:
            self.hits.append(hit)
        else:
            self.hits = [hit] if hit.references == 1 and not goes_on else []

    @property
    def is_strange(self) -> bool:
        """Whether something else than a function is there, if there is none."""
        return self._writes > _STRANGE


class Redefined:
    """Times in which functions had no definition that was watched. All in CLOCK_MONOTONIC ns."""

    def __init__(self) -> None:
        self._live: Counter[_Key] = Counter()
        self._since: dict[_Key, int] = {}
        """Time since which each function is not watched, if it is not."""
        self._freed: Counter[_Key] = Counter()
        self._times: dict[_Key, list[tuple[int, int]]] = {}

    def watched(self, pid: int, function: Function, since: int) -> bool:
        """A definition is watched since then; whether there were others before."""
        key = pid, function.file, function.name
        self._live[key] += 1
        if key in self._since:
            self._add(key, self._since.pop(key), since)
        return key in self._freed

    def freed(self, pid: int, function: Function, time: int) -> None:
        """A definition that was watched."""
        key = pid, function.file, function.name
        self._freed[key] += 1
        self._live[key] -= 1
        if self._live[key] <= 0:
            self._since[key] = time

    def is_missing(self, pid: int) -> bool:
        """Whether a process has functions that were watched, and are not now."""
        return any(key[0] == pid for key in self._since)

    def finish(self, end: int, is_there: Callable[[int], bool]) -> None:
        """The trace ended. A process that is not there any more has freed its functions because it ended."""
        for key, since in self._since.items():
            if is_there(key[0]):
                self._add(key, since, end)
        self._since = {}

    def _add(self, key: _Key, begin: int, end: int) -> None:
        times = self._times.setdefault(key, [])
        if end > begin and len(times) < _MOST_TIMES:
            times.append((begin, end))
        elif end > begin:
            times[-1] = times[-1][0], end

    def times(self, function: Function) -> Iterator[tuple[int, int, int]]:
        """Process, begin and end of the times in which a function was not watched."""
        for (pid, file, name), times in self._times.items():
            if (file, name) == (function.file, function.name):
                yield from ((pid, begin, end) for begin, end in times)

    def remarks(self) -> Iterator[str]:
        """Sentences that the reader should know."""
        for key, times in self._times.items():
            pid, file, name = key
            if total := sum(end - begin for begin, end in times):
                freed = f"was defined again, or dropped, {plural(self._freed[key], 'time')}"
                what = f"{printable(os.path.basename(file))}:{printable(name)} of process {pid}"
                yield f"{what} {freed}; it was not watched for {duration(total)}: calls in that time are no steps"
