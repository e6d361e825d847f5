"""Chrome's trace format (JSON), as Perfetto, PyTorch's profiler, py-spy, VizTracer and many others write it.

A trace is an object with "traceEvents", or the array alone, whose end may be missing. Calls are events X (with a
duration) or pairs of B and E; times are µs, exact to the nanosecond. They become a timeline with one track per pid and
tid (which may be words or negative numbers), and samples, which are the timeline's sums. Names of processes and threads
come from events M.

If there are no calls, samples are read: events P, or "samples" with "stackFrames". CPU profiles of V8 (`v8`), which
DevTools' traces contain, take precedence over calls; ReadOptions.event "calls" selects the calls instead. Kineto
(PyTorch's profiler) adds a call for its own recording, in a process "Spans": it is left out unless all calls are
requested.

Flow arrows, counters, instants, asynchronous events and objects are not calls of a thread: a comment counts them.
Incomplete calls are repaired, and counted: an end without a begin is left out, a begin without an end lasts until the
last event of its thread, and if two calls overlap, the first one ends where the second one begins. A thread's time is
therefore that of all its calls together, with each moment counted once.
Source: "Trace Event Format" (Chromium project, Nat Duca and Dean Jackson).
"""

from __future__ import annotations

import re
from dataclasses import replace

from ...base.errors import StallscopeError
from ...base.units import counted, plural
from ...model import Profile, Sample, ValueType
from ...model.remarks import FirstSkipped, RecordingLeftOut
from ...model.timeline import add_up
from ..base.json_stream import JsonStream, Unfinished
from ..base.options import ReadOptions
from ..base.source import Source
from .bulk import Bulk
from .calls import LateCall
from .events import BAD_EVENT, OTHER_EVENTS, UNKNOWN_EVENT, Events
from .samples import Samples
from .tracks import FOLD, FOLD_PIPED, Tracks
from .v8 import result

EXPECTED = 'an event of a trace: {"name": "f", "ph": "X", "ts": 1.5, "dur": 2, "pid": 1, "tid": 1}'

CALLS, SAMPLES = KINDS = ("calls", "samples")
"""Allowed values of ReadOptions.event."""

_SPLIT = frozenset({"traceEvents", "samples"})
_ARRAY = re.compile(rb'\[\s*\{.*?"ph"\s*:', re.DOTALL)
_CUT, _CUT_TRACE = "events cut short at the end", "traces cut short at the end"


def sniff(head: bytes) -> bool:
    """Whether it is an object with traceEvents, or an array of objects with a phase."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (b'"schemaVersion"' in text and b'"deviceProperties"' in text)
    return _ARRAY.match(text) is not None


def read(source: Source, options: ReadOptions) -> Profile:
    """Timeline and samples, or samples alone. Raises StallscopeError for invalid JSON and for too many calls.

    Without a timeline, calls are summed while they are read, provided that each thread's are in time order. If they
    turn out not to be, the trace is read once more and sorted.
    """
    if options.event not in ("", *KINDS):
        cause = f"{source.name}: a trace has no event called {options.event!a}"
        raise StallscopeError(cause, f"choose one of: {', '.join(KINDS)}", exit_code=2)
    fold = FOLD if source.can_rewind else FOLD_PIPED
    try:
        return _read(source, _Trace(source.name, options, fold=fold))
    except LateCall:
        if not source.can_rewind:
            raise StallscopeError(
                f"{source.name} has calls in no order, and too many to be sorted on the way", "give it as a file"
            ) from None
    source.rewind()
    return _read(source, _Trace(source.name, replace(options, timeline=False), fold=0))


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
        # The last bracket of an array may be missing (Trace Event Format), that of an object may not.
        if end.within or source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            trace.lose(_CUT if end.within else _CUT_TRACE, 1)
    except RecursionError as error:
        raise StallscopeError(f"{source.name} is nested too deeply for a trace", "save it again") from error
    return trace.profile()


class _Trace:
    """Results so far."""

    def __init__(self, name: str, options: ReadOptions, *, fold: int) -> None:
        self._name = name
        self._options = options
        self._lost: dict[str, int] = {}
        self.samples = Samples()
        self.tracks = Tracks(self.lose, timeline=options.timeline, fold=fold)
        self.events = Events(self.samples, self.tracks, self.lose, every_call=options.event == CALLS)
        self.bulk = Bulk(self.events)

    def lose(self, kind: str, count: int) -> None:
        """Counts items that are missing from the profile."""
        self._lost[kind] = self._lost.get(kind, 0) + count

    def profile(self) -> Profile:
        """The result: calls, or samples."""
        profile = self._of_v8() or self._of_calls()
        if self.samples.count and self._options.event != CALLS and self._shows_samples(profile):
            profile = self._of_samples()
        elif self.samples.count:
            profile.comments.append(f"beside what is shown: {plural(self.samples.count, 'sample')}")
        if spans := self.events.recording:
            profile.comments.append(RecordingLeftOut(tuple(sorted(spans)), CALLS))
            profile.duration_ns = max(profile.duration_ns, *spans.values())
        profile.lost.update({kind: count for kind, count in self._lost.items() if count})
        if others := self._others(profile):
            profile.comments.append(f"beside what is shown: {', '.join(others)}")
        if number := self.events.first_bad:
            if not profile.samples:
                where = f"{self._name}, event {number}: expected {EXPECTED}"
                raise StallscopeError(where, "--from NAME chooses another format")
            profile.comments.append(FirstSkipped(self._name, "event", number, EXPECTED))
        return profile

    def _shows_samples(self, others: Profile) -> bool:
        """Whether the document's own samples are requested, or the ``others`` have no times."""
        return self._options.event == SAMPLES or not any(sample.values[0] for sample in others.samples)

    def _of_samples(self) -> Profile:
        """Number of samples, weights, and, if all samples have a time, the time until the next one."""
        profile = Profile([ValueType("samples", "count"), ValueType("weight", "count")], title="trace samples")
        found = self.samples.sums(self.tracks.labels, self.lose)
        if self.samples.timed == self.samples.count:
            profile.value_types.append(ValueType("wall", "nanoseconds"))
            profile.default_value = "wall"
        width = len(profile.value_types)
        profile.samples = [Sample(stack, values[:width], labels) for stack, values, labels in found]
        return profile

    def _of_v8(self) -> Profile | None:
        """None if there are no such samples, or they are not requested."""
        if not self.events.profiles or self._options.event == CALLS:
            return None
        try:
            found = [(self.tracks.labels(pid, tid), each) for pid, tid, each in self.events.profiles.all()]
        except (TypeError, KeyError, ValueError, OverflowError, AttributeError):
            self.lose(BAD_EVENT, 1)
            return None
        profile = result(found, timeline=self._options.timeline)
        if profile.samples and self.tracks.count:
            told = counted(self.tracks.count, "calls")
            profile.comments.append(f"beside the samples: {told} (--event-filter {CALLS} shows them)")
        return profile if profile.samples else None

    def _others(self, profile: Profile) -> list[str]:
        """Counts of what is not a call, by kind; unknown kinds are counted as lost."""
        kinds: dict[str, int] = {}
        for phase, count in self.events.others.items():
            kind = OTHER_EVENTS.get(phase, "")
            if kind:
                kinds[kind] = kinds.get(kind, 0) + count
            else:
                profile.lost[UNKNOWN_EVENT] = profile.lost.get(UNKNOWN_EVENT, 0) + count
        return [counted(count, kind) for kind, count in kinds.items()]

    def _of_calls(self) -> Profile:
        profile = Profile([ValueType("wall", "nanoseconds"), ValueType("count", "count")], title="trace")
        frames = self.events.frames.frames
        if not self.tracks.timeline:
            profile.samples, profile.duration_ns = self.tracks.sums(frames)
        elif (timeline := self.tracks.spans(frames)).tracks:
            profile.samples, profile.timeline = add_up(timeline), timeline
            profile.duration_ns = max(span.end for track in timeline.tracks for span in track.spans)
        return profile
