"""Quantities of a process, measured: from the accounts of its threads and the waits that were classified."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from ...facts.facts import Facts
from ...facts.identity import kernel_id
from ...facts.wait_kinds import CORE, TOLD_BY_OTHERS
from ...facts.wait_sums import Thread
from ...model.wait_objects import NETWORK as SOCKETS
from ...rules.verdict import kind_of_wait
from . import words
from .expression import Quantity
from .places import PlaceInJob


class Figures:
    """Quantities of one process. Times in ns."""

    def __init__(
        self,
        facts: Facts,
        pid: int,
        threads: Iterable[Thread],
        share: float | None,
        place: PlaceInJob | None = None,
    ) -> None:
        """``pid``: as in ``facts``. ``threads``: of this process. ``share``: of its verdict; None: it has none.
        ``place``: in its job; None: it is no rank of one."""
        self._facts, self._pid, self._share, self._place = facts, pid, share, place
        self._threads = tuple(threads)
        self._is_at_work = pid in facts.at_work

    def of(self, quantity: Quantity) -> tuple[float, int] | None:
        """A quantity, and the whole that it is a part of (0: of none). None if it is not known, or no thread is
        meant."""
        if quantity.word in words.WHOLE:
            found = self._of_process(quantity.word)
            return None if found is None else (float(found), 0)
        threads = self._meant(quantity)
        if quantity.word == words.THREADS:
            return float(sum(self._facts.threads[each].count for each in threads)), 0
        return self._of_threads(quantity.word, threads) if threads else None

    def _of_process(self, word: str) -> float | None:
        if word == words.PID:
            return kernel_id(self._pid)
        if word == words.SHARE:
            return self._share
        of_rank = {words.RANK: "number", words.RANKS: "ranks", words.LATE: "late"}
        return getattr(self._place, of_rank[word], None)

    def _of_threads(self, word: str, threads: tuple[Thread, ...]) -> tuple[float, int] | None:
        if word == words.LONGEST:
            return float(max(map(self._longest, threads))), 0
        if word == words.WAITS:
            return self._per_second(threads)
        wall = self._facts.wall_of(threads)
        time = sum(map(self._measure(word), threads))
        if word == words.CORES:
            return (time / self._facts.duration, 0) if self._facts.duration else None
        return (float(time), wall) if wall else None

    def _meant(self, quantity: Quantity) -> tuple[Thread, ...]:
        if quantity.is_pattern:
            names = self._facts.threads
            return tuple(each for each in self._threads if fnmatchcase(names[each].thread, quantity.threads))
        if quantity.threads == words.PROCESS:
            return self._threads
        is_main = quantity.threads == words.MAIN
        return tuple(each for each in self._threads if (each[0] == each[1]) is is_main)

    def _measure(self, word: str) -> Callable[[Thread], int]:
        """Function that measures a time of a thread."""
        plain: Mapping[str, Callable[[Thread], int]] = {
            words.RUNNING: lambda each: self._facts.threads[each].on_cpu,
            words.CORES: lambda each: self._facts.threads[each].on_cpu,
            words.RUNNABLE: lambda each: self._facts.threads[each].runnable,
            words.BLOCKED: self._blocked,
            words.IDLE: self._idle,
            words.NETWORK: self._on_network,
        }
        if word in plain:
            return plain[word]
        kinds = words.BY_KIND[word]
        return lambda each: self._of_kinds(each, kinds)

    def _blocked(self, thread: Thread) -> int:
        return sum(self._facts.threads[thread].blocked.values()) - self._idle(thread)

    def _idle(self, thread: Thread) -> int:
        """Time in which it waited for work, not for something that holds it up."""
        blocked = sum(self._facts.threads[thread].blocked.values())
        if self._facts.is_idle(thread):
            return blocked
        if self._is_at_work:
            return 0
        places = self._facts.waits_of(thread).items()
        return min(blocked, sum(total.time for place, total in places if place.kind in TOLD_BY_OTHERS))

    def _of_kinds(self, thread: Thread, kinds: frozenset[str]) -> int:
        if not self._is_at_work and kinds & TOLD_BY_OTHERS and self._idle(thread):
            return 0
        places = self._facts.waits_of(thread).items()
        return sum(total.time for place, total in places if kind_of_wait(place) in kinds)

    def _on_network(self, thread: Thread) -> int:
        objects = self._facts.objects
        return sum(
            time
            for place, total in self._facts.waits_of(thread).items()
            if place.kind != CORE
            for number, time in (total.objects or {}).items()
            if number in objects and objects[number].kind in SOCKETS
        )

    def _longest(self, thread: Thread) -> int:
        places = self._facts.waits_of(thread).items()
        if self._facts.is_idle(thread):
            return 0
        counts = (
            total.max
            for place, total in places
            if place.kind != CORE and (self._is_at_work or place.kind not in TOLD_BY_OTHERS)
        )
        return max(counts, default=0)

    def _per_second(self, threads: Iterable[Thread]) -> tuple[float, int] | None:
        if not self._facts.duration:
            return None
        sums = ((place, total) for each in threads for place, total in self._facts.waits_of(each).items())
        return sum(total.count for place, total in sums if place.kind != CORE) * 1e9 / self._facts.duration, 0
