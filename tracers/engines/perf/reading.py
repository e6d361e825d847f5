"""Reads what perf script prints, while the trace runs and when it has ended."""

from __future__ import annotations

import os
import select
import time

from ...base.conditions import Conditions
from ...base.interrupts import Interrupts
from ...base.progress import Progress
from ..ends import Ends
from .delays import Looks
from .jit import JitNames
from .passed import Passed
from .recording import Recording
from .records import BAD, DROPPED, EXEC, EXIT, FORGED, FORK, Record, Records
from .threads import Threads

_READ = 1 << 18
_POLL = 0.1
_SILENCE = 60.0
"""Seconds in which perf script has to print something: it reads a large file's symbols in a few."""
_HELD = 10.0
"""Seconds of silence at each look while perf record waits in the kernel: nothing more comes."""
_SILENCE_AFTER, _MOST_AFTER = 1.5, 10.0
"""Seconds after Ctrl-C in which it has to print something, and for all that is left. A traced program's file can
make it wait without end, or work for a long time."""


class Reading:
    """Reads what perf script prints."""

    def __init__(self, recording: Recording, threads: Threads, progress: Progress, only: frozenset[int] | None) -> None:
        self.jit = JitNames()
        for pid in threads.pids():
            self.jit.begins(pid)
        self._passed = Passed()
        self.records = Records(self._passed.take, self.jit.frame)
        self.conditions = Conditions()
        self.threads = threads
        self._recording, self._progress, self._only = recording, progress, only
        self._goes_on = self._is_told = True
        """Whether more may come of the text, and of what went to perf script."""
        self._looks = Looks()

    @property
    def is_over(self) -> bool:
        """Whether the text has ended."""
        return not self._goes_on

    def follow(self, ends: Ends, interrupts: Interrupts, duration: float | None) -> None:
        """Follows the recording until the trace is to end."""
        until = time.monotonic() + duration if duration is not None else None
        while self._goes_on and not interrupts.requested and not ends.reached():
            left = _POLL if until is None else min(_POLL, until - time.monotonic())
            if left <= 0:
                break
            ends.wait(interrupts.wakeup, left, [self._recording.text])
            self._take(0)
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

    def drain(self, interrupts: Interrupts) -> str:
        """Reads what is left, until perf script ends. Returns why it was not waited for any longer; "" if it ended."""
        try:
            return self._drain(interrupts)
        finally:
            self.jit.close()

    def _drain(self, interrupts: Interrupts) -> str:
        last = answered = time.monotonic()
        asked = 0.0
        while self._goes_on:
            self._progress.show("reading stacks")
            if self._take(_POLL):
                last = time.monotonic()
            now = time.monotonic()
            if interrupts.requested and not asked:
                last = asked = now
            silence = _SILENCE_AFTER if asked else _SILENCE
            is_held = self._goes_on and self._recording.is_held
            answered = answered if is_held else now
            if is_held and now > max(answered, last) + min(silence, _HELD):
                return f"perf record was ended, since it did not end within {min(silence, _HELD):g} s"
            if self._goes_on and now > last + silence:
                return f"perf script was ended, since it printed nothing for {silence:g} s"
            if self._goes_on and asked and now > asked + _MOST_AFTER:
                return f"perf script was ended, since it had not printed all {_MOST_AFTER:g} s after the trace"
        return ""

    def _take(self, seconds: float) -> bool:
        """Reads what comes in this time; whether it is text. Notices wake nobody: their pipe has room for many."""
        is_text = bool(select.select([self._recording.text], [], [], seconds)[0])
        self._read_notices()
        if is_text:
            self._read()
        return is_text

    def _read_notices(self) -> None:
        """All that there are: what went to perf script was told before."""
        while self._is_told:
            try:
                data = os.read(self._recording.notices, _READ)
            except BlockingIOError:
                return
            self._is_told = bool(data)
            self._passed.feed(data)

    def _read(self) -> None:
        data = os.read(self._recording.text, _READ)
        self._read_notices()
        self._goes_on = bool(data)
        for record in self.records.feed(data):
            if self._is_wanted(record):
                self.threads.take(record)
                if record.kind in (EXEC, FORK) and record.pid == record.tid > 0:
                    self.conditions.look(record.pid)
                    self.jit.begins(record.pid)
                elif record.kind == EXIT and record.pid == record.tid:
                    self.jit.ends(record.pid)

    def _is_wanted(self, record: Record) -> bool:
        return self._only is None or record.pid in self._only or record.kind in (BAD, FORGED, DROPPED)
