"""When things happened: spans on tracks, for sources that know it. A profile is what is left when they are added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .model import Frame, Labels, Sample


class Span(NamedTuple):
    """``frame`` was on the stack from ``start`` to ``end``, in the timeline's unit, 0 being its beginning."""

    start: int
    end: int
    frame: Frame
    args: Labels = ()
    """What else is known of this one call; sorted (key, value) pairs."""


@dataclass(slots=True)
class Track:
    """What one thread did. Spans nest: sorted by start, callers before callees, none ends after the one around it."""

    labels: Labels = ()
    """As those of a `Sample`: pid, process, tid, thread."""
    name: str = ""
    """For people; "" when the labels say it."""
    spans: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Timeline:
    """Tracks that share one clock."""

    tracks: list[Track] = field(default_factory=list)
    unit: str = "nanoseconds"


def add_up(timeline: Timeline) -> list[Sample]:
    """One sample per stack and labels: (self time, how often the innermost frame was entered)."""
    known: dict[tuple[tuple[Frame, ...], Labels], list[int]] = {}
    for track in timeline.tracks:
        open_: list[tuple[int, list[int]]] = []
        stack: tuple[Frame, ...] = ()
        for span in track.spans:
            while open_ and open_[-1][0] <= span.start:
                open_.pop()
                stack = stack[:-1]
            length = span.end - span.start
            if open_:
                open_[-1][1][0] -= length
            stack = (*stack, span.frame)
            values = known.setdefault((stack, track.labels), [0, 0])
            values[0] += length
            values[1] += 1
            open_.append((span.end, values))
    return [Sample(stack, (values[0], values[1]), labels) for (stack, labels), values in known.items()]
