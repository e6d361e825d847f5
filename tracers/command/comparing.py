"""Output of ``--compare``: the differences of two runs, without tracing."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...converters.base import safefile
from ...converters.base.errors import StallscopeError
from ...converters.base.rights import sudo_owner
from ...converters.base.text import printable
from ...converters.scan import folder
from ...converters.writers import output

if TYPE_CHECKING:
    from ...converters.model import Profile
    from ...converters.scan.compare.comparing import Comparison


def show_comparison(pairs: Sequence[tuple[str, str]], given: Mapping[str, Any]) -> int:
    """Prints the differences of pairs (before, after) of folders or captures, or lists of them with commas, and writes
    pages and graphs of them. Returns the exit status."""
    from ...converters.scan.compare import telling
    from ...converters.scan.compare.comparing import compare
    from ...converters.scan.compare.graph import graph_of

    output.check(given["outputs"], force=given["force"])
    if given["kept"]:
        raise click.UsageError("--compare and --from exclude each other")
    paths = [[path for pair in pairs for path in _listed(pair[side])] for side in (0, 1)]
    for side in paths:
        _check_different(side)
    before, after = map(_read, paths)
    comparison = compare(before, after)
    stream = sys.stdout or io.StringIO()
    if given["as_json"]:
        import json

        json.dump(telling.to_json(comparison), stream, indent=2)
        print(file=stream)
    else:
        telling.show(comparison, stream)
    for path in given["outputs"]:
        _write(path, comparison, graph_of(before, after), given)
        print(f"wrote {printable(path)}", file=sys.stderr if given["as_json"] else stream)
    return 0


def _listed(text: str) -> list[str]:
    """Paths of a list with commas; a path that has some itself if there is one."""
    if os.path.lexists(text) or "," not in text:
        return [text]
    if not all(paths := text.split(",")):
        raise click.UsageError(f"--compare {printable(text)}: an empty name between commas")
    return paths


def _check_different(paths: Sequence[str]) -> None:
    """UsageError if a run is given twice: it would count as two that agree."""
    real = [os.path.realpath(folder.capture_of(path)) for path in paths]
    for path, each in zip(paths, real, strict=True):
        if real.count(each) > 1:
            raise click.UsageError(f"--compare: {printable(path)} is given twice on one side: it is one run")


def _write(path: str, comparison: Comparison, graph: Profile | None, given: Mapping[str, Any]) -> None:
    """Writes the page, or the graph alone in another format. StallscopeError."""
    from ...converters.scan.compare import page
    from ...converters.scan.compare.graph import PROCESS
    from ...converters.writers.base.options import WriteOptions

    if folder.is_page(path):
        owner, mode = sudo_owner(), given["mode"]
        with safefile.create(Path(path), force=given["force"], owner=owner, mode=mode) as file:
            page.write(comparison, graph, file)
    elif graph is None:
        raise StallscopeError("one of the sides has no stacks: there is no graph", "compare captures of scans")
    else:
        options = WriteOptions(roots=(PROCESS,), mode=given["mode"])
        output.write(graph, path, options, force=given["force"], owner=sudo_owner())


def _read(paths: Sequence[str]) -> list[Profile]:
    from ...converters.readers import parallel
    from ...converters.readers.base.options import ReadOptions

    named = [folder.capture_of(path) for path in paths]
    return [profile for _, profile in parallel.read_all(named, ReadOptions(), "", jobs=1)]
