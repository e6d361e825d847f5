"""speedscope's JSON file format: the profile "all" first, then one per process (or thread, or value of other
requested labels), all of type "sampled". For samples of threads both on and off a CPU: "all", one per process, and
one per thread, those with the most time first.

A profile with a timeline becomes one profile of type "evented" per track instead, if its value is the timeline's time.
A profile with the scheduler's events becomes one per thread.

Valid against the schema that speedscope publishes (file-format-schema.json in its npm package). speedscope merges
by frame index, so a frame here is a function (name and file), whatever the address inside it was. The
counts of lost items are in the key "lost", which speedscope skips, and in the name if there are any; "repeated"
is the number of profiles at the beginning whose samples occur again in later ones.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

from ..base.text import printable
from ..base.units import counted
from ..model import Frame, Profile, Sample
from ..model.timeline import Span, Timeline, Track
from ..transforms.labels import runs_and_waits, shown_id
from .base.options import WriteOptions, missing, value_index

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
"""The units in the schema; any other is written as "none"."""
_CHUNK = 1000

_Stack = tuple[int, ...]
_Weights = dict[_Stack, int]


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes one value of ``profile``, piece by piece. Raises StallscopeError when ``options`` do not fit it."""
    index = value_index(profile, options)
    unit = profile.value_types[index].unit
    frames = _Frames()
    if profile.scheduling is not None and unit == "nanoseconds":
        from ..model.scheduling import in_order
        from .scheduling.speedscope import Profiles

        scheduling = in_order(profile.scheduling)
        profile = replace(profile, lost={**profile.lost, **scheduling.lost()})
        parts, repeated = Profiles(scheduling, frames.index).all(), 0
    elif profile.timeline and profile.timeline.unit == unit:
        parts, repeated = _tracks(profile.timeline, frames), 0
    else:
        parts, repeated = _groups(profile, index, options, frames)
    file.writelines(piece.encode() for piece in _document(profile, options, frames, parts, repeated))


def _groups(profile: Profile, index: int, options: WriteOptions, frames: _Frames) -> tuple[list[Iterator[str]], int]:
    """The profile of all samples, then those of the roots, if any are wanted; and how many are repeated."""
    several = _kinds_of_groups(profile, options)
    groups: list[dict[str, _Weights]] = [{} for _ in several]
    everything: _Weights = defaultdict(int)
    for sample in profile.samples:
        if (value := sample.values[index]) <= 0:
            continue
        stack = frames.indices(sample)
        everything[stack] += value
        for keys, group in zip(several, groups, strict=True):
            group.setdefault(_group(sample, keys), defaultdict(int))[stack] += value
    unit = _unit(profile.value_types[index].unit)
    ordered = list(map(_by_time, groups)) if len(several) > 1 else [sorted(group.items()) for group in groups]
    lists = [[("all", everything)], *ordered]
    repeated = sum(map(len, lists[:-1]))
    return [_sampled(name, weights, unit) for pairs in lists for name, weights in pairs], repeated


def _kinds_of_groups(profile: Profile, options: WriteOptions) -> list[tuple[str, ...]]:
    """Labels that get a profile for each value."""
    if options.roots is not None:
        return [options.roots] if options.roots else []
    if options.per_thread:
        return [("process", "thread")]
    return [("process",), ("process", "thread")] if runs_and_waits(profile) else [("process",)]


def _by_time(groups: dict[str, _Weights]) -> list[tuple[str, _Weights]]:
    return sorted(groups.items(), key=lambda pair: (-sum(pair[1].values()), pair[0]))


def _tracks(timeline: Timeline, frames: _Frames) -> list[Iterator[str]]:
    """One profile per track that has spans; all begin at 0, because they share a clock."""
    tracks = [track for track in timeline.tracks if track.spans]
    for track in tracks:
        frames.add(span.frame for span in track.spans)
    unit = _unit(timeline.unit)
    return [_evented(_track_name(track), track.spans, unit, frames) for track in tracks]


def _unit(unit: str) -> str:
    return unit if unit in _UNITS else "none"


def _document(
    profile: Profile, options: WriteOptions, frames: _Frames, profiles: list[Iterator[str]], repeated: int
) -> Iterator[str]:
    head = {
        "$schema": _SCHEMA,
        "exporter": "stallscope",
        "name": _title(profile, options),
        "activeProfileIndex": 0,
        "repeated": repeated,
        "lost": {printable(kind): count for kind, count in missing(profile, options).items()},
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
    """Opens (O) and closes (C) each span, in time order, the innermost closed first."""
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
    lost = ", ".join(counted(number, kind) for kind, number in missing(profile, options).items() if number)
    title = options.title or profile.title or "stallscope"
    return printable(f"{title} (lost: {lost})" if lost else title)


def _group(sample: Sample, keys: Iterable[str]) -> str:
    """Name of the sample's profile: ``process-PID``, ``process-PID thread/TID``, ``process-PID D``."""
    numbers = {"process": ("-", "pid"), "thread": ("/", "tid")}
    return printable(" ".join(_numbered(sample, key, *numbers.get(key, ("", ""))) for key in keys))


def _track_name(track: Track) -> str:
    """The name that `_group` gives a thread; parts missing from the labels are left out."""
    owner = Sample((), (), track.labels)
    keys = {key for key, _ in track.labels}
    parts = [_numbered(owner, "process", "-", "pid")] if keys & {"process", "pid"} else []
    if keys & {"thread", "tid"}:
        parts.append(_numbered(owner, "thread", "/", "tid"))
    return printable(track.name or " ".join(parts) or "[unknown]")


def _numbered(sample: Sample, name: str, separator: str, number: str) -> str:
    called = str(sample.label(name) or "[unknown]")
    identity = shown_id(dict(sample.labels), number)
    return f"{called}{separator}{identity}" if identity else called


class _Frames:
    """The shared table: distinct functions in the order of first occurrence."""

    def __init__(self) -> None:
        self.table: list[dict[str, str]] = []
        self._by_function: dict[tuple[str, str], int] = {}
        self._by_frame: dict[Frame, int] = {}

    def indices(self, sample: Sample) -> _Stack:
        """The sample's stack, outermost first."""
        return tuple(self.index(frame) for frame in sample.stack)

    def add(self, frames: Iterable[Frame]) -> None:
        """Gives each frame an index before the table is written."""
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
