"""Adds up the accounts of threads that ended, beyond a limit: a storm of short threads or processes must not fill the
memory.

Threads of a process that lives are added up by name; those of processes that ended, by the names of process and thread.
Their rows are put together, too: of processes with the same mappings with their stacks, else without, once there are
many different ones of one name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....converters.model.processes import OTHER_NAMES
from ...base import procfs
from ...base.conditions import Conditions
from ...kernel.records import STATES, ExecRecord, Origin, RecordSink, Thread, ThreadRecord, WaitSum
from ...measures.offcpu import FOREVER
from ...symbols.one import Process
from ...symbols.process import NO_PID, ProcessSpaces
from .measures.protocol import Collector
from .measures.totals import Moved

LIMIT = 1 << 12
"""Threads that ended whose accounts are kept one by one."""
_MORE = 1 << 10
"""Number of threads that have to end before the next attempt."""
_LIVES = 1 << 31
"""The lives of sums begin here; those of the probes' threads count up from 1."""
_SPACES = 64
"""Number of different address spaces of processes of one name that keep their stacks."""
_NAMES = 1 << 10
"""Number of sums with names of their own."""
_PLACES = 16
"""Number of places where the threads of one name were created that are apart. Of processes that ended, they may be the
same place at other addresses."""
_GONE = 3
"""PHASE_GONE of bpf/include/records.h."""
_NO_WAITS = WaitSum(*[0] * 7)


class _Name(NamedTuple):
    """Name of what is added up: threads of a process that lives (by its number), or of all that ended and have this
    name, that were created in one place."""

    number: int
    process: str
    main: bool
    thread: bytes
    made_in: int = 0
    """See `Thread`."""


@dataclass(slots=True)
class _Sum:
    """Accounts of one name. Times in ns."""

    name: _Name
    life: int
    number: int
    """Number of the process that stands for theirs."""
    threads: int = 0
    wall: int = 0
    creator: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    blocked: Counter[int] = field(default_factory=Counter)
    latencies: Counter[int] = field(default_factory=Counter)
    lives: dict[int, int] = field(default_factory=dict)
    """Lives by the epoch in which rows have them."""
    times: dict[int, int] = field(default_factory=dict)
    """A time in each of these epochs."""

    def add(self, records: NDArray[Any]) -> None:
        """Adds accounts, with fields as in `kernel.ended.record_type`."""
        self.threads += len(records)
        self.wall += int((records["end"] - records["start"]).sum())
        for name in ("on_cpu", "runnable", "switches"):
            self.counts[name] += int(records[name].sum())
        for name, sums in (("blocked", self.blocked), ("latencies", self.latencies)):
            sums.update(dict(enumerate(records[name].sum(axis=0, dtype=np.uint64).tolist())))
        new = records["creator"][records["start"] != records["cut"]]  # others were created in an earlier interval
        self.creator = (int(new[-1]) if len(new) else 0) or self.creator

    def join(self, other: _Sum) -> None:
        self.threads += other.threads
        self.wall += other.wall
        self.creator = other.creator or self.creator
        for ours, theirs in ((self.counts, other.counts), (self.blocked, other.blocked)):
            ours.update(theirs)  # type: ignore[arg-type]
        self.latencies.update(other.latencies)

    def record(self) -> ThreadRecord:
        key = Origin(0, 0, 0, 0, self.number, self.life, 0)
        blocked = tuple(self.blocked[i] for i in range(len(STATES)))
        latencies = tuple(self.latencies[i] for i in range(max(self.latencies, default=-1) + 1))
        thread = Thread(
            0, 0, 0, 0, self.counts["on_cpu"], self.counts["runnable"], blocked, self.counts["switches"], latencies,
            key, key, _NO_WAITS, _GONE, self.creator, first=self.life, made_in=self.name.made_in,
        )  # fmt: skip
        return ThreadRecord(self.wall, self.name.thread, thread, exited=True, number=self.threads, main=self.name.main)


class Folding:
    """The sums of a trace, or of an interval of one."""

    def __init__(
        self, collectors: Iterable[Collector], sink: RecordSink, spaces: ProcessSpaces, conditions: Conditions
    ) -> None:
        self._collectors = [collector for collector in collectors if collector.entries]
        # A timeline shows each thread.
        self._limit = LIMIT if all(collector.entries for collector in collectors) else None
        self._sink, self._spaces, self._conditions = sink, spaces, conditions
        self._sums: dict[_Name, _Sum] = {}
        self._places: Counter[_Name] = Counter()
        """Number of the sums that differ in nothing but the place where their threads were created."""
        self._processes: dict[str, int] = {}
        """Number of the process that stands for those that ended, by their name."""
        self._known: dict[str, dict[object, int]] = defaultdict(dict)
        """Epochs of that process by what is mapped, by the processes' name."""
        self._leaving: set[int] = set()
        self._next_life = _LIVES
        self._next_try = 0
        self._ended: dict[int, bool] = {}
        self.began = 0
        """Beginning of the trace, CLOCK_MONOTONIC ns."""

    def poll(self, drain: Callable[[], None], ours: set[int], before: int) -> None:
        """Adds up what is beyond the limit, of threads that ended before ``before``. ``drain``: takes in the rows of
        all threads that have ended. ``ours``: processes whose accounts are of no use."""
        count = len(self._sink.ended)
        # An earlier attempt may have found next to nothing, because processes were not known yet.
        next_try = self._next_try if before < FOREVER else 0
        if self._limit is None or count < max(self._limit, next_try):
            return
        records = self._sink.ended.take_shortest(self._limit // 2, before)
        self._next_try = len(self._sink.ended) + _MORE
        if len(records):
            drain()
            self._fold(records, ours)

    def records(self) -> list[ThreadRecord]:
        """The sums as threads whose id is 0."""
        return [each.record() for each in self._sums.values()]

    def made_in(self) -> set[int]:
        """Ids of the stacks in which their threads were created."""
        return {name.made_in for name in self._sums if name.made_in}

    def row_lives(self) -> dict[int, int]:
        """A life of each sum's rows, of the last epoch, by the sum's first life."""
        return {each.life: each.lives[max(each.lives)] for each in self._sums.values() if each.lives}

    def lives(self) -> list[ExecRecord]:
        """The lives of their rows."""
        return [
            ExecRecord(each.number, 0, each.times[epoch], life, each.life)
            for each in self._sums.values()
            for epoch, life in each.lives.items()
        ]

    def reset(self) -> None:
        """The next interval begins."""
        for number in self._processes.values():
            self._spaces.drop(number)
        self._conditions.forget(self._processes.values())
        self._sums, self._processes, self._known = {}, {}, defaultdict(dict)
        self._places.clear()

    def _fold(self, records: NDArray[Any], ours: set[int]) -> None:
        self._ended = {}
        moves: dict[int, tuple[int, int, bool]] = {}
        self._fold_sums(moves)
        keys = records["key"]
        # A main thread's name is its process's name, also for the other threads.
        main = keys["tid"] == keys["tgid"]
        order = np.argsort(~main, kind="stable")
        order = order[~np.isin(keys["tgid"][order], list(ours))]
        earlier = self._take_execs({int(first) for first in records["first"][order]})
        members: defaultdict[_Name, list[int]] = defaultdict(list)
        given = (records[name] for name in ("lived", "first", "made_in"))
        columns = (main, records["comm"], keys["tgid"], keys["life"], *given)
        for i, is_main, comm, tgid, life, lived, first, made_in in zip(
            order.tolist(), *(column[order].tolist() for column in columns), strict=True
        ):
            number = self._spaces.number(tgid, lived)
            name = self._name(number, comm.split(b"\0")[0], main=is_main, made_in=made_in)
            into = self._sum(name)
            members[into.name].append(i)
            for one, when in ((life, lived), *earlier.get(first, ())):
                moves[one] = self._move(into, number, when)
            self._leaving.add(number)
        for name, indices in members.items():
            self._sums[name].add(records[indices])
            times = np.stack([records["start"][indices], records["end"][indices]], axis=1)
            for collector in self._collectors:
                collector.added_up(self._sums[name].life, times, self.began)
        moved = Moved.of(moves)
        for collector in self._collectors:
            collector.move(moved)
        self._forget()

    def _fold_sums(self, moves: dict[int, tuple[int, int, bool]]) -> None:
        """Folds the sums of processes that have ended by now into those of their names."""
        for name, old in list(self._sums.items()):
            if name.number and self._has_ended(name.number, main=name.main):
                del self._sums[name]
                self._places[name._replace(made_in=0)] -= 1
                into = self._sum(self._name(name.number, name.thread, main=name.main, made_in=name.made_in))
                into.join(old)
                for collector in self._collectors:
                    collector.joined(old.life, into.life)
                for epoch, life in old.lives.items():
                    moves[life] = self._move(into, name.number, old.times[epoch])

    def _take_execs(self, firsts: set[int]) -> Mapping[int, list[tuple[int, int]]]:
        """The earlier lives of these threads, and when each began."""
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        left = []
        for record in self._sink.execs:
            if record.first in firsts:
                found[record.first].append((record.life, record.lived))
            else:
                left.append(record)
        self._sink.execs = left
        return found

    def _has_ended(self, number: int, *, main: bool) -> bool:
        """``main``: its main thread has ended, or was replaced by one that executed a program."""
        if number not in self._ended:
            process = self._spaces.processes.get(number)
            gone = process is None or process.exited
            self._ended[number] = gone or (main and procfs.state(number) in ("", "Z", "X"))
        return self._ended[number]

    def _name(self, number: int, comm: bytes, *, main: bool, made_in: int = 0) -> _Name:
        if not self._has_ended(number, main=main):
            return self._placed(_Name(number, "", main, comm, made_in))
        process = self._spaces.processes.get(number)
        if process and main and comm:
            process.comm = _text(comm)
        return self._placed(_Name(0, process.comm if process else _text(comm) if main else "", main, comm, made_in))

    def _placed(self, name: _Name) -> _Name:
        """The name, without the place where its threads were created if it has too many of them."""
        full = name.made_in and name not in self._sums and self._places[name._replace(made_in=0)] >= _PLACES
        return name._replace(made_in=0) if full else name

    def _sum(self, name: _Name) -> _Sum:
        if name not in self._sums and len(self._sums) >= _NAMES:
            name = _Name(name.number, "" if name.number else OTHER_NAMES, name.main, OTHER_NAMES.encode())
        found = self._sums.get(name)
        if found is None:
            self._next_life += 1
            number = name.number or self._stand_in(name.process)
            found = self._sums[name] = _Sum(name, self._next_life, number)
            self._places[name._replace(made_in=0)] += 1
        return found

    def _stand_in(self, name: str) -> int:
        """The number of a process that stands for those of this name that ended."""
        if name not in self._processes:
            # The second "life" of pid 0 is the first sum: pid 0 alone stands for what was lost.
            process = Process(0, 0, comm=name, exited=True, epochs=[], life=len(self._processes) + 2)
            self._processes[name] = self._spaces.add(process)
        return self._processes[name]

    def _move(self, into: _Sum, number: int, when: int) -> tuple[int, int, bool]:
        """Destination of the rows of a life: their ids, their life, and whether they lose their stacks."""
        if into.name.number:
            epoch, time = self._spaces.epoch(number, when), when
        else:
            epoch = time = self._epoch(into, number, when)
        if epoch < 0:
            return into.number << 32, into.life, True
        if epoch not in into.lives:
            into.times[epoch] = time
            self._next_life += 1
            into.lives[epoch] = self._next_life
        return into.number << 32, into.lives[epoch], False

    def _epoch(self, into: _Sum, number: int, when: int) -> int:
        """The epoch of a stand-in that has the same mappings as a process had; -1: it has too many."""
        process = self._spaces.processes.get(number)
        space = self._spaces.space(number, self._spaces.epoch(number, when))
        if process is None or space is None:
            return -1
        stand_in, known = self._spaces.processes[into.number], self._known[into.name.process]
        mapped = tuple(space)
        if mapped not in known and len(known) < _SPACES:
            known[mapped] = len(stand_in.epochs)
            if not stand_in.epochs:
                stand_in.perf_map, stand_in.root = process.perf_map, process.root
                self._conditions.copy(number, into.number)
            else:
                stand_in.execs.append(len(stand_in.epochs))
            stand_in.epochs.append(space.copy())
        return known.get(mapped, -1)

    def _forget(self) -> None:
        """Forgets the processes all of whose threads are in sums."""
        needed = {self._spaces.number(tgid, lived) for tgid, lived in self._sink.ended.processes()}
        needed |= {name.number for name in self._sums}
        left = {
            number
            for number in self._leaving - needed
            if self._has_ended(number, main=False) and (number >= NO_PID or not procfs.state(number))
        }
        for number in left:
            self._spaces.drop(number)
        self._spaces.close_unused()
        self._conditions.forget(left)
        self._leaving -= left


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
