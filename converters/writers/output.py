"""Chooses the output: the suffix of a path determines the writer; ``-`` is standard output.

A format name is used if the path does not determine it: for ``-`` (default folded text) and for an unknown suffix.
/dev/stdout is standard output, too, and /dev/fd/N an open file of this process: neither path is followed.
"""

from __future__ import annotations

import fcntl
import gzip
import importlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from ..base import safefile
from ..base.collection import no_collection
from ..base.errors import StallscopeError
from ..base.rights import Owner, sudo_owner
from ..base.text import printable
from .base.options import WriteOptions
from .base.protocol import Writer
from .registry import WRITERS, Entry

if TYPE_CHECKING:
    from ..model import Profile

__all__ = [
    "STDOUT",
    "Owner",
    "WriteOptions",
    "check",
    "check_graph",
    "default_path",
    "format_of",
    "formats",
    "has_times",
    "is_graph",
    "is_stdout",
    "put_all",
    "sudo_owner",
    "suffixes",
    "write",
    "write_all",
    "write_graph",
    "writer_for",
    "writing",
]

STDOUT = "-"
_STDOUTS = frozenset({STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
_OPEN = re.compile(r"(?:/dev|/proc/self)/fd/([1-9]\d{0,8})\Z")
_DRAWING = "waits_for.drawing"


def suffixes() -> list[str]:
    """The suffixes that `write` supports."""
    return [entry.suffix for entry in WRITERS.values() if entry.suffix]


def formats() -> list[str]:
    """The formats that `write` supports."""
    return list(WRITERS)


def writer_for(path: str | Path, format_name: str = "") -> Writer:
    """The writer for ``path``. StallscopeError (exit code 2) for an unknown suffix without a format."""
    return WRITERS[format_of(path, format_name)].load()


def format_of(path: str | Path, format_name: str = "") -> str:
    """The name of the format in which ``path`` is written. Raises like `writer_for`."""
    if is_stdout(path):
        return format_name or "folded"
    for name, entry in WRITERS.items():
        if entry.suffix and str(path).lower().endswith(_endings(entry)):
            return name
    if format_name:
        return format_name
    raise StallscopeError(
        f"{printable(str(path)) or 'an empty path'} has a suffix that stands for no format",
        f"use one of: {', '.join(suffixes())}, or - for standard output; trace-convert takes --to FORMAT, too",
        exit_code=2,
    )


def is_graph(path: str | Path) -> bool:
    """Whether ``path`` is written as a wait-for graph. Raises like `writer_for`."""
    return WRITERS[format_of(path)].is_graph


def has_times(path: str | Path) -> bool:
    """Whether ``path`` shows when something happened. Raises like `writer_for`."""
    return WRITERS[format_of(path)].has_times


def _endings(entry: Entry) -> tuple[str, ...]:
    return (entry.suffix, f"{entry.suffix}.gz") if entry.is_packed else (entry.suffix,)


def check_graph(path: str | Path, *, force: bool = False) -> None:
    """Checks whether `write_graph` could write ``path``. Raises StallscopeError."""
    name = format_of(path)
    if name != "svg" and not is_graph(path):
        raise StallscopeError(
            f"{printable(str(path))} is no wait-for graph",
            "name a .svg, .dot, .graphml or .graph.json",
            exit_code=2,
        )
    if name == "svg":
        importlib.import_module(f"{__package__}.{_DRAWING}").check()
    check([path], force=force)


def write_graph(
    profile: Profile,
    path: str | Path,
    options: WriteOptions | None = None,
    *,
    force: bool = False,
    owner: Owner | None = None,
) -> None:
    """Writes the wait-for graph in the format of ``path``'s suffix; .svg: drawn by graphviz. Like `write`."""
    drawing = importlib.import_module(f"{__package__}.{_DRAWING}") if format_of(path) == "svg" else None
    writer = cast("Writer", drawing or writer_for(path))
    _write(writer, profile, path, options or WriteOptions(), _File(force, owner))


def is_stdout(path: str | Path) -> bool:
    """Whether this names standard output."""
    return str(path) in _STDOUTS


def _descriptor(path: str | Path) -> int:
    """The number of the open file that ``path`` names (``-o >(program)`` in shells); 0 for any other path."""
    match = _OPEN.match(str(path)) if not is_stdout(path) else None
    return 2 if str(path) == "/dev/stderr" else int(match[1]) if match else 0


def _check_descriptor(path: str | Path, number: int) -> None:
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        mode = os.O_RDONLY
    if mode == os.O_RDONLY:
        remedy = "sudo closes what a shell has opened: write a file, or to standard output: -o -"
        raise StallscopeError(f"{printable(str(path))} is not open for writing", remedy)


def check(paths: Sequence[str | Path], *, force: bool = False, format_name: str = "") -> None:
    """Checks before a trace whether `write` could write ``paths`` afterwards. Raises StallscopeError."""
    seen: set[tuple[int, int, str]] = set()
    for path in map(str, paths):
        format_of(path, format_name)
        key = (0, 0, STDOUT)
        if number := _descriptor(path):
            _check_descriptor(path, number)
            key = (0, 0, str(number))
        elif not is_stdout(path):
            target = Path(path)
            with safefile.open_folder(target.parent) as folder:
                safefile.check_target(target, folder, force)
                if not safefile.is_stream(target, folder):
                    safefile.check_writable(target, folder)
                status = os.fstat(folder)
            key = (status.st_dev, status.st_ino, target.name)
        if key in seen:
            raise StallscopeError(f"the output {printable(path)} is given twice", "give each path once", exit_code=2)
        seen.add(key)


@no_collection()
def write(
    profile: Profile,
    path: str | Path,
    options: WriteOptions | None = None,
    *,
    force: bool = False,
    owner: Owner | None = None,
) -> None:
    """Writes ``profile`` in the format of ``path``'s suffix, else in ``options.format``: the whole file or none.

    ``owner`` as `safefile.create` takes it; commands pass `sudo_owner()`. Raises StallscopeError. On standard output, a
    reader that closes it is not an error.
    """
    options = options or WriteOptions()
    _write(writer_for(path, options.format), profile, path, options, _File(force, owner))


class _File(NamedTuple):
    force: bool
    owner: Owner | None


def _write(writer: Writer, profile: Profile, path: str | Path, options: WriteOptions, how: _File) -> None:
    if is_stdout(path):
        _write_stdout(writer, profile, options)
        return
    if number := _descriptor(path):
        _check_descriptor(path, number)
        _write_descriptor(writer, profile, number, options)
        return
    with safefile.create(Path(path), force=how.force, owner=how.owner, mode=options.mode) as file:
        if not _is_packed(path):
            writer.write(profile, file, options)
            return
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            writer.write(profile, cast(BinaryIO, packed), options)


def _is_packed(path: str | Path) -> bool:
    packed = tuple(f"{entry.suffix}.gz" for entry in WRITERS.values() if entry.is_packed)
    return str(path).lower().endswith(packed)


def write_all(
    profile: Profile,
    paths: Iterable[str | Path],
    options: WriteOptions | None = None,
    *,
    force: bool = False,
    owner: Owner | None = None,
) -> None:
    """Writes every path, even if others fail; then raises one StallscopeError that names all failures."""
    put_all(writing(profile, paths, options, force=force, owner=owner))


def writing(
    profile: Profile,
    paths: Iterable[str | Path],
    options: WriteOptions | None = None,
    *,
    force: bool = False,
    owner: Owner | None = None,
) -> Iterator[Callable[[], None]]:
    """Yields a function for each of the paths, which writes it."""
    for path in paths:
        yield partial(write, profile, path, options, force=force, owner=owner)


def put_all(each: Iterable[Callable[[], None]]) -> None:
    """Calls what writes outputs, each even if others fail; then raises one StallscopeError that names all failures."""
    failures: list[StallscopeError] = []
    defect: Exception | None = None
    number = 0
    for put in each:
        number += 1
        try:
            put()
        except StallscopeError as error:
            failures.append(error)
        except Exception as error:  # a bug in one writer must not cost the other outputs
            defect = defect or error
    if defect is not None:
        raise defect
    if len(failures) == 1:
        raise failures[0]
    if failures:
        causes = "; ".join(error.cause for error in failures)
        remedies = "; ".join(dict.fromkeys(error.remedy for error in failures if error.remedy))
        exit_code = max(error.exit_code for error in failures)
        cause = f"{len(failures)} of {number} outputs were not written: {causes}"
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


def _write_descriptor(writer: Writer, profile: Profile, number: int, options: WriteOptions) -> None:
    try:
        with open(os.dup(number), "wb") as file:
            writer.write(profile, file, options)
    except OSError as error:
        cause = f"/dev/fd/{number} cannot be written: {error.strerror}"
        raise StallscopeError(cause, "did the program that reads it end?") from error


def _write_stdout(writer: Writer, profile: Profile, options: WriteOptions) -> None:
    if sys.stdout is None:
        raise StallscopeError("standard output is closed", "write a file: -o PATH")
    file = sys.stdout.buffer
    try:
        writer.write(profile, file, options)
        file.flush()
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise StallscopeError(
            f"standard output cannot be written: {error.strerror}", "redirect it to a file on another file system"
        ) from error


def _discard_stdout() -> None:
    """Discards buffered output, which would fail again when Python flushes it at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
