"""Common code of the parts of compare_corpora.py."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from stallscope.converters.convert import main as convert


class Comparison(NamedTuple):
    """Comparison of one file with some options."""

    name: str
    equal: bool
    reason: str = ""
    """Reason why it was not equal as it is, but only after something was done about that."""
    told: str = ""
    """The first difference."""


def folded(path: Path, *options: str) -> tuple[Counter[str], str]:
    """Weights by stack as trace-convert writes them, and what it says; no weights when it refuses."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
        out = Path(folder, "out.folded")
        status = convert([*options, str(path), "-o", str(out)])
        return weights(out.read_text()) if not status else Counter(), said.getvalue().strip()


def weights(text: str) -> Counter[str]:
    """Weights by stack; equal stacks are added up."""
    sums: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        sums[stack] += int(weight)
    return sums


def difference(ours: Counter[str], theirs: Counter[str]) -> str:
    """Size of the difference, and the first line of each side."""
    parts = []
    for name, lines in (("theirs", theirs - ours), ("ours", ours - theirs)):
        parts += [
            f"{len(lines)} of {name}, as {stack[-120:]!a} {weight}" for stack, weight in sorted(lines.items())[:1]
        ]
    return "; ".join(parts)
