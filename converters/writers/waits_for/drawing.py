"""Draws the wait-for graph as SVG with graphviz's dot."""

from __future__ import annotations

from typing import BinaryIO

from ...base import helpers
from ...base.errors import StallscopeError
from ...model import Profile
from ..base.options import WriteOptions
from .dot import lines
from .graph import picture

_PATIENCE = 60.0
"""Seconds for dot: a graph of the bounded size takes less than one."""
_LIMITS = helpers.Limits(memory=2 << 30, seconds=int(_PATIENCE))
_LARGEST = 256 << 20
"""Bytes of a drawing."""


def check() -> str:
    """The path of dot. StallscopeError if it is not there."""
    program = helpers.find_program("dot")
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
        done = helpers.run(
            [program, "-Tsvg"], seconds=_PATIENCE, most=_LARGEST, data=text, rights=helpers.NOBODY, limits=_LIMITS
        )
    except OSError as error:
        raise StallscopeError("graphviz's dot did not draw the wait-for graph", "write .dot, and try it") from error
    if done.is_late:
        raise StallscopeError("graphviz's dot did not draw the wait-for graph", "write .dot, and try it")
    if done.status or not done.output:
        raise StallscopeError(
            f"graphviz's dot failed with status {done.status}", "write .dot, and look at what it says"
        )
    file.write(done.output)
