"""speedscope's JSON file format: the profile "all" first, then one per process (or thread, or what other labels stand
under the stacks), all of type "sampled".

A profile with a timeline becomes one profile of type "evented" per track instead, if its value is the time of that.

Valid against the schema that speedscope publishes (file-format-schema.json in its npm package). speedscope merges
by frame index, so a frame here is a function (name and file), wherever in the function the address was. The
counts of what was lost stand in the key "lost", which speedscope skips, and in the name if there are any.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..model import Frame, Profile, Sample
from ..options import WriteOptions, value_index
from ..text import printable
from ..timeline import Span, Timeline, Track

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
"""The units that the schema knows; any other is "none"."""
_CHUNK = 1000

_Stack = tuple[int, ...]
_Weights = dict[_Stack, int]


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes one value of ``profile``, piece by piece. Raises StallscopeError when ``options`` do not fit it."""
    index = value_index(profile, options)
    unit = profile.value_types[index].unit
    frames = _Frames()
    if profile.timeline and profile.timeline.unit == unit:
        parts = _tracks(profile.timeline, frames)
    else:
        parts = _groups(profile, index, options, frames)
    file.writelines(piece.encode() for piece in _document(profile, options, frames, parts))


def _groups(profile: Profile, index: int, options: WriteOptions, frames: _Frames) -> list[Iterator[str]]:
    """The profile of all samples, then those of the roots, unless there shall be none."""
    everything: _Weights = defaultdict(int)
    groups: dict[str, _Weights] = {}
    keys = options.roots
    if keys is None:
        keys = ("process", "thread") if options.per_thread else ("process",)
    for sample in profile.samples:
        if (value := sample.values[index]) <= 0:
            continue
        stack = frames.indices(sample)
        everything[stack] += value
        if keys:
            groups.setdefault(_group(sample, keys), defaultdict(int))[stack] += value
    unit = _unit(profile.value_types[index].unit)
    return [_sampled(name, weights, unit) for name, weights in [("all", everything), *sorted(groups.items())]]


def _tracks(timeline: Timeline, frames: _Frames) -> list[Iterator[str]]:
    """One profile per track that has spans; all begin at 0, for their clock is the same."""
    tracks = [track for track in timeline.tracks if track.spans]
    for track in tracks:
        frames.add(span.frame for span in track.spans)
    unit = _unit(timeline.unit)
    return [_evented(_track_name(track), track.spans, unit, frames) for track in tracks]


def _unit(unit: str) -> str:
    return unit if unit in _UNITS else "none"


def _document(profile: Profile, options: WriteOptions, frames: _Frames, profiles: list[Iterator[str]]) -> Iterator[str]:
    head = {
        "$schema": _SCHEMA,
        "exporter": "stallscope",
        "name": _title(profile, options),
        "activeProfileIndex": 0,
        "lost": {printable(kind): count for kind, count in profile.lost.items()},
    }
    yield json.dumps(head)[:-1] + ',\n"shared": {"frames": '
    yield from _array(map(json.dumps, frames.table))
    yield '},\n"profiles": ['
    separator = "\n"
    for pieces in profiles:
        yield separator
        yield from pieces
        separator = ",\n"
    yield "\n]}\n"


def _sampled(name: str, weights: _Weights, unit: str) -> Iterator[str]:
    stacks = sorted(weights)
    head = {"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": sum(weights.values())}
    yield json.dumps(head)[:-1] + ', "samples": '
    yield from _array(json.dumps(stack, separators=(",", ":")) for stack in stacks)
    yield ',\n"weights": '
    yield from _array(str(weights[stack]) for stack in stacks)
    yield "}"


def _evented(name: str, spans: list[Span], unit: str, frames: _Frames) -> Iterator[str]:
    end = max(span.end for span in spans)
    head = {"type": "evented", "name": name, "unit": unit, "startValue": 0, "endValue": end}
    yield json.dumps(head)[:-1] + ', "events": '
    yield from _array(_events(spans, frames))
    yield "}"


def _events(spans: list[Span], frames: _Frames) -> Iterator[str]:
    """Each span opened (O) and closed (C), in the order of time, the innermost closed first."""
    open_: list[tuple[int, int]] = []
    for span in spans:
        while open_ and open_[-1][0] <= span.start:
            yield _event("C", *open_.pop())
        index = frames.index(span.frame)
        yield _event("O", span.start, index)
        open_.append((span.end, index))
    while open_:
        yield _event("C", *open_.pop())


def _event(kind: str, at: int, frame: int) -> str:
    return f'{{"type":"{kind}","at":{at},"frame":{frame}}}'


def _array(items: Iterator[str]) -> Iterator[str]:
    """A JSON array in pieces of bounded size."""
    piece: list[str] = []
    opening = "["
    for item in items:
        piece.append(item)
        if len(piece) == _CHUNK:
            yield opening + ",\n".join(piece)
            piece, opening = [], ",\n"
    if piece:
        yield opening + ",\n".join(piece)
        opening = ""
    yield "[]" if opening == "[" else "]"


def _title(profile: Profile, options: WriteOptions) -> str:
    lost = ", ".join(f"{count} {kind}" for kind, count in profile.lost.items() if count)
    title = options.title or profile.title or "stallscope"
    return printable(f"{title} (lost: {lost})" if lost else title)


def _group(sample: Sample, keys: Iterable[str]) -> str:
    """Name of the sample's profile: ``process-PID``, ``process-PID thread/TID``, ``process-PID D``."""
    numbers = {"process": ("-", "pid"), "thread": ("/", "tid")}
    return printable(" ".join(_numbered(sample, key, *numbers.get(key, ("", ""))) for key in keys))


def _track_name(track: Track) -> str:
    """As `_group` names a thread; what the labels do not say is left out."""
    owner = Sample((), (), track.labels)
    keys = {key for key, _ in track.labels}
    parts = [_numbered(owner, "process", "-", "pid")] if keys & {"process", "pid"} else []
    if keys & {"thread", "tid"}:
        parts.append(_numbered(owner, "thread", "/", "tid"))
    return printable(track.name or " ".join(parts) or "[unknown]")


def _numbered(sample: Sample, name: str, separator: str, number: str) -> str:
    called = str(sample.label(name) or "[unknown]")
    identity = sample.label(number) if number else None
    return called if identity is None else f"{called}{separator}{identity}"


class _Frames:
    """The shared table: distinct functions in the order of their first sight."""

    def __init__(self) -> None:
        self.table: list[dict[str, str]] = []
        self._by_function: dict[tuple[str, str], int] = {}
        self._by_frame: dict[Frame, int] = {}

    def indices(self, sample: Sample) -> _Stack:
        """The sample's stack, outermost first."""
        return tuple(self.index(frame) for frame in sample.stack)

    def add(self, frames: Iterable[Frame]) -> None:
        """Gives each an index before the table is written."""
        for frame in frames:
            self.index(frame)

    def index(self, frame: Frame) -> int:
        index = self._by_frame.get(frame)
        if index is None:
            function = (printable(frame.name), printable(_file(frame)))
            index = self._by_function.setdefault(function, len(self.table))
            if index == len(self.table):
                name, file = function
                self.table.append({"name": name, "file": file} if file else {"name": name})
            self._by_frame[frame] = index
        return index


def _file(frame: Frame) -> str:
    if frame.file:
        return frame.file
    if frame.module is not None:
        return frame.module.path
    return "[kernel]" if frame.kind == "kernel" else ""
