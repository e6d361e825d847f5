"""Keeps a trace within its bounds: drains the kernel's tables, and folds what is rare when memory runs short."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import numpy as np

from ...base.memory import own_memory, trim
from ...kernel.records import RecordSink
from .interpreters import Interpreters
from .measures.totals import Totals, Words, fold_all
from .probes import Probes

_OURS = 96 << 20
"""Memory that a trace takes without stacks and rows: the interpreter, numpy, files, processes."""
_SHARE = 4
"""One in so much of the memory is for stacks and rows: they are copied when they are added up, and when they leave."""
_MEANWHILE = 0.01
"""Seconds between two looks at the ring buffer."""
_FEWEST_ROWS = 1 << 12
_FINISHED_ROW, _FINISHED_FRAME = 1100, 22
"""Bytes that a row, and each frame of its stack, take while names are found and outputs are written."""
_ACCOUNT = 1200
"""Bytes that a thread's account takes while names are found and outputs are written."""
_LAST_SWITCH = 0.5
"""Maximum seconds of waiting for exiting threads, after the traced processes have ended."""


class Bounds:
    """The bounds of one trace."""

    def __init__(self, engine: Probes, sink: RecordSink, functions: Interpreters | None = None) -> None:
        """``functions``: those of Python."""
        self._engine, self._sink, self._functions = engine, sink, functions
        options = engine.options
        self._collectors = [collector for collector in options.collectors if collector.entries]
        self._entries = options.table_entries
        self._taken = dict.fromkeys((collector.entries for collector in self._collectors), 0)
        self._known = 0
        self.made_in: Callable[[], set[int]] = set
        """Gives the stacks in which threads were created whose accounts are added up."""
        self._most_bytes = max(options.memory - _OURS, 0) // _SHARE

    def poll(self, counters: Mapping[str, int]) -> None:
        """Drains what fills up. ``counters``: those of the probes, just read."""
        for collector in self._collectors:
            if counters[collector.entries] - self._taken[collector.entries] >= self._entries // 4:
                self._taken[collector.entries] = counters[collector.entries]
                self.patiently(collector.drain)
        if counters["new_stacks"] - self._known >= self._entries // 2:
            self._known = counters["new_stacks"]
            self._engine.send_stacks_again()
        if self._bytes > self._most_bytes:
            self._forget()
            self._known = self._engine.counters()["new_stacks"]
        if self._functions and self._functions.is_full:
            self._functions.keep(self._sink.stacks.words())

    @property
    def _totals(self) -> list[Totals]:
        return [totals for collector in self._collectors if (totals := collector.totals())]

    @property
    def _bytes(self) -> int:
        held = sum(collector.held() for collector in self._engine.options.collectors)
        return self._sink.stacks.bytes + held + sum(totals.bytes for totals in self._totals)

    def _forget(self) -> None:
        """Folds the rarer half of the rows, and forgets the stacks to which nothing refers any more."""
        engine, stacks = self._engine, self._sink.stacks
        engine.consume()
        with stacks.sorting():
            # A stack that is taken from here on comes once more.
            engine.forget_stacks()
            self.drain()  # which waits for programs that began before
            living = [record.thread for record in engine.living()]
            # What a thread has added since then is in a table.
            self.drain()
            held = {stack for thread in living for key in (thread.key, thread.sum_key) for stack in key[:2]}
            held |= {thread.made_in for thread in living} | self._sink.ended.made_in() | self.made_in()
            rows = sum(map(len, self._totals))
            while True:
                rows //= 2
                fold_all(self._totals, rows)
                engine.consume()
                stacks.keep(self._in_use(held))
                engine.consume()
                if self._bytes * 2 <= self._most_bytes or rows < _FEWEST_ROWS:
                    break
        trim()

    def drain(self) -> None:
        """Takes out what the tables hold, of all programs that began before."""
        for collector in self._collectors:
            self.patiently(collector.drain)

    def patiently(self, work: Callable[[], None]) -> None:
        """Does ``work``, which may wait for a busy kernel for long; the ring buffer is read meanwhile."""
        failures: list[BaseException] = []

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        worker = threading.Thread(target=guarded)
        worker.start()
        while worker.is_alive():
            self._engine.consume()
            worker.join(_MEANWHILE)
        if failures:
            raise failures[0]

    def _in_use(self, held: set[int]) -> Words:
        more = [np.asarray(collector.stacks(), np.uint64) for collector in self._engine.options.collectors]
        ids = [totals.stacks() for totals in self._totals]
        return np.concatenate([np.array(sorted(held), np.uint64), *ids, *more])

    def finish(self, accounts: int) -> None:
        """Folds the rows that names cannot be found for within the memory, beside so many threads' accounts. After the
        measures were read."""
        self._fold(self._room - self._fixed(accounts))

    def finish_beside(self, accounts: int, taken: int) -> None:
        """Folds as `finish` does in a process of its own, beside the trace and others that take so many bytes."""
        self._fold(self._room_beside - self._fixed(accounts) - taken)

    def size_beside(self, accounts: int, taken: int) -> int:
        """Bytes that a process takes which calls `finish_beside`."""
        trim()
        fixed, rows = self._fixed(accounts), sum(map(len, self._totals)) * self._row
        return own_memory() + fixed + max(min(rows, self._room_beside - fixed - taken), 0)

    def _fixed(self, accounts: int) -> int:
        """Bytes for what stays whatever is folded: the accounts, and a row per thread and state."""
        return accounts * _ACCOUNT + sum(totals.folded() for totals in self._totals) * _FINISHED_ROW

    def _fold(self, room: int) -> None:
        fold_all(self._totals, max(room // self._row, _FEWEST_ROWS))

    @property
    def _room(self) -> int:
        """Bytes left for what follows."""
        return self._engine.options.memory - _OURS - self._bytes

    @property
    def _room_beside(self) -> int:
        """Room in a process beside the trace. It begins with all memory of the trace, until one of them writes to
        it, and then each has its own; the trace takes more meanwhile."""
        return self._engine.options.memory - 2 * own_memory() - self._most_bytes

    @property
    def _row(self) -> int:
        stacks = self._sink.stacks
        return _FINISHED_ROW + _FINISHED_FRAME * stacks.frames // max(len(stacks), 1)


def await_last_switches(engine: Probes, sink: RecordSink) -> None:
    """Waits for threads that exit: the kernel reports a process's end before its last thread is switched out, which
    completes its account."""
    until = time.monotonic() + _LAST_SWITCH
    engine.consume()
    while sink.exiting and time.monotonic() < until:
        time.sleep(_LAST_SWITCH / 100)
        engine.consume()
