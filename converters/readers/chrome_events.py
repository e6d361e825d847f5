"""What a single event of a Chrome trace says: a call, a part of one, a name, a sample, or nothing for a profile."""

from __future__ import annotations

from typing import Any, NamedTuple

from .chrome_calls import ANY, END, HIDDEN, OPEN, Calls, Lose
from .chrome_frames import Frames, arguments
from .chrome_samples import Samples
from .chrome_tracks import Tracks

BAD_EVENT, OTHER_EVENT = "events not understood", "events that are no calls"
_NOT_UNDERSTOOD = TypeError, KeyError, ValueError, OverflowError, AttributeError
_MAX_NANOSECONDS = 1 << 62
"""Beyond it no time is understood, so that the sum of two fits into 63 bits."""


class Call(NamedTuple):
    """What is known of an event X, B or E without its times. ``end`` is what `Calls` keeps of a B or an E, 0 of an X;
    ``frame`` is the index of the frame, of an E that of its name."""

    track: Calls
    frame: int
    end: int


class Events:
    """Takes them one by one, however they are written. ``number`` counts them, ``first_bad`` is the first one that was
    not understood."""

    def __init__(self, samples: Samples, tracks: Tracks, lose: Lose) -> None:
        self.number = self.first_bad = 0
        self.frames = Frames(tracks.name_of)
        self.tracks = tracks
        self._samples = samples
        self._lose = lose

    def add(self, event: Any) -> Call | None:
        """One element of traceEvents; what it is if it is a call that is shown, or a part of one."""
        self.number += 1
        try:
            phase = event["ph"]
            if phase in ("X", "B", "E"):
                return self._add_call(event)
            if phase == "M":
                self.tracks.name(event)
            elif phase == "P" and ("sf" in event or "stack" in event):
                self._samples.add_event(event)
            else:
                self._lose(OTHER_EVENT, 1)
        except _NOT_UNDERSTOOD:
            self._lose(BAD_EVENT, 1)
            self.first_bad = self.first_bad or self.number
        return None

    def _call(self, event: dict[str, Any]) -> Call | None:
        track = self.tracks.of(event.get("pid"), event.get("tid"))
        if event["ph"] == "E":
            name = str(event.get("name") or "")
            return Call(track, self.frames.name(name) if name else ANY, END)
        frame, root = self.frames.of(event)
        if not root:
            return Call(track, frame, OPEN if event["ph"] == "B" else 0)
        track.labels.update(root)
        return Call(track, HIDDEN, OPEN) if event["ph"] == "B" else None

    def _add_call(self, event: dict[str, Any]) -> Call | None:
        start = nanoseconds(event["ts"])
        length = nanoseconds(event.get("dur", 0)) if event["ph"] == "X" else 0
        if length < 0:
            raise ValueError("a negative duration")
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


def nanoseconds(value: Any) -> int:
    """Of µs: an integer, or the text of a number, exactly. ValueError, OverflowError (infinity) or TypeError for
    anything else."""
    if isinstance(value, str):
        digits = value[:-4] + value[-3:]
        whole, _, part = value.partition(".")
        if value[-4:-3] == "." and digits.isdecimal() and digits.isascii() and len(digits) <= 19:
            number = int(digits)
        elif part.isdigit() and whole.lstrip("-").isdigit() and len(whole) <= 19:
            number = int(whole.lstrip("-")) * 1000 + int((part + "000")[:3]) + (part[3:4] >= "5")
            number = -number if whole[0] == "-" else number
        else:
            number = round(float(value) * 1000)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value * 1000
    else:
        raise TypeError("a time that is no number")
    if not -_MAX_NANOSECONDS < number < _MAX_NANOSECONDS:
        raise ValueError("a time that is too large")
    return number
