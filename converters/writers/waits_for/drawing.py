"""Draws the wait-for graph as SVG with graphviz's dot."""

from __future__ import annotations

import shutil
import subprocess
from typing import BinaryIO

from ...base.errors import StallscopeError
from ...model import Profile
from ..base.options import WriteOptions
from .dot import lines
from .graph import picture

_PATIENCE = 60.0
"""Seconds for dot: a graph of the bounded size takes less than one."""


def check() -> str:
    """The path of dot. StallscopeError if it is not there."""
    program = shutil.which("dot")
    if program is None:
        raise StallscopeError(
            "a wait-for graph is drawn by graphviz's dot, which is not installed",
            "apt-get install graphviz; or write .dot, .graphml or .graph.json, which need no program",
        )
    return program


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the drawing. StallscopeError if the profile does not tell who ended waits, or if dot fails."""
    program = check()
    text = "\n".join(lines(picture(profile, options, drawn=True))).encode()
    try:
        done = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StallscopeError("graphviz's dot did not draw the wait-for graph", "write .dot, and try it") from error
    if done.returncode or not done.stdout:
        raise StallscopeError(
            f"graphviz's dot failed with status {done.returncode}", "write .dot, and look at what it says"
        )
    file.write(done.stdout)
