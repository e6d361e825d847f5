"""Chrome's trace format (JSON), as Perfetto, PyTorch's profiler, py-spy, VizTracer and many others write it.

An object with "traceEvents", or the array alone, which may lack its end. Calls are events X (with a duration) or pairs
of B and E; times are µs, exact to the nanosecond. They become a timeline, one track per pid and tid, both of which may
be words, and the samples that it adds up to. Names of processes and threads come from events M. Files without calls
that have samples (events P, or "samples" with "stackFrames") become samples. Everything else (counters, instants,
flows, asynchronous events, objects) is no call of a thread: it is counted.

What calls lack is mended, and counted: an end without a begin is left out, a begin without an end lasts until the last
event of its thread, a call that outlasts its caller is shortened.
Source: "Trace Event Format" (Chromium project, Nat Duca and Dean Jackson).
"""

from __future__ import annotations

import re
from typing import Any

from ..errors import StallscopeError
from ..model import Labels, Profile, Sample, ValueType
from ..timeline import add_up
from .chrome_frames import Frames, arguments
from .chrome_samples import Samples
from .chrome_tracks import Tracks
from .json_stream import JsonStream, Unfinished
from .options import ReadOptions
from .source import Source

EXPECTED = 'an event of a trace: {"name": "f", "ph": "X", "ts": 1.5, "dur": 2, "pid": 1, "tid": 1}'
MAX_CALLS = 20_000_000
"""Of one trace; each takes about 300 bytes of memory."""

_SPLIT = frozenset({"traceEvents", "samples"})
_ARRAY = re.compile(rb'\[\s*\{.*?"ph"\s*:', re.DOTALL)
_BAD, _CUT, _OTHER = "events not understood", "events cut short at the end", "events that are no calls"
_MAX_NANOSECONDS = 1 << 63
_DIGITS = 18
"""That always fit."""


def sniff(head: bytes) -> bool:
    """Whether it is an object with traceEvents, or an array of objects with a phase."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (b'"schemaVersion"' in text and b'"deviceProperties"' in text)
    return _ARRAY.match(text) is not None


def read(source: Source, options: ReadOptions) -> Profile:
    """Timeline and samples, or samples alone. Raises StallscopeError for what is no JSON and for too many calls."""
    trace = _Trace(source.name, timeline=options.timeline)
    stream = JsonStream(source, _SPLIT)
    try:
        for key, value, element in stream.members():
            if element and key != "samples":
                trace.add(value)
            else:
                trace.samples.add_member(key, value)
    except Unfinished as end:
        if end.within:
            trace.lose(_CUT)
    except RecursionError as error:
        raise StallscopeError(f"{source.name} is nested too deeply for a trace", "save it again") from error
    return trace.profile()


class _Trace:
    """Events as they come."""

    def __init__(self, name: str, *, timeline: bool) -> None:
        self.samples = Samples()
        self._name = name
        self._lost: dict[str, int] = {}
        self._number = 0
        self._first_bad = 0
        self._frames = Frames()
        self._tracks = Tracks()
        self._arguments = arguments if timeline else _no_arguments
        self._keep = timeline

    def lose(self, kind: str, count: int = 1) -> None:
        """Counts what is not in the profile."""
        self._lost[kind] = self._lost.get(kind, 0) + count

    def add(self, event: Any) -> None:
        """One element of traceEvents."""
        self._number += 1
        try:
            phase = event["ph"]
            if phase in ("X", "B", "E"):
                self._add_call(phase, event)
            elif phase == "M":
                self._tracks.name(event)
            elif phase == "P" and ("sf" in event or "stack" in event):
                self.samples.add_event(event)
            else:
                self.lose(_OTHER)
        except (TypeError, KeyError, ValueError, OverflowError, AttributeError):
            self.lose(_BAD)
            self._first_bad = self._first_bad or self._number

    def _add_call(self, phase: str, event: dict[str, Any]) -> None:
        if self._tracks.calls > MAX_CALLS:
            raise StallscopeError(f"{self._name} has more than {MAX_CALLS:,} calls", "record for a shorter time")
        start = nanoseconds(event["ts"])
        track = self._tracks.of(event.get("pid"), event.get("tid"))
        if phase == "E":
            track.end(start, str(event.get("name") or ""))
            return
        frame, root = self._frames.of(event)
        track.labels.update(root)
        if phase == "B":
            track.begin(start, None if root else frame, self._arguments(event))
        elif not root:
            duration = nanoseconds(event.get("dur", 0))
            if duration < 0:
                raise ValueError("a negative duration")
            track.add(start, start + duration, frame, self._arguments(event))
        self._tracks.calls += 1

    def profile(self) -> Profile:
        """What there is: calls, or samples."""
        timeline = self._tracks.timeline(self.lose)
        if timeline.tracks:
            self.lose("samples beside the calls", self.samples.count)
            types = [ValueType("wall", "nanoseconds"), ValueType("count", "count")]
            profile = Profile(types, add_up(timeline), title="trace", timeline=timeline)
            ends = [span.end for track in timeline.tracks for span in track.spans]
            profile.duration_ns = max(ends, default=0)
            if not self._keep:
                profile.timeline = None
        else:
            profile = Profile([ValueType("samples", "count"), ValueType("weight", "count")], title="trace samples")
            profile.samples = [Sample(*each) for each in self.samples.sums(self._tracks.labels, self.lose)]
        profile.lost = {kind: count for kind, count in self._lost.items() if count}
        if self._first_bad:
            if not profile.samples:
                raise StallscopeError(
                    f"{self._name}, event {self._first_bad}: expected {EXPECTED}", "--from NAME chooses another format"
                )
            profile.comments.append(f"{self._name}, event {self._first_bad}: expected {EXPECTED}")
        return profile


def _no_arguments(_: dict[str, Any]) -> Labels:
    """Where nobody will see them."""
    return ()


def nanoseconds(value: Any) -> int:
    """Of µs: an integer, or the text of a number, exactly. ValueError, OverflowError (infinity) or TypeError for
    anything else."""
    if isinstance(value, str):
        digits = value[:-4] + value[-3:]
        if value[-4:-3] == "." and digits.isdecimal() and digits.isascii() and len(digits) <= _DIGITS:
            return int(digits)
        whole, _, part = value.partition(".")
        if part.isdigit() and whole.lstrip("-").isdigit() and len(whole) <= 19:
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
