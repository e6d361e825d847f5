"""Reads what perf script prints, while the trace runs and when it has ended."""

from __future__ import annotations

import os
import select
import time

from ....converters.base.errors import StallscopeError
from ...base.conditions import Conditions
from ...base.interrupts import Interrupts
from ...base.progress import Progress
from ..ends import Ends
from .delays import Looks
from .recording import Recording
from .records import BAD, DROPPED, EXEC, FORK, Record, Records
from .threads import Threads

_READ = 1 << 18
_POLL = 0.1
_SILENCE = 60.0
"""Seconds in which perf script has to print something: it reads a large file's symbols in a few."""


class Reading:
    """Reads what perf script prints."""

    def __init__(self, recording: Recording, threads: Threads, progress: Progress, only: frozenset[int] | None) -> None:
        self.records = Records()
        self.conditions = Conditions()
        self.threads = threads
        self._recording, self._progress, self._only = recording, progress, only
        self._goes_on = True
        self._looks = Looks()

    @property
    def is_over(self) -> bool:
        """Whether the text has ended."""
        return not self._goes_on

    def follow(self, ends: Ends, interrupts: Interrupts, duration: float | None) -> None:
        """Until the trace is to end."""
        until = time.monotonic() + duration if duration is not None else None
        while self._goes_on and not interrupts.requested and not ends.reached():
            left = _POLL if until is None else min(_POLL, until - time.monotonic())
            if left <= 0:
                break
            ends.wait(interrupts.wakeup, left, [self._recording.text])
            if select.select([self._recording.text], [], [], 0)[0]:
                self._read()
            self.conditions.poll()
            if self._looks.is_due:
                self.look()
            self._progress.update(
                threads=len(self.threads.names), stacks=len(self.records.stacks), lost=self.threads.lost["intervals"]
            )

    def look(self, now: int | None = None) -> None:
        """Reads how long the threads have waited for a core; ``now``: ns, if it is to count for another moment."""
        for when, counted in self._looks.look(self.threads.living(), now):
            self.threads.look(when, counted)

    def drain(self) -> None:
        """What is left, until perf script ends. StallscopeError if nothing comes for a long time."""
        last = time.monotonic()
        while self._goes_on:
            self._progress.show("reading stacks")
            if select.select([self._recording.text], [], [], _POLL)[0]:
                self._read()
                last = time.monotonic()
            elif time.monotonic() > last + _SILENCE:
                raise StallscopeError(
                    f"perf script has printed nothing for {_SILENCE:g} s",
                    "trace for a shorter time",
                )

    def _read(self) -> None:
        data = os.read(self._recording.text, _READ)
        self._goes_on = bool(data)
        for record in self.records.feed(data):
            if self._is_wanted(record):
                self.threads.take(record)
                if record.kind in (EXEC, FORK) and record.pid == record.tid > 0:
                    self.conditions.look(record.pid)

    def _is_wanted(self, record: Record) -> bool:
        return self._only is None or record.pid in self._only or record.kind in (BAD, DROPPED)
