"""Output of a scan that goes on: a line for each interval, and captures of those that are worth keeping."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ...converters.scan import folder
from ...converters.scan.conditions.parser import parse
from ...converters.scan.folder import is_page
from ..base.progress import forget_line
from .keeping import Bounds, Memory, State, keep
from .results import at, check_names
from .scan_results import ScanResults
from .wider import chosen as chosen_processes

if TYPE_CHECKING:
    from ...converters.model import Profile
    from ...converters.model.next_step import NextStep, Whom
    from ...converters.scan.conditions.expression import Condition
    from ...converters.scan.conditions.holding import Holding
    from ...converters.scan.report import Report
    from ...converters.scan.watch.line import Interval

NAME = "scan-%Y%m%d-%H%M%S.d"
"""Name of what --when keeps, if the user gives none."""


_NEEDED = (
    "...converters.scan.report",
    "...converters.scan.watch.line",
    "...converters.scan.conditions.holding",
    "...converters.scan.live.message",
    "networkx",
    "json",
)
_FOR_CAPTURES = ("...converters.scan.page.page", "...converters.pprof.encoder", "...converters.pprof.schema")


@dataclass(frozen=True)
class WatchResults(ScanResults):
    """Destinations of the results of a scan that goes on. ``paths``, ``folders`` and ``pages`` have a time in them."""

    writers: ClassVar[int] = 1
    has_timelines: ClassVar[bool] = True

    condition: Condition | None = None
    """Condition of --when; None: every interval is kept."""
    pause: int = 0
    """Minimum time in ns between two intervals that are kept because of it."""
    bounds: Bounds = field(default_factory=lambda: Bounds(1, 1))
    memory: Memory | None = None
    """Knowledge of earlier intervals."""
    is_whole_host: bool = False
    whom: Whom | None = None
    """The user's choice of processes."""
    screen: int = -1
    """Descriptor to which intervals go for a screen that another process shows; -1: they are printed."""
    tracer: int = field(default_factory=os.getpid)
    """Process that traces; others write its intervals."""

    @classmethod
    def plan(cls, stem: str, given: Mapping[str, Any]) -> WatchResults:
        every = given["every"]
        names = given["outputs"] or ((NAME,) if given["when"] else ())
        if names:
            check_names(names, every, "--watch")
        super().plan(stem, {**given, "outputs": at(names, time.time()), "every": None})
        planned = super().plan(stem, {**given, "outputs": (), "every": None})
        folders = tuple(path for path in names if folder.is_folder(path))
        pages = tuple(path for path in names if is_page(path))
        made = {
            **vars(planned),
            "paths": tuple(path for path in names if path not in (*folders, *pages)),
            "folders": folders,
            "pages": pages,
            "every": every,
            "memory": Memory(),
            "condition": parse(given["when"]) if given["when"] else None,
            "pause": round(given["pause"] * 1e9),
            "bounds": Bounds(given["keep"], given["keep_bytes"]),
            "is_whole_host": bool(given["everything"]),
            "whom": chosen_processes(given),
            "screen": given.get("screen", -1),
        }
        return cls(**made)

    @property
    def uses_stdout(self) -> bool:
        """Whether standard output is for data: lines that a program may read."""
        return True

    def prepare(self) -> None:
        """Imports what each interval needs: that takes longer than to judge it."""
        for name in (*_NEEDED, *(_FOR_CAPTURES if self.folders or self.pages or self.paths else ())):
            import_module(name, __package__)

    def publish(self, profile: Profile) -> None:
        """Keeps an interval if that is asked for, and prints its line. StallscopeError like `write`."""
        interval, error = self._interval(profile)
        self._send(interval) if self.screen >= 0 else self._print(interval)
        if error:
            raise error

    def write(
        self,
        profile: Profile,
        details: Iterable[str] = (),
        step: NextStep | None = None,
        chosen: Whom | None = None,
        written: Profile | None = None,
    ) -> None:
        """Does as `publish` for the last interval, which is shown by its line in any case."""
        interval, error = self._interval(profile)
        if self.screen >= 0:
            self._send(interval)
        self._print(interval)
        for line in details if self.verbose else ():
            print(printable(line), file=sys.stderr)
        if error:
            raise error

    def _interval(self, profile: Profile) -> tuple[Interval, StallscopeError | None]:
        """The interval, after it was kept; and why it could not be."""
        from ...converters.facts.identity import kernel_id
        from ...converters.scan.watch.line import Interval

        assert self.memory is not None, "it was planned"
        state = self.memory.load()
        pids = {times.pid for times in profile.threads}
        report = self._report(profile, None, self.whom, state.worked if self.is_whole_host else pids)
        at_work = {kernel_id(pid) for pid in report.facts.at_work}
        state.worked = sorted(pids.intersection({*state.worked, *at_work}))
        interval = replace(Interval.of(profile, report), holding=tuple(self._holding(report, state)))
        error = None
        try:
            if self._is_kept(state, interval.holding, profile.start_ns):
                paths = at((*self.folders, *self.pages, *self.paths), profile.start_ns / 1e9)
                kept, notes = keep(state, self.bounds, paths, partial(self._write, profile, report, paths))
                interval = replace(interval, kept=kept, notes=notes)
        except StallscopeError as raised:
            interval, error = replace(interval, notes=(f"not kept: {raised.cause}",)), raised
        finally:
            self.memory.store(state)
        return interval, error

    def _holding(self, report: Report, state: State) -> list[Holding]:
        if not self.condition:
            return []
        from ...converters.scan.conditions.holding import holding

        pids = state.worked if self.is_whole_host else None
        jobs = [each.states for each in report.jobs.reports]
        return holding(self.condition, report.facts, report.processes, pids, jobs)

    def _is_kept(self, state: State, holding: Sequence[Holding], began: int) -> bool:
        """Whether the interval that began then is kept. The state gets to know it."""
        if not (self.folders or self.pages or self.paths):
            return False
        if not self.condition:
            return True
        pids = {each.pid for each in holding}
        told = pids.intersection(state.told)
        is_due = not state.captured or began - state.captured >= self.pause
        is_new = bool(pids - told)
        if is_new and is_due:
            state.captured, told = began, pids
        state.told = sorted(told)
        return is_new and is_due

    def _write(self, profile: Profile, report: Report, paths: Sequence[str]) -> None:
        """Writes the capture. The paths are those of the folders, the pages and the other files, in this order."""
        folders = paths[: len(self.folders)]
        pages = paths[len(self.folders) : len(self.folders) + len(self.pages)]
        for _ in self._write_report(profile, report, folders, pages):
            pass
        others = replace(self, paths=tuple(paths[len(folders) + len(pages) :]), every=None)
        if others.paths:
            others._write_files(profile, io.StringIO())

    def _print(self, interval: Interval) -> None:
        import json

        stream = sys.stdout or io.StringIO()
        text = json.dumps(interval.to_json()) if self.as_json else interval.text()
        try:
            forget_line(stream)
            print(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding), file=stream, flush=True)
        except BrokenPipeError:
            self._end_trace()
            raise
        except OSError as error:
            raise StallscopeError(f"cannot write to standard output: {error.strerror}", "see where it leads") from None

    def _send(self, interval: Interval) -> None:
        import json

        from ...converters.scan.live.message import message_of

        data = json.dumps(message_of(interval)).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self.screen, data) :]
        except BrokenPipeError:
            self._end_trace()

    def _end_trace(self) -> None:
        """Ends the trace, whose results nobody reads any more. SystemExit in another process than the tracer."""
        if os.getpid() != self.tracer:
            os.kill(self.tracer, signal.SIGTERM)
            raise SystemExit(1)
