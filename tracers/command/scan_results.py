"""Output of a scan: its report as text or JSON, then its folder and other files."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TextIO

from ...converters.base.rights import sudo_owner
from ...converters.base.text import printable
from ...converters.scan import folder
from .results import Results

if TYPE_CHECKING:
    from ...converters.model import Profile
    from ...converters.model.next_step import NextStep, Whom
    from ...converters.scan.report import Report


@dataclass(frozen=True)
class ScanResults(Results):
    """Destinations of the results of a scan."""

    folders: tuple[str, ...] = ()

    @classmethod
    def usual(cls, _stem: str) -> tuple[str, ...]:
        """Paths that are written if the user names none: there are none."""
        return ()

    @classmethod
    def plan(cls, stem: str, given: Mapping[str, Any]) -> ScanResults:
        folders = tuple(path for path in given["outputs"] if folder.is_folder(path))
        for path in folders:
            folder.check(path, force=given["force"])
        others = tuple(path for path in given["outputs"] if path not in folders)
        planned = super().plan(stem, {**given, "outputs": others})
        return cls(**{**vars(planned), "paths": others, "folders": folders})

    def _print_summary(self, profile: Profile, stream: TextIO, step: NextStep | None, chosen: Whom | None) -> None:
        from ...converters.model.display import Display
        from ...converters.scan.report import report_of

        report = report_of(profile, chosen)
        summary = report.summary
        if step or summary.next_step:
            wanted = step or summary.next_step
            summary = replace(summary, next_step=None if not wanted or self.is_repeated(wanted) else self.fit(wanted))
        shown = summary.next_step and summary.next_step.without_command()
        profile.display = Display(summary.view, next_step=shown)
        report = replace(report, summary=summary)
        show(report, stream, as_json=self.as_json)
        listing = sys.stderr if self.as_json else stream
        for path in self.folders:
            folder.write(profile, report, path, folder.How(self.force, sudo_owner(), self.mode))
            print(f"wrote {printable(path.rstrip('/'))}/", file=listing)


def show(report: Report, stream: TextIO, *, as_json: bool) -> None:
    """Prints a report."""
    if as_json:
        import json

        json.dump(report.to_json(), stream, indent=2)
        print(file=stream)
    else:
        from ...converters.scan import screen

        screen.show(report, stream)


def show_again(path: str, *, as_json: bool) -> int:
    """Prints the report of a folder that `trace-scan` has written, or of a capture. Returns the exit status."""
    from ...converters.readers import parallel
    from ...converters.readers.base.options import ReadOptions
    from ...converters.scan.report import report_of
    from ...converters.summary.showing import as_shown, check_processes

    ((_, profile),) = parallel.read_all([folder.capture_of(path)], ReadOptions(), "", jobs=1)
    check_processes(profile)
    report = report_of(profile)
    report = replace(report, summary=as_shown(report.summary, profile))
    show(report, sys.stdout or io.StringIO(), as_json=as_json)
    return 0
