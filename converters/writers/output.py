"""Where profiles go: the suffix of a path chooses the writer; ``-`` is standard output.

A format that is named decides where the path does not: for ``-`` (else folded text) and for an unknown suffix.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from . import safefile
from .errors import StallscopeError
from .options import WriteOptions
from .safefile import Owner, sudo_owner
from .text import printable

if TYPE_CHECKING:
    from .model import Profile

__all__ = [
    "STDOUT",
    "Owner",
    "WriteOptions",
    "check",
    "default_path",
    "formats",
    "sudo_owner",
    "suffixes",
    "write",
    "write_all",
    "writer_for",
]

Writer = Callable[["Profile", BinaryIO, WriteOptions], None]

STDOUT = "-"
_SUFFIXES = {
    ".folded": "folded",
    ".svg": "svg",
    ".html": "html",
    ".speedscope.json": "speedscope",
    ".trace.json": "chrome",
    ".pb.gz": "pprof",
    ".md": "markdown",
}
"""Suffix → format."""
_WRITERS = {"markdown": "table_markdown"}
"""Format → module in `writers`, imported when it is needed, where it has another name."""
_UNTOLD = ("table",)
"""Formats without a suffix."""


def suffixes() -> list[str]:
    """The suffixes that `write` knows."""
    return list(_SUFFIXES)


def formats() -> list[str]:
    """The names of formats that `write` knows."""
    return [*_SUFFIXES.values(), *_UNTOLD]


def writer_for(path: str | Path, format_name: str = "") -> Writer:
    """The writer for ``path``. StallscopeError (exit code 2) for an unknown suffix and no format."""
    name = _format(path, format_name)
    return cast(Writer, importlib.import_module(f"{__package__}.writers.{_WRITERS.get(name, name)}").write)


def _format(path: str | Path, format_name: str) -> str:
    if str(path) == STDOUT:
        return format_name or "folded"
    for suffix, name in _SUFFIXES.items():
        if str(path).lower().endswith(suffix):
            return name
    if format_name:
        return format_name
    raise StallscopeError(
        f"{printable(str(path)) or 'an empty path'} has a suffix that stands for no format",
        f"use one of: {', '.join(_SUFFIXES)}, or - for standard output",
        exit_code=2,
    )


def check(paths: Sequence[str | Path], *, force: bool = False, format_name: str = "") -> None:
    """Finds out before a trace whether `write` could write ``paths`` afterwards. Raises StallscopeError."""
    seen: set[tuple[int, int, str]] = set()
    for path in map(str, paths):
        _format(path, format_name)
        key = (0, 0, STDOUT)
        if path != STDOUT:
            target = Path(path)
            with safefile.open_folder(target.parent) as folder:
                safefile.check_target(target, folder, force)
                safefile.check_writable(target, folder)
                status = os.fstat(folder)
            key = (status.st_dev, status.st_ino, target.name)
        if key in seen:
            raise StallscopeError(f"the output {printable(path)} is given twice", "give each path once", exit_code=2)
        seen.add(key)


def write(
    profile: Profile,
    path: str | Path,
    options: WriteOptions | None = None,
    *,
    force: bool = False,
    owner: Owner | None = None,
) -> None:
    """Writes ``profile`` in the format of ``path``'s suffix, else in ``options.format``: the whole file or none.

    ``owner`` gets the file; a command passes `sudo_owner()`. Raises StallscopeError. On standard output a
    reader that goes away is a normal end.
    """
    options = options or WriteOptions()
    writer = writer_for(path, options.format)
    if str(path) == STDOUT:
        _write_stdout(writer, profile, options)
        return
    with safefile.create(Path(path), force=force, owner=owner) as file:
        writer(profile, file, options)


def write_all(
    profile: Profile,
    paths: Sequence[str | Path],
    options: WriteOptions | None = None,
    *,
    force: bool = False,
    owner: Owner | None = None,
) -> None:
    """Writes every path, whatever happens to the others; then raises one StallscopeError that names all failures."""
    failures: list[StallscopeError] = []
    defect: Exception | None = None
    for path in paths:
        try:
            write(profile, path, options, force=force, owner=owner)
        except StallscopeError as error:
            failures.append(error)
        except Exception as error:  # a defect in one writer must not cost the other outputs
            defect = defect or error
    if defect is not None:
        raise defect
    if len(failures) == 1:
        raise failures[0]
    if failures:
        causes = "; ".join(error.cause for error in failures)
        remedies = "; ".join(dict.fromkeys(error.remedy for error in failures if error.remedy))
        exit_code = max(error.exit_code for error in failures)
        cause = f"{len(failures)} of {len(paths)} outputs were not written: {causes}"
        raise StallscopeError(cause, remedies, exit_code=exit_code)


def default_path(stem: str, folder: str | Path = ".", suffix: str = ".svg") -> Path:
    """A path that does not exist yet, named after the command and the local time: ``offcpu-20261120-231502.svg``."""
    name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = Path(folder, name + suffix)
    count = 1
    while os.path.lexists(path):
        count += 1
        path = Path(folder, f"{name}-{count}{suffix}")
    return path


def _write_stdout(writer: Writer, profile: Profile, options: WriteOptions) -> None:
    if sys.stdout is None:
        raise StallscopeError("standard output is closed", "write a file: -o PATH")
    file = sys.stdout.buffer
    try:
        writer(profile, file, options)
        file.flush()
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise StallscopeError(
            f"standard output cannot be written: {error.strerror}", "redirect it to a file on another file system"
        ) from error


def _discard_stdout() -> None:
    """What is still buffered must not fail again when Python flushes it at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
