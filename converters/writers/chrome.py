"""Chrome's trace event format, JSON object form, for ui.perfetto.dev and chrome://tracing.

As in Google's "Trace Event Format" document: complete events (``"ph": "X"``, ts and dur in µs, here with
three decimals so that no nanosecond is lost), a caller before the callees that begin with it, and metadata events
(``"ph": "M"``) that name processes and threads. A profile with a timeline shows when things happened. Otherwise the
stacks of each process (or thread, or value of other requested labels) are laid end to end: widths are meaningful,
positions are not, and the labels of the processes say so. A profile with the scheduler's events shows those.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ..base.text import printable
from ..model import Frame, Labels, Profile, Sample, Stack, ValueType
from ..model.timeline import Span, Timeline, Track
from ..phrases.remarks import worded
from ..transforms.labels import shown_id
from .base.options import WriteOptions, missing, value_index

if TYPE_CHECKING:
    from ..model.scheduling import Scheduling

_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_CHUNK = 1000
_MAX_ID = 1 << 31
"""Perfetto keeps process and thread ids in 32 bits."""
_FIRST_FREE_ID = 1 << 22
"""The kernel's PID_MAX_LIMIT: no thread has this id or a higher one, so these are used for threads without an id."""


class _Place(NamedTuple):
    """Place where a track is shown; unknown names are ""."""

    pid: int
    tid: int
    process: str
    thread: str


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the scheduler's events, the timeline, or one value of the stacks.

    Raises StallscopeError when ``options`` do not fit the profile.
    """
    column = value_index(profile, options)
    value_type = profile.value_types[column]
    if profile.scheduling is not None and value_type.unit in _NANOSECONDS:
        file.writelines(piece.encode() for piece in _of_scheduler(profile, options, profile.scheduling))
        return
    timeline = profile.timeline
    note = ""
    if timeline is None or timeline.unit != value_type.unit:
        note = f"stacks end to end: widths are {value_type.name} ({_scale_note(value_type)}), positions are not times"
        timeline = Timeline(list(_laid_out(profile.samples, column, _keys(options))), value_type.unit)
    events = _events(timeline, printable(note))
    file.writelines(piece.encode() for piece in _document(profile, options, events, printable(note)))


def _scale_note(value_type: ValueType) -> str:
    return "time" if value_type.unit in _NANOSECONDS else f"1 µs shown is 1 of its unit, {value_type.unit}"


def _of_scheduler(profile: Profile, options: WriteOptions, scheduling: Scheduling) -> Iterator[str]:
    from ..model.scheduling import in_order
    from .scheduling import chrome

    scheduling = in_order(scheduling)
    frames = chrome.StackFrames(scheduling.stacks)
    told = replace(profile, lost={**profile.lost, **scheduling.lost()})
    yield from _document(told, options, chrome.events(scheduling, frames), "", frames.members())


def _document(
    profile: Profile, options: WriteOptions, events: Iterator[str], note: str, stack_frames: Iterable[str] = ()
) -> Iterator[str]:
    yield '{"traceEvents":[\n'
    separator = ""
    piece: list[str] = []
    for event in events:
        piece.append(event)
        if len(piece) == _CHUNK:
            yield separator + ",\n".join(piece)
            piece, separator = [], ",\n"
    if piece:
        yield separator + ",\n".join(piece)
    about: dict[str, Any] = {
        "exporter": "stallscope",
        "title": printable(options.title or profile.title),
        "host": printable(profile.host),
        "lost": {printable(kind): number for kind, number in missing(profile, options).items()},
        "comments": [printable(comment) for comment in worded(profile.comments)],
    }
    if note:
        about["positions"] = note
    yield "\n],\n"
    if members := ",\n".join(stack_frames):
        yield f'"stackFrames":{{\n{members}\n}},\n'
    yield f'"displayTimeUnit":"ns",\n"otherData":{json.dumps(about)}}}\n'


def _events(timeline: Timeline, note: str) -> Iterator[str]:
    scale = _NANOSECONDS.get(timeline.unit, 1_000)
    places = list(_places(timeline.tracks))
    named: set[int] = set()
    for place in places:
        if place.pid not in named:
            named.add(place.pid)
            if place.process:
                yield _metadata("process_name", place, "name", place.process)
            if note:
                yield _metadata("process_labels", place, "labels", note)
        if place.thread:
            yield _metadata("thread_name", place, "name", place.thread)
    known: dict[Frame, tuple[str, dict[str, str | int], str]] = {}
    for track, place in zip(timeline.tracks, places, strict=True):
        where = f'"pid":{place.pid},"tid":{place.tid}'
        for span in track.spans:
            if span.frame not in known:
                known[span.frame] = _described(span.frame)
            head, about, end = known[span.frame]
            if span.args:
                end = _end({**about, **{printable(key): _shown(value) for key, value in span.args}})
            times = f'"ts":{_micros(span.start * scale)},"dur":{_micros((span.end - span.start) * scale)}'
            yield f"{head},{times},{where}{end}"


def _metadata(kind: str, place: _Place, key: str, text: str) -> str:
    ids = {"pid": place.pid} if kind.startswith("process") else {"pid": place.pid, "tid": place.tid}
    return json.dumps({"ph": "M", "name": kind, **ids, "args": {key: text}})


def _end(about: dict[str, str | int]) -> str:
    return f',"args":{json.dumps(about, separators=(",", ":"))}}}' if about else "}"


def _described(frame: Frame) -> tuple[str, dict[str, str | int], str]:
    """The beginning of the frame's events, their arguments, and the end of events without other arguments."""
    about: dict[str, str | int] = {}
    if frame.module is not None:
        about["module"] = printable(frame.module.path)
    if frame.file:
        about["file"] = printable(frame.file)
    if frame.line:
        about["line"] = frame.line
    kind = f',"cat":"{frame.kind}"' if frame.kind != "native" else ""
    return f'{{"ph":"X","name":{json.dumps(printable(frame.name))}{kind}', about, _end(about)


def _shown(value: str | int) -> str | int:
    return printable(value) if isinstance(value, str) else value


def _micros(ns: int) -> str:
    """Exact: JavaScript's floats lose nanoseconds after 104 days, but a decimal number does not."""
    whole, rest = divmod(ns, 1_000)
    return f"{whole}.{rest:03}" if rest else str(whole)


def _places(tracks: Sequence[Track]) -> Iterator[_Place]:
    """A separate place for each track: those without an id, or with one that is taken, get a free one."""
    used = {value for track in tracks for _, value in track.labels}
    free = (i for i in count(_FIRST_FREE_ID) if i not in used)
    taken: set[tuple[int, int]] = set()
    pids: dict[tuple[str, str], int] = {}
    for track in tracks:
        labels = dict(track.labels)
        process = str(labels.get("process", ""))
        pid, tid = _identity(labels.get("pid")), _identity(labels.get("tid"))
        if pid is None or "pid-life" in labels:
            who = process, shown_id(labels, "pid")
            if who not in pids:
                pids[who] = next(free)
            pid = pids[who]
        if tid is None or (pid, tid) in taken:
            tid = next(free)
        taken.add((pid, tid))
        yield _Place(pid, tid, printable(process), printable(track.name or str(labels.get("thread", ""))))


def _identity(value: str | int | None) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _MAX_ID else None


def _keys(options: WriteOptions) -> tuple[str, ...]:
    """The labels that identify a track."""
    if options.roots is not None:
        return options.roots
    return ("process", "thread") if options.per_thread else ("process",)


def _laid_out(samples: Iterable[Sample], column: int, keys: Sequence[str]) -> Iterator[Track]:
    """A track for each process, thread or value of other labels: its stacks in order, with neighbours merging the
    frames that they share."""
    known: dict[Labels, tuple[Labels, str]] = {}
    functions: dict[Frame, Frame] = {}
    groups: defaultdict[tuple[Labels, str], defaultdict[Stack, int]] = defaultdict(lambda: defaultdict(int))
    for sample in samples:
        if (value := sample.values[column]) > 0:
            if sample.labels not in known:
                known[sample.labels] = _owner(sample.labels, keys)
            for frame in sample.stack:
                if frame not in functions:
                    functions[frame] = frame._replace(address=0, line=0)
            groups[known[sample.labels]][tuple(functions[frame] for frame in sample.stack)] += value
    for labels, name in sorted(groups, key=_number):
        yield Track(labels, name, _spans(groups[labels, name]))


def _number(owner: tuple[Labels, str]) -> tuple[int, int, str]:
    known = dict(owner[0])
    return _identity(known.get("pid")) or 0, _identity(known.get("tid")) or 0, str(owner)


def _owner(labels: Labels, keys: Sequence[str]) -> tuple[Labels, str]:
    """The labels of a track, and its name if the labels do not give it."""
    numbers = {"process": "pid", "thread": "tid"}
    ids = [numbers[key] for key in keys if key in numbers]
    kept = {*keys, *ids, *(f"{key}-life" for key in ids)}
    known = dict(labels)
    others = [str(known.get(key, f"[unknown {key}]")) for key in keys if key not in numbers]
    if others and "thread" in keys:
        others.insert(0, str(known.get("thread", "[unknown]")))
    name = " ".join(others) or ("" if "thread" in keys else "all threads")
    return tuple(pair for pair in labels if pair[0] in kept), name


def _spans(weights: dict[Stack, int]) -> list[Span]:
    """Callers before callees; stacks that end in a frame come before those that continue from it."""
    starts: list[int] = []
    frames: list[Frame] = []
    ends: list[int] = []
    open_: list[int] = []
    previous: Stack = ()
    at = 0
    for stack in sorted(weights, key=_order):
        shared = 0
        for one, other in zip(previous, stack, strict=False):
            if one != other:
                break
            shared += 1
        for i in open_[shared:]:
            ends[i] = at
        del open_[shared:]
        for frame in stack[shared:]:
            open_.append(len(starts))
            starts.append(at)
            frames.append(frame)
            ends.append(0)
        at += weights[stack]
        previous = stack
    for i in open_:
        ends[i] = at
    return list(map(Span, starts, ends, frames))


def _order(stack: Stack) -> list[tuple[object, ...]]:
    """The functions of one stack as sortable keys: a module may be None."""
    return [(frame.name, frame.kind, frame.module or ("", "", 0), frame.file) for frame in stack]
