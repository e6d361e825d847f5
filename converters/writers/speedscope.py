"""speedscope's JSON file format: the profile "all" first, then one per process (or thread), all of type "sampled".

Valid against the schema that speedscope publishes (file-format-schema.json in its npm package). speedscope merges
by frame index, so a frame here is a function (name and file), wherever in the function the address was. The
counts of what was lost stand in the key "lost", which speedscope skips, and in the name if there are any.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import BinaryIO

from ..model import Frame, Profile, Sample
from ..options import WriteOptions, value_index
from ..text import printable

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
"""The units that the schema knows; any other is "none"."""
_CHUNK = 1000

_Stack = tuple[int, ...]
_Weights = dict[_Stack, int]


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes one value of ``profile``, piece by piece. Raises StallscopeError when ``options`` do not fit it."""
    index = value_index(profile, options)
    frames = _Frames()
    everything: _Weights = defaultdict(int)
    groups: dict[str, _Weights] = {}
    for sample in profile.samples:
        if (value := sample.values[index]) <= 0:
            continue
        stack = frames.indices(sample)
        everything[stack] += value
        groups.setdefault(_group(sample, options.per_thread), defaultdict(int))[stack] += value
    unit = profile.value_types[index].unit
    profiles = [("all", everything), *sorted(groups.items())]
    pieces = _document(profile, options, frames, profiles, unit if unit in _UNITS else "none")
    file.writelines(piece.encode() for piece in pieces)


def _document(
    profile: Profile, options: WriteOptions, frames: _Frames, profiles: list[tuple[str, _Weights]], unit: str
) -> Iterator[str]:
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
    for name, weights in profiles:
        yield separator
        yield from _sampled(name, weights, unit)
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


def _group(sample: Sample, per_thread: bool) -> str:
    """Name of the profile that the sample belongs to: ``process-PID`` or ``process-PID thread/TID``."""
    name = _numbered(sample, "process", "-", "pid")
    if per_thread:
        name += f" {_numbered(sample, 'thread', '/', 'tid')}"
    return printable(name)


def _numbered(sample: Sample, name: str, separator: str, number: str) -> str:
    called = str(sample.label(name) or "[unknown]")
    identity = sample.label(number)
    return called if identity is None else f"{called}{separator}{identity}"


class _Frames:
    """The shared table: distinct functions in the order of their first sight."""

    def __init__(self) -> None:
        self.table: list[dict[str, str]] = []
        self._by_function: dict[tuple[str, str], int] = {}
        self._by_frame: dict[Frame, int] = {}

    def indices(self, sample: Sample) -> _Stack:
        """The sample's stack, outermost first."""
        return tuple(self._index(frame) for frame in sample.stack)

    def _index(self, frame: Frame) -> int:
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
