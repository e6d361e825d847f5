"""Interprets one event of a Chrome trace: a call, a part of one, a name, a sample, or one without use in a profile."""

from __future__ import annotations

from typing import Any, NamedTuple

from .calls import ANY, END, HIDDEN, OPEN, Calls, Lose
from .frames import Frames, arguments
from .samples import Samples
from .times import nanoseconds
from .tracks import Tracks
from .v8 import Profiles, is_part

BAD_EVENT, UNKNOWN_EVENT = "events not understood", "events of an unknown kind"
OTHER_EVENTS = {
    **dict.fromkeys("stf", "flow arrows"),
    **dict.fromkeys("iIR", "instants"),
    **dict.fromkeys("bneSTFp", "asynchronous events"),
    **dict.fromkeys("NOD", "objects"),
    **dict.fromkeys("vV", "memory dumps"),
    **dict.fromkeys("()", "contexts"),
    "C": "counters",
    "c": "clock marks",
    "M": "descriptions",
    "P": "samples without a stack",
}
"""Known phases whose events have no place in a profile."""
_SURE = 1 << 52
"""Largest time in µs that `nanoseconds` accepts."""
_NOT_UNDERSTOOD = TypeError, KeyError, ValueError, OverflowError, AttributeError


class Call(NamedTuple):
    """An event X, B or E without its times. ``end`` is what `Calls` stores for a B or an E, 0 for an X;
    ``frame`` is the index of the frame, or for an E of its name."""

    track: Calls
    frame: int
    end: int


class Events:
    """Handles events one by one, in any notation. ``number`` counts them, ``first_bad`` is the number of the first one
    that was not understood."""

    def __init__(self, samples: Samples, tracks: Tracks, lose: Lose, *, every_call: bool = False) -> None:
        self.number = self.first_bad = 0
        self.frames = Frames(tracks.name_of)
        self.tracks = tracks
        self.profiles = Profiles()
        self.others: dict[str, int] = {}
        """Number of events that have no place in a profile, by phase."""
        self.recording: dict[str, int] = {}
        """Time in ns of the spans for a profiler's own recording, by name. With ``every_call`` these are calls."""
        self._every_call = every_call
        self._samples = samples
        self._lose = lose

    def add(self, event: Any) -> Call | None:
        """Adds one element of traceEvents; returns it if it is a shown call, or a part of one."""
        self.number += 1
        try:
            phase = event["ph"]
            if phase in ("X", "B", "E"):
                return self._add_call(event)
            if phase == "M":
                self.tracks.name(event)
            elif is_part(event):
                self.profiles.add_event(event, nanoseconds(event.get("ts", 0)))
            elif phase == "P" and ("sf" in event or "stack" in event):
                self._samples.add_event(event)
            else:
                self.pass_by(phase, 1)
        except _NOT_UNDERSTOOD:
            self._lose(BAD_EVENT, 1)
            self.first_bad = self.first_bad or self.number
        return None

    def pass_by(self, phase: str, count: int) -> None:
        """Counts events that do not belong in a profile."""
        self.others[phase] = self.others.get(phase, 0) + count

    def _call(self, event: dict[str, Any]) -> Call | None:
        track = self.tracks.of(event.get("pid"), event.get("tid"))
        if event["ph"] == "E":
            name = str(event.get("name") or "")
            index = self.frames.name(name)
            return Call(track, index if name else ANY, END)
        frame, root = self.frames.of(event)
        if not root:
            return Call(track, frame, OPEN if event["ph"] == "B" else 0)
        track.labels.update(root)
        return Call(track, HIDDEN, OPEN) if event["ph"] == "B" else None

    def _add_call(self, event: dict[str, Any]) -> Call | None:
        start, is_whole = event["ts"], event["ph"] == "X"
        start = start * 1000 if type(start) is int and -_SURE < start < _SURE else nanoseconds(start)
        length = event.get("dur", event.get("tdur", 0)) if is_whole else 0
        length = length * 1000 if type(length) is int and length < _SURE else nanoseconds(length)
        if length < 0:
            raise ValueError("a negative duration")
        if event.get("cat") == "Trace" and event.get("pid") == "Spans" and is_whole and not self._every_call:
            name = str(event.get("name"))
            self.recording[name] = self.recording.get(name, 0) + length
            return None
        call = self._call(event)
        if call is None:
            return None
        track, frame, end = call
        if track.args is not None and end != END and (args := arguments(event)):
            track.keep(args)
        track.starts.append(start)
        track.ends.append(end or start + length)
        track.frames.append(frame)
        self.tracks.pending += 1
        return call
