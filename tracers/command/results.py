"""Output of a profile: the summary as text or JSON, then the files."""

from __future__ import annotations

import io
import itertools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from ...converters import graph_options
from ...converters.base.collection import no_collection
from ...converters.base.errors import StallscopeError
from ...converters.base.rights import sudo_owner
from ...converters.base.safefile import PRIVATE
from ...converters.base.text import printable
from ...converters.base.units import plural
from ...converters.writers import output
from ...converters.writers.base.options import WriteOptions
from ..base.progress import MANY, Progress, forget_line
from .call_options import make_view
from .wider import is_repeated

if TYPE_CHECKING:
    from ...converters.model import Profile
    from ...converters.model.display import CallsView
    from ...converters.model.next_step import NextStep, Whom


@dataclass(frozen=True)
class Results:
    """Destinations of the results. Check before the trace, write after it."""

    paths: tuple[str, ...]
    force: bool
    per_thread: bool
    as_json: bool
    merge: bool = False
    verbose: bool = False
    mode: int = PRIVATE
    """Mode of the files."""
    every: float | None = None
    """Seconds of an interval; the paths then have its time in them, as strftime(3) takes it."""
    view: CallsView | None = None
    """View of the table of calls, for a command that has one; else None."""
    graph: Mapping[str, Any] = field(default_factory=dict)
    """Values of `graph_options`."""
    is_repeated: Callable[[NextStep], bool] = lambda _: False
    """Whether a command is the one that was just run: that is not recommended."""
    fit: Callable[[NextStep], NextStep | None] = lambda step: step
    """Makes a recommended command one that can be run; None: there is none."""
    writers: ClassVar[int] = 2
    """Number of processes, at most, that publish intervals at a time."""
    has_timelines: ClassVar[bool] = False
    """Whether the results of intervals can have a timeline."""

    @classmethod
    def usual(cls, stem: str) -> tuple[str, ...]:
        """The paths that are written if the user names none."""
        return (str(output.default_path(stem)),)

    @classmethod
    def plan(cls, stem: str, given: Mapping[str, Any]) -> Results:
        """Results from the values of `options.output_options`. StallscopeError when an output could not be written:
        better now than after the trace."""
        paths, every = given["outputs"] or cls.usual(stem), given.get("every")
        if every and not given["outputs"] and "sort" in given:
            paths = ()  # the table of each interval is printed
        elif every:
            check_names(given["outputs"], every)
        output.check(at(paths, time.time()) if every else paths, force=given["force"])
        graph_options.check(given)
        force, per_thread, as_json = given["force"], given["per_thread"], given["as_json"]
        graph = {name: given[name] for name in ("graph", "by", "idle") if name in given}
        view, repeated = make_view(given), partial(is_repeated, given=given, stem=stem)
        verbose, mode = given["verbose"], given["mode"]
        return cls(paths, force, per_thread, as_json, given["merge"], verbose, mode, every, view, graph, repeated)

    @property
    def uses_stdout(self) -> bool:
        """Whether standard output is for data that a program reads."""
        return self.as_json or any(map(output.is_stdout, self.paths))

    @property
    def _shows_idle(self) -> bool:
        return bool(self.graph.get("idle"))

    def prepare(self) -> None:
        """Imports what each interval needs."""

    def publish(self, profile: Profile) -> None:
        """Writes the files of an interval that is not the last one, and says so; without files, prints its table.
        StallscopeError like `write`."""
        stream = sys.stdout or io.StringIO()
        if self.paths:
            self._write_files(profile, stream)
        else:
            self._print_interval(profile, stream)

    def _print_interval(self, profile: Profile, stream: TextIO) -> None:
        from ...converters.summary.render import render_interval
        from ...converters.summary.summarize import summarize

        summary = summarize(profile)
        if self.view:
            summary = replace(summary, view=self.view)
        if self.as_json:
            import json

            print(json.dumps(summary.to_json()), file=stream)
        else:
            forget_line(stream)
            render_interval(summary, stream)
        stream.flush()

    @no_collection()
    def write(
        self,
        profile: Profile,
        details: Iterable[str] = (),
        step: NextStep | None = None,
        chosen: Whom | None = None,
        written: Profile | None = None,
    ) -> None:
        """Prints the summary (on standard error when folded text goes to standard output), then writes every file. With
        -v also prints the ``details``. ``step`` replaces the command that the summary recommends; ``chosen`` is what
        that traces. ``written``: what the files show instead."""
        # Standard output may be closed (>&-): the files are still written.
        stream: TextIO = sys.stderr if any(map(output.is_stdout, self.paths)) else sys.stdout or io.StringIO()
        try:
            self._print_summary(profile, stream, step, chosen)
        finally:  # the summary may not be read to its end: the files are still written
            self._write_files(written or profile, stream)
        for line in details if self.verbose else ():
            print(printable(line), file=sys.stderr)

    def _write_files(self, profile: Profile, stream: TextIO) -> None:
        by, idle = self.graph.get("by", ""), self._shows_idle
        options = WriteOptions(per_thread=self.per_thread, by=by, idle=idle, mode=self.mode)
        graphed = profile
        if self.merge:
            from ...converters.transforms import merge_processes

            profile = replace(merge_processes(profile), answered=profile)
        paths = at(self.paths, profile.start_ns / 1e9) if self.every else self.paths
        if self.every:
            _refuse_pipes(paths)
        number = len(paths)
        paths += (self.graph["graph"],) if self.graph.get("graph") else ()
        before = {path: _identity(path) for path in paths}
        progress = Progress()

        def shown() -> Iterator[str]:
            for path in paths[:number]:
                if len(profile.samples) >= MANY and not output.is_stdout(path):
                    progress.restart()
                    progress.show(f"writing {printable(path)}")
                yield path

        try:
            also = graph_options.writing(graphed, options, {**self.graph, "force": self.force})
            writing = output.writing(profile, shown(), options, force=self.force, owner=sudo_owner())
            output.put_all(itertools.chain(writing, also))
        finally:
            progress.clear()
            listing = sys.stderr if self.as_json else stream
            for path in paths:
                if not output.is_stdout(path) and _identity(path) not in (None, before[path]):
                    print(f"wrote {printable(path)}", file=listing)

    def _print_summary(self, profile: Profile, stream: TextIO, step: NextStep | None, chosen: Whom | None) -> None:
        from ...converters.model.display import Display
        from ...converters.model.next_step import OF_HANGS
        from ...converters.summary.showing import show
        from ...converters.summary.summarize import summarize

        with Progress() as progress:
            if len(profile.samples) >= MANY:
                progress.show(f"adding up {plural(len(profile.samples), 'stack')}")
            summary = replace(summarize(profile, chosen), shows_idle=self._shows_idle)
        if self.view:
            summary = replace(summary, view=self.view)
        found = summary.next_step
        of_hang = found is not None and found.tells in OF_HANGS and not self.is_repeated(found)
        if step and not of_hang:
            summary = replace(summary, next_step=step)
        elif summary.next_step and self.is_repeated(summary.next_step):
            summary = replace(summary, next_step=None)
        if summary.next_step:
            summary = replace(summary, next_step=self.fit(summary.next_step))
        step = summary.next_step and summary.next_step.without_command()  # its arguments may be secrets
        profile.display = Display(summary.view, summary.shows_idle, step)
        # Of several, each is one line.
        show(summary, stream, as_json=self.as_json, indent=2 if self.paths else None, whole=self.verbose)


def at(paths: Sequence[str], seconds: float) -> tuple[str, ...]:
    """The paths of the interval that began then (Unix epoch), in local time."""
    when = time.localtime(seconds)
    return tuple(time.strftime(path, when) for path in paths)


def _refuse_pipes(paths: Iterable[str]) -> None:
    """StallscopeError for a named pipe: opening it would wait for a reader, and the trace for that."""
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if stat.S_ISFIFO(mode):
            raise StallscopeError(f"{printable(path)} is a named pipe, which --every does not write to", "remove it")


def check_names(paths: Sequence[str], every: float, option: str = "--every") -> None:
    """Raises StallscopeError if two intervals would go into the same file."""
    for path in paths or ("",):
        names = {at((path,), time.time() + i * every) for i in range(3)}
        if len(names) < 3 or output.is_stdout(path):
            same = f", and {printable(path)} is always the same" if path else ""
            raise StallscopeError(
                f"{option} needs a name for each interval{same}",
                "give -o a time: -o 'host-%Y%m%d-%H%M%S.pb.gz'",
                exit_code=2,
            )


def _identity(path: str) -> tuple[int, ...] | None:
    """Identifies the file of this name; None: no file. A file that replaces another may reuse its inode number."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
