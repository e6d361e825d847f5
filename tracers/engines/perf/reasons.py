"""Reasons why perf did not do what it was told, from what it says on standard error."""

from __future__ import annotations

from typing import NamedTuple

from ....converters.base.text import printable

_NOISE = ("[ perf record", "Error:", "WARNING:", "Warning:", "Usage:", "Events disabled", "Events enabled")
_IGNORED = "not valid for"
"""Text in a line on an event that perf does not use."""
_LONGEST = 200
_NOTHING = "it said nothing"


class Reason(NamedTuple):
    cause: str
    remedy: str


_KNOWN = (
    (("No such process", "couldn't find", "Couldn't find"), Reason("the target has ended", "name one that is there")),
    (
        ("Too many open files",),
        Reason("perf may not open as many files as it needs", "raise the limit, ulimit -n; or trace fewer threads, -t"),
    ),
    (
        ("Segmentation fault",),
        Reason("perf itself crashed", "trace fewer threads, -t: it opens some files for each; or use another engine"),
    ),
    (
        ("Couldn't record tracing data", "No space left"),
        Reason("perf has no room for its temporary files", "make room in /tmp"),
    ),
)


def reason(said: str, otherwise: str) -> Reason:
    """Reason of a perf that has failed. ``otherwise``: the remedy for what is not known."""
    for signs, known in _KNOWN:
        if any(sign in said for sign in signs):
            return known
    return Reason(f"perf record failed: {first_line(said)}", otherwise)


def first_line(said: str) -> str:
    """The first line that says something, printable, without perf's own decoration."""
    lines = [line.strip() for line in said.splitlines()]
    told = [line for line in lines if line and not line.startswith(_NOISE) and _IGNORED not in line]
    left = [line for line in lines if line and _IGNORED not in line]
    return printable((told or left or [_NOTHING])[0])[:_LONGEST] or _NOTHING
