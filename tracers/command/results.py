"""Output of a profile: the summary as text or JSON, then the files."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from ...converters.base.collection import no_collection
from ...converters.base.safefile import sudo_owner
from ...converters.base.text import printable
from ...converters.base.units import plural
from ...converters.writers import output
from ...converters.writers.base.options import WriteOptions
from ..base.progress import MANY, Progress

if TYPE_CHECKING:
    from ...converters.model import Profile


@dataclass(frozen=True)
class Results:
    """Where the results go. Check before the trace, write after it."""

    paths: tuple[str, ...]
    force: bool
    per_thread: bool
    as_json: bool
    merge: bool = False
    verbose: bool = False

    @classmethod
    def plan(cls, stem: str, given: Mapping[str, Any]) -> Results:
        """From the values of `options.output_options`. StallscopeError when an output could not be written: better now
        than after the trace."""
        paths = given["outputs"] or (str(output.default_path(stem)),)
        output.check(paths, force=given["force"])
        return cls(paths, given["force"], given["per_thread"], given["as_json"], given["merge"], given["verbose"])

    @property
    def uses_stdout(self) -> bool:
        """Whether standard output is for data that a program reads."""
        return self.as_json or any(map(output.is_stdout, self.paths))

    @no_collection()
    def write(self, profile: Profile, details: Iterable[str] = ()) -> None:
        """Prints the summary (on standard error when folded text goes to standard output), then writes every file. With
        -v also prints the ``details``."""
        # Standard output may be closed (>&-): the files are still written.
        stream: TextIO = sys.stderr if any(map(output.is_stdout, self.paths)) else sys.stdout or io.StringIO()
        try:
            self._print_summary(profile, stream)
        finally:  # the summary may not be read to its end: the files are still written
            self._write_files(profile, stream)
        for line in details if self.verbose else ():
            print(printable(line), file=sys.stderr)

    def _write_files(self, profile: Profile, stream: TextIO) -> None:
        if self.merge:
            from ...converters.transforms import merge_processes

            profile = merge_processes(profile)
        options = WriteOptions(per_thread=self.per_thread)
        before = {path: _identity(path) for path in self.paths}
        progress = Progress()

        def paths() -> Iterator[str]:
            for path in self.paths:
                if len(profile.samples) >= MANY and not output.is_stdout(path):
                    progress.restart()
                    progress.show(f"writing {printable(path)}")
                yield path

        try:
            output.write_all(profile, paths(), options, force=self.force, owner=sudo_owner())
        finally:
            progress.clear()
            listing = sys.stderr if self.as_json else stream
            for path in self.paths:
                if not output.is_stdout(path) and _identity(path) not in (None, before[path]):
                    print(f"wrote {printable(path)}", file=listing)

    def _print_summary(self, profile: Profile, stream: TextIO) -> None:
        from ...converters.summary.summarize import summarize

        with Progress() as progress:
            if len(profile.samples) >= MANY:
                progress.show(f"adding up {plural(len(profile.samples), 'stack')}")
            summary = summarize(profile)
        if self.as_json:
            import json

            json.dump(summary.to_json(), stream, indent=2)
            print(file=stream)
        else:
            from ...converters.summary.render import render

            render(summary, stream)
        stream.flush()


def _identity(path: str) -> tuple[int, ...] | None:
    """Identifies the file of this name; None: no file. A file that replaces another may reuse its inode number."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
