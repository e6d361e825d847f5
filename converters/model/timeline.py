"""Spans on tracks, for sources that know when calls happened. Their sums are a profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .samples import Frame, Labels, Sample, Stack

CORES = 1 << 22
"""The process whose threads are the cores, in Chrome traces that we write: the kernel's PID_MAX_LIMIT, from which on no
process or thread has an id."""


class Span(NamedTuple):
    """``frame`` was on the stack from ``start`` to ``end``, in the timeline's unit, relative to its beginning."""

    start: int
    end: int
    frame: Frame
    args: Labels = ()
    """Other data of this one call; sorted (key, value) pairs."""


@dataclass(slots=True)
class Track:
    """Calls of one thread. Spans nest: sorted by start, callers before callees, none ends after the one around it."""

    labels: Labels = ()
    """Labels as in a `Sample`: pid, process, tid, thread."""
    name: str = ""
    """Name for display; "" if the labels are enough."""
    spans: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Timeline:
    """Tracks that share one clock."""

    tracks: list[Track] = field(default_factory=list)
    unit: str = "nanoseconds"


def add_up(timeline: Timeline) -> list[Sample]:
    """One sample per stack and labels: (self time, number of times the innermost frame was entered)."""
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
    """Consecutive samples, ``(stack, labels, weight)``: one track per labels, with the weights as the clock.

    Outermost frames that neighbours of one track have in common become one span.
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
    """A track whose last stack may continue."""

    def __init__(self, labels: Labels) -> None:
        self.track = Track(labels)
        self._open: list[tuple[int, Frame]] = []
        """Index of the span, whose end is not yet known, and its frame."""
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
