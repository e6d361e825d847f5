"""When things happened: spans on tracks, for sources that know it. A profile is what is left when they are added up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .model import Frame, Labels, Sample, Stack


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


def in_order(steps: Iterable[tuple[Stack, Labels, int]], unit: str) -> Timeline:
    """Samples one after the other, ``(stack, labels, weight)``: one track per labels, the weights being the clock.

    Frames that neighbours of one track share from the outermost one on are one span.
    """
    timeline = Timeline(unit=unit)
    tracks: dict[Labels, _OpenTrack] = {}
    now = 0
    for stack, labels, weight in steps:
        if weight <= 0:
            continue
        track = tracks.get(labels)
        if track is None:
            track = tracks[labels] = _OpenTrack(labels)
            timeline.tracks.append(track.track)
        track.add(stack, now, now + weight)
        now += weight
    for track in tracks.values():
        track.close(0)
    return timeline


class _OpenTrack:
    """A track whose last stack may go on."""

    def __init__(self, labels: Labels) -> None:
        self.track = Track(labels)
        self._open: list[tuple[int, Frame]] = []
        """Index of the span, whose end is not known yet, and its frame."""
        self._end = 0

    def add(self, stack: Stack, start: int, end: int) -> None:
        common = 0
        if start == self._end:
            for (_, known), frame in zip(self._open, stack, strict=False):
                if known is not frame and known != frame:
                    break
                common += 1
        self.close(common)
        spans = self.track.spans
        for frame in stack[common:]:
            self._open.append((len(spans), frame))
            spans.append(Span(start, start, frame))
        self._end = end

    def close(self, depth: int) -> None:
        """Ends all spans but the ``depth`` outermost ones."""
        spans = self.track.spans
        for i, _ in self._open[depth:]:
            spans[i] = spans[i]._replace(end=self._end)
        del self._open[depth:]
