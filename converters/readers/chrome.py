"""Chrome's trace format (JSON), as Perfetto, PyTorch's profiler, py-spy, VizTracer and many others write it.

An object with "traceEvents", or the array alone, which may lack its end. Calls are events X (with a duration) or pairs
of B and E; times are µs, exact to the nanosecond. They become a timeline, one track per pid and tid, both of which may
be words, and the samples that it adds up to. Names of processes and threads come from events M. Files without calls
that have samples (events P, or "samples" with "stackFrames") become samples. Everything else (counters, instants,
flows, asynchronous events, objects) is no call of a thread: it is counted.

What calls lack is mended, and counted: an end without a begin is left out, a begin without an end lasts until the last
event of its thread, of two calls that overlap the one is shortened that loses less.
Source: "Trace Event Format" (Chromium project, Nat Duca and Dean Jackson).
"""

from __future__ import annotations

import re

from ..errors import StallscopeError
from ..model import Profile, Sample, ValueType
from ..timeline import add_up
from .chrome_bulk import Bulk
from .chrome_calls import LateCall
from .chrome_events import Events
from .chrome_samples import Samples
from .chrome_tracks import FOLD, FOLD_PIPED, Tracks
from .json_stream import JsonStream, Unfinished
from .options import ReadOptions
from .source import Source

EXPECTED = 'an event of a trace: {"name": "f", "ph": "X", "ts": 1.5, "dur": 2, "pid": 1, "tid": 1}'

_SPLIT = frozenset({"traceEvents", "samples"})
_ARRAY = re.compile(rb'\[\s*\{.*?"ph"\s*:', re.DOTALL)
_CUT = "events cut short at the end"


def sniff(head: bytes) -> bool:
    """Whether it is an object with traceEvents, or an array of objects with a phase."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (b'"schemaVersion"' in text and b'"deviceProperties"' in text)
    return _ARRAY.match(text) is not None


def read(source: Source, options: ReadOptions) -> Profile:
    """Timeline and samples, or samples alone. Raises StallscopeError for what is no JSON and for too many calls.

    Without a timeline, calls are added up while they come, if each thread's come in the order of their time. When they
    turn out not to, the trace is read once more and sorted.
    """
    fold = FOLD if source.can_rewind else FOLD_PIPED
    try:
        return _read(source, _Trace(source.name, timeline=options.timeline, fold=fold))
    except LateCall:
        if not source.can_rewind:
            raise StallscopeError(
                f"{source.name} has calls in no order, and too many to be sorted on the way", "give it as a file"
            ) from None
    source.rewind()
    return _read(source, _Trace(source.name, timeline=False, fold=0))


def _read(source: Source, trace: _Trace) -> Profile:
    stream = JsonStream(source, _SPLIT, bulk=trace.bulk.take)
    try:
        for key, value, element in stream.members():
            if element and key != "samples":
                trace.events.add(value)
                trace.tracks.settle(source.name)
            else:
                trace.samples.add_member(key, value)
    except Unfinished as end:
        if end.within:
            trace.lose(_CUT, 1)
    except RecursionError as error:
        raise StallscopeError(f"{source.name} is nested too deeply for a trace", "save it again") from error
    return trace.profile()


class _Trace:
    """What was found so far."""

    def __init__(self, name: str, *, timeline: bool, fold: int) -> None:
        self._name = name
        self._lost: dict[str, int] = {}
        self.samples = Samples()
        self.tracks = Tracks(self.lose, timeline=timeline, fold=fold)
        self.events = Events(self.samples, self.tracks, self.lose)
        self.bulk = Bulk(self.events, self.lose)

    def lose(self, kind: str, count: int) -> None:
        """Counts what is not in the profile."""
        self._lost[kind] = self._lost.get(kind, 0) + count

    def profile(self) -> Profile:
        """What there is: calls, or samples."""
        profile = self._of_calls()
        if profile.samples:
            self.lose("samples beside the calls", self.samples.count)
        else:
            profile = Profile([ValueType("samples", "count"), ValueType("weight", "count")], title="trace samples")
            profile.samples = [Sample(*each) for each in self.samples.sums(self.tracks.labels, self.lose)]
        profile.lost = {kind: count for kind, count in self._lost.items() if count}
        if number := self.events.first_bad:
            where = f"{self._name}, event {number}: expected {EXPECTED}"
            if not profile.samples:
                raise StallscopeError(where, "--from NAME chooses another format")
            profile.comments.append(where)
        return profile

    def _of_calls(self) -> Profile:
        profile = Profile([ValueType("wall", "nanoseconds"), ValueType("count", "count")], title="trace")
        frames = self.events.frames.frames
        if not self.tracks.timeline:
            profile.samples, profile.duration_ns = self.tracks.sums(frames)
        elif (timeline := self.tracks.spans(frames)).tracks:
            profile.samples, profile.timeline = add_up(timeline), timeline
            profile.duration_ns = max(span.end for track in timeline.tracks for span in track.spans)
        return profile
