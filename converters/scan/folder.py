"""The folder of a scan: its capture, and its report for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..base import safefile
from ..base.errors import StallscopeError
from ..base.rights import Owner
from ..base.text import printable
from ..writers import output
from ..writers.base.options import WriteOptions

if TYPE_CHECKING:
    from ..model import Profile
    from .report import Report

SUFFIX = ".d"
"""End of the name of such a folder."""
PAGE = ".html"
"""End of the name of a page."""
CAPTURE, SUMMARY, LANES = "capture.pb.gz", "summary.json", "lanes.bin"
FILES = (CAPTURE, SUMMARY, LANES)
"""Names of the files in it."""
MOST_LANES = 512 << 20
"""Bytes of a file of lanes that is read."""


def is_folder(path: str) -> bool:
    """Whether ``path`` names such a folder."""
    return path.rstrip("/").endswith(SUFFIX)


def is_page(path: str) -> bool:
    """Whether ``path`` names a page."""
    return path.lower().endswith(PAGE)


def check(path: str, *, force: bool) -> None:
    """Checks before a trace whether `write` could write ``path``. StallscopeError."""
    target = Path(path)
    with safefile.open_folder(target.parent) as parent:
        safefile.check_writable(target, parent)
    if not _exists(target):
        return
    with safefile.open_folder(target) as folder:
        for name in FILES:
            safefile.check_target(target / name, folder, force)
            safefile.check_writable(target / name, folder)


class How(NamedTuple):
    """Way in which files are written: as `safefile.create` takes it."""

    force: bool
    owner: Owner | None
    mode: int


def write(profile: Profile, report: Report, path: str, how: How, lanes: bytes = b"") -> None:
    """Writes the files of a scan into the folder ``path``, which is made if it is not there. StallscopeError.

    ``lanes``: what threads did over time, packed for a page; b"" if it was not recorded.
    """
    target = Path(path)
    safefile.make_folder(target, owner=how.owner)
    output.write(profile, target / CAPTURE, WriteOptions(mode=how.mode), force=how.force, owner=how.owner)
    with safefile.create(target / SUMMARY, force=how.force, owner=how.owner, mode=how.mode) as file:
        file.write(json.dumps(report.to_json(), indent=2).encode() + b"\n")
    if lanes:
        with safefile.create(target / LANES, force=how.force, owner=how.owner, mode=how.mode) as file:
            file.write(lanes)


def capture_of(path: str) -> str:
    """Path of the capture in the folder ``path``; of a capture itself, if ``path`` is one. StallscopeError."""
    target = Path(path)
    if not target.is_dir():
        return path
    if not _is_file(target / CAPTURE):
        raise StallscopeError(
            f"{printable(path)} is no folder of a scan: it has no {CAPTURE}",
            "name a folder that trace-scan has written",
        )
    return str(target / CAPTURE)


def lanes_of(path: str) -> bytes:
    """The lanes of threads in the folder ``path``, packed for a page; b"" if it has none. StallscopeError."""
    file = Path(path) / LANES
    if not _is_file(file):
        return b""
    try:
        with file.open("rb") as stream:
            found = stream.read(MOST_LANES + 1)
    except OSError as error:
        raise _unreadable(file, error) from None
    if len(found) > MOST_LANES:
        raise StallscopeError(f"{printable(str(file))} is too large", "remove it: the page has no lanes then")
    return found


def _is_file(path: Path) -> bool:
    """Whether there is such a file. StallscopeError if it is not known: the folder may be another user's."""
    try:
        return path.is_file()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> StallscopeError:
    return StallscopeError(f"{printable(str(path))} cannot be read: {error.strerror}", "check its rights")


def _exists(path: Path) -> bool:
    try:
        return bool(path.lstat())
    except OSError:
        return False
