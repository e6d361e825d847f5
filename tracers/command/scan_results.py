"""Output of a scan: its report as text or JSON, then its folder and other files."""

from __future__ import annotations

import io
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ...converters.base import safefile
from ...converters.base.rights import sudo_owner
from ...converters.base.text import printable
from ...converters.scan import folder
from ...converters.scan.folder import is_page
from ...converters.writers import output
from .results import Results

if TYPE_CHECKING:
    from ...converters.model import Profile
    from ...converters.model.next_step import NextStep, Whom
    from ...converters.scan.report import Report

_WITH_EVENTS = ("html", "perfetto")
"""Formats of outputs that are made of the scheduler's events."""


@dataclass(frozen=True)
class ScanResults(Results):
    """Destinations of the results of a scan."""

    folders: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()

    @classmethod
    def usual(cls, _stem: str) -> tuple[str, ...]:
        """Paths that are written if the user names none: there are none."""
        return ()

    @classmethod
    def plan(cls, stem: str, given: Mapping[str, Any]) -> ScanResults:
        folders = tuple(path for path in given["outputs"] if folder.is_folder(path))
        for path in folders:
            folder.check(path, force=given["force"])
        pages = tuple(path for path in given["outputs"] if is_page(path))
        output.check(pages, force=given["force"])
        others = tuple(path for path in given["outputs"] if path not in (*folders, *pages))
        planned = super().plan(stem, {**given, "outputs": others})
        return cls(**{**vars(planned), "paths": others, "folders": folders, "pages": pages})

    def _print_summary(self, profile: Profile, stream: TextIO, step: NextStep | None, chosen: Whom | None) -> None:
        _find_steps(profile)
        report = self._report(profile, step, chosen)
        show(report, stream, as_json=self.as_json)
        for path in self._write_report(profile, report, self.folders, self.pages):
            print(f"wrote {printable(path)}", file=sys.stderr if self.as_json else stream)

    def _report(
        self, profile: Profile, step: NextStep | None, chosen: Whom | None, awake: Collection[int] = ()
    ) -> Report:
        """The report of a profile, which gets to know how it is shown. ``awake``: see `process_verdicts`."""
        from ...converters.model.display import Display
        from ...converters.scan.report import report_of

        report = report_of(profile, chosen, awake)
        summary = report.summary
        if step or summary.next_step:
            wanted = step or summary.next_step
            summary = replace(summary, next_step=None if not wanted or self.is_repeated(wanted) else self.fit(wanted))
        shown = summary.next_step and summary.next_step.without_command()
        profile.display = Display(summary.view, next_step=shown)
        return replace(report, summary=summary)

    def _write_report(
        self, profile: Profile, report: Report, folders: Collection[str], pages: Collection[str]
    ) -> Iterator[str]:
        """Writes the folders and pages; yields the name of each when it is there."""
        lanes = _lanes(profile, report) if folders or pages else b""
        for path in folders:
            folder.write(profile, report, path, self._how, lanes)
            yield f"{path.rstrip('/')}/"
        for path in pages:
            write_page(profile, report, path, self._how, lanes)
            yield path

    @property
    def _how(self) -> folder.How:
        return folder.How(self.force, sudo_owner(), self.mode)


def _find_steps(profile: Profile) -> None:
    """Adds the steps that can be told from recorded events, if the user named none."""
    events = profile.scheduling
    if events is not None and not any(each.kind == "step" for each in events.call_names):
        from ...converters.summary.found_steps import found_steps  # it needs numpy

        profile.found_steps = list(found_steps(events))


def needs_events(path: str) -> bool:
    """Whether an output shows what threads did over time."""
    return folder.is_folder(path) or output.format_of(path) in _WITH_EVENTS


def _lanes(profile: Profile, report: Report) -> bytes:
    """Times of threads, packed for a page; b"" if no events were recorded."""
    from ...converters.scan.page.page import lanes_block

    return lanes_block(profile, report)


def write_page(profile: Profile, report: Report, path: str, how: folder.How, lanes: bytes) -> None:
    """Writes the page of a report. ``lanes``: see `page.write`. StallscopeError."""
    from ...converters.scan.page import page

    with safefile.create(Path(path), force=how.force, owner=how.owner, mode=how.mode) as file:
        page.write(profile, report, file, lanes)


def show(report: Report, stream: TextIO, *, as_json: bool) -> None:
    """Prints a report."""
    if as_json:
        import json

        json.dump(report.to_json(), stream, indent=2)
        print(file=stream)
    else:
        from ...converters.scan import screen

        screen.show(report, stream)


def show_again(path: str, given: Mapping[str, Any]) -> int:
    """Prints the report of a folder that `trace-scan` has written, or of a capture, and writes its pages.

    ``given``: the values of `options.output_options`. Returns the exit status."""
    from ...converters.readers import parallel
    from ...converters.readers.base.options import ReadOptions
    from ...converters.scan.report import report_of
    from ...converters.summary.showing import as_shown, check_processes

    pages = given["outputs"]
    if wrong := next((each for each in pages if not is_page(each)), None):
        raise click.UsageError(
            f"--from writes pages (.html), not {printable(wrong)}: trace-convert makes other outputs of its capture"
        )
    output.check(pages, force=given["force"])
    ((_, profile),) = parallel.read_all([folder.capture_of(path)], ReadOptions(), "", jobs=1)
    check_processes(profile)
    report = report_of(profile)
    report = replace(report, summary=as_shown(report.summary, profile))
    stream = sys.stdout or io.StringIO()
    show(report, stream, as_json=given["as_json"])
    for each in pages:
        how = folder.How(given["force"], sudo_owner(), given["mode"])
        write_page(profile, report, each, how, folder.lanes_of(path))
        print(f"wrote {printable(each)}", file=sys.stderr if given["as_json"] else stream)
    return 0
