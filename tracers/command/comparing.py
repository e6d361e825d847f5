"""Output of ``--compare``: the differences of two runs, without tracing."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ...converters.scan import folder

if TYPE_CHECKING:
    from ...converters.model import Profile


def show_comparison(pairs: Sequence[tuple[str, str]], given: Mapping[str, Any]) -> int:
    """Prints the differences of pairs of folders or captures (before, after). Returns the exit status."""
    from ...converters.scan.compare import telling
    from ...converters.scan.compare.comparing import compare

    if given["outputs"]:
        raise click.UsageError("--compare writes no files: --json prints all of it, trace-convert --diff draws it")
    if given["kept"]:
        raise click.UsageError("--compare and --from exclude each other")
    before, after = (_read([pair[side] for pair in pairs]) for side in (0, 1))
    comparison = compare(before, after)
    stream = sys.stdout or io.StringIO()
    if given["as_json"]:
        import json

        json.dump(telling.to_json(comparison), stream, indent=2)
        print(file=stream)
    else:
        telling.show(comparison, stream)
    return 0


def _read(paths: Sequence[str]) -> list[Profile]:
    from ...converters.readers import parallel
    from ...converters.readers.base.options import ReadOptions

    named = [folder.capture_of(path) for path in paths]
    return [profile for _, profile in parallel.read_all(named, ReadOptions(), "", jobs=1)]
