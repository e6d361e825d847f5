"""speedscope's JSON (its file-format-schema.json): profiles of type "sampled" and "evented", one or several.

Several profiles become one: each is a thread, by its name. In files of our own writer the first profiles ("all")
repeat the others and are left out, and the names are ``process-PID`` or ``process-PID thread/TID``. py-spy's names of
profiles, and the frames that it adds for processes and threads, become labels. Times become nanoseconds. Profiles in
another unit than the active profile's cannot be added to it: they are left out and counted. If all profiles are evented
and a timeline is requested, they also become a timeline with one track each.

The file is read in pieces. Memory holds its distinct stacks and a sum for each stack of a profile. While a profile is
read, it also holds 12 bytes for each of its samples, and for a timeline its calls. Frames, units and the name of the
program that wrote the file may follow the profiles: whatever depends on them is checked at the end.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...base.errors import StallscopeError
from ...base.units import counted
from ...model import Labels, Profile, Sample, ValueType
from ...model.timeline import Span, Timeline, Track, add_up
from ..base.options import ReadOptions
from ..base.source import Source
from .events import Events, Nodes
from .frames import UNKNOWN, Frames, Sums
from .json import JsonParts
from .samples import Samples, Stacks
from .text import Shapes
from .values import MAX_VALUE, number, typed

_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_OURS = re.compile(r"(?s)(?P<process>.*?)-(?P<pid>\d{1,18})(?: (?P<thread>.*)/(?P<tid>\d{1,18}))?\Z")
_PY_SPY = re.compile(r'(?s)(?:Process (?P<pid>\d{1,18}) )?Thread (?P<tid>\d{1,18})(?: "(?P<thread>.*)")?\Z')
_REMEDY = "save it again from where it came from"
_OTHER_UNIT = "profiles in another unit"
_OF_FILE = {"exporter", "name", "lost", "activeProfileIndex", "repeated"}
_OF_PROFILE = {"type", "name", "unit", "startValue"}


def sniff(head: bytes) -> bool:
    """Whether it is a JSON object that names speedscope or has its keys."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return text.startswith(b"{") and (b"speedscope" in text or (b'"profiles"' in text and b'"shared"' in text))


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack and thread. Raises StallscopeError."""
    try:
        document = _Document(timeline=options.timeline)
        document.read(JsonParts(source))
        return document.profile()
    except RecursionError as error:
        raise StallscopeError(f"{source.name} is nested too deeply for speedscope's JSON", _REMEDY) from error
    except (ValueError, OverflowError) as error:
        raise StallscopeError(f"{source.name} is not speedscope's JSON: {error}", _REMEDY) from error


class _Part(NamedTuple):
    """One profile of the file: its members that are not lists; and its lists, None if missing."""

    where: str
    fields: dict[str, Any]
    samples: Samples | None
    events: Events | None


class _Shown(NamedTuple):
    part: _Part
    labels: Labels


class _Document:
    """A whole file; ValueError says which part of it is invalid."""

    def __init__(self, *, timeline: bool) -> None:
        self._timeline = timeline
        self._top: dict[str, Any] = {}
        self._frames = Frames()
        self._stacks = Stacks()
        self._nodes = Nodes()
        self._shapes = Shapes()
        self._parts: list[_Part] = []
        self._wrong = "profiles should be a JSON array"
        self._ours = self._py_spy = False

    def read(self, parts: JsonParts) -> None:
        """Reads everything, checking only that it is JSON."""
        if parts.next() != "{":
            value = parts.value()
            parts.end()
            typed(value, dict, "the file")
        for key in parts.keys_here():
            if key == "shared":
                self._frames.read(parts)
            elif key == "profiles":
                self._read_profiles(parts)
            elif key in _OF_FILE:
                self._top[key] = parts.value()
            else:
                parts.value()
        parts.end()
        exporter = str(self._top.get("exporter") or "")
        self._ours, self._py_spy = exporter == "stallscope", exporter.startswith("py-spy")

    def profile(self) -> Profile:
        """All profiles in one unit."""
        self._frames.check()
        if self._wrong:
            raise ValueError(self._wrong)
        active = typed(self._top.get("activeProfileIndex") or 0, int, "activeProfileIndex")
        if not 0 <= active < max(len(self._parts), 1):
            raise ValueError("activeProfileIndex is no index of a profile")
        units = [typed(part.fields.get("unit", "none"), str, "unit") for part in self._parts]
        unit = units[active] if units else "none"
        profile = Profile([_value_type(unit)])
        self._tell(profile)
        repeated = typed(self._top.get("repeated", 1), int, "repeated") if self._ours else 0
        shown: list[_Shown] = []
        for i, part in enumerate(self._parts):
            name = typed(part.fields.get("name") or "", str, "a profile's name")
            if units[i] != unit:
                profile.lost[_OTHER_UNIT] = profile.lost.get(_OTHER_UNIT, 0) + 1
            elif i >= repeated:
                shown.append(_Shown(part, self._labels(name)))
        scale = _NANOSECONDS.get(unit, 1)
        if shown and all(part.fields.get("type") == "evented" for part, _ in shown):
            self._add_calls(profile, shown, scale)
        else:
            self._add_samples(profile, shown, scale)
        return profile

    def _read_profiles(self, parts: JsonParts) -> None:
        self._parts, self._wrong = [], ""
        if parts.next() != "[":
            self._wrong = "profiles should be a JSON array"
            parts.value()
            return
        for _ in parts.elements():
            if parts.next() == "{":
                self._parts.append(self._read_profile(parts, f"profile {len(self._parts) + 1}"))
            else:
                parts.value()
                self._wrong = "a profile should be a JSON object"

    def _read_profile(self, parts: JsonParts, where: str) -> _Part:
        fields: dict[str, Any] = {}
        samples: Samples | None = None
        events: Events | None = None
        for key in parts.keys_here():
            if key in ("samples", "weights"):
                samples = samples or Samples(self._stacks, where)
                samples.read(key, parts)
            elif key == "events":
                events = Events(self._nodes, where, keep=self._timeline)
                events.read(parts, self._shapes)
            elif key in _OF_PROFILE:
                fields[key] = parts.value()
            else:
                parts.value()
        if samples:
            samples.settle()
        return _Part(where, fields, samples, events)

    def _add_samples(self, profile: Profile, shown: list[_Shown], scale: int) -> None:
        sums = Sums(self._frames)
        known: dict[int, int] = {}
        for part, labels in shown:
            kind = part.fields.get("type")
            if kind == "sampled":
                self._add_sampled(sums, part, labels, known)
            elif kind == "evented":
                self._add_evented(sums, part, labels)
            else:
                raise ValueError(f"the type of {part.where} is neither sampled nor evented")
        for stack, labels, total, _ in sums.items():
            if (value := round(total * scale)) >= MAX_VALUE:
                raise ValueError("a weight is too large")
            profile.samples.append(Sample(stack, (value,), labels))

    def _add_sampled(self, sums: Sums, part: _Part, labels: Labels, known: dict[int, int]) -> None:
        """``known``: the numbers that ``sums`` has for valid samples."""
        samples = part.samples or Samples(self._stacks, part.where)
        if self._py_spy:
            self._add(sums, labels, ((self._sampled(stack, part), value) for stack, value in samples.sums()))
            return

        def stacks() -> Iterator[tuple[int, float]]:
            for stack, value in samples.sums():
                found = known.get(stack)
                if found is None:
                    found = known[stack] = sums.stack(self._sampled(stack, part))
                yield found, value

        sums.add(sums.owner(labels), stacks())

    def _sampled(self, stack: int, part: _Part) -> array[int]:
        return self._frames.indices(self._stacks.indices(stack, part.where), part.where)

    def _add_evented(self, sums: Sums, part: _Part, labels: Labels) -> None:
        """Adds the time of an evented profile in a file that also has sampled ones."""
        times = self._checked(part).times
        self._add(sums, labels, ((self._evented(node, part), value) for node, value in times.items()))

    def _evented(self, node: int, part: _Part) -> array[int]:
        return self._frames.indices(self._nodes.indices(node), part.where)

    def _add(self, sums: Sums, labels: Labels, stacks: Iterable[tuple[array[int], float]]) -> None:
        """Adds (indices of frames, value) pairs of one profile."""
        owner = sums.owner(labels)
        if not self._py_spy:
            sums.add(owner, ((sums.stack(indices), value) for indices, value in stacks))
            return
        for indices, value in stacks:
            told, rest = sums.without_roots(owner, labels, indices)
            sums.add(told, [(sums.stack(rest), value)])

    def _add_calls(self, profile: Profile, shown: list[_Shown], scale: int) -> None:
        profile.value_types.append(ValueType("count", "count"))
        events = [self._checked(part) for part, _ in shown]
        starts = [number(part.fields.get("startValue", 0), part.where) for part, _ in shown]
        zero = min([*starts, *(each.first for each in events if each.first is not None)])
        if any(each.first is not None and round((each.last - zero) * scale) >= MAX_VALUE for each in events):
            raise ValueError("a time is too large")
        if self._timeline:
            profile.timeline = self._spans(shown, events, zero, scale, profile.value_types[0].unit)
            profile.samples = add_up(profile.timeline)
        else:
            profile.samples = self._sums(shown, events, scale)

    def _sums(self, shown: list[_Shown], events: list[Events], scale: int) -> list[Sample]:
        """Sums as `add_up` makes them of spans; but a call of length 0 is below its caller even if that ends at the
        same time, and times with fractions are rounded once, as a sum."""
        sums = Sums(self._frames)
        stacks = [-1]
        for caller, frame in self._nodes.calls():
            # A node of a profile that is not shown may have an invalid frame.
            stacks.append(sums.below(stacks[caller], frame) if frame < len(self._frames) else -1)
        for (_, labels), each in zip(shown, events, strict=True):
            owner, counts, times = sums.owner(labels), each.counts, each.times
            sums.add(owner, [(stacks[node], times.get(node, 0)) for node in counts])
            sums.add_counts(owner, [(stacks[node], count) for node, count in counts.items()])
        return [Sample(stack, (round(time * scale), count), labels) for stack, labels, time, count in sums.items()]

    def _spans(self, shown: list[_Shown], events: list[Events], zero: float, scale: int, unit: str) -> Timeline:
        timeline = Timeline(unit=unit)
        for (part, labels), each in zip(shown, events, strict=True):
            track = Track(labels, "" if labels else str(part.fields.get("name") or ""))
            track.spans = [
                Span(round((start - zero) * scale), round((end - zero) * scale), self._frames[frame])
                for start, end, frame in each.spans()
            ]
            timeline.tracks.append(track)
        return timeline

    def _checked(self, part: _Part) -> Events:
        """The events of a part, after checking them."""
        events = part.events or Events(self._nodes, part.where, keep=self._timeline)
        events.check(part.fields.get("startValue", 0), len(self._frames), self._frames.same)
        return events

    def _tell(self, profile: Profile) -> None:
        """Sets title and losses."""
        title = typed(self._top.get("name") or "", str, "name")
        if self._ours:
            lost = typed(self._top.get("lost") or {}, dict, "lost")
            profile.lost = {kind: typed(count, int, "lost") for kind, count in lost.items()}
            told = ", ".join(counted(number, kind) for kind, number in profile.lost.items() if number)
            title = title.removesuffix(f" (lost: {told})")
        profile.title = title

    def _labels(self, name: str) -> Labels:
        if self._py_spy and (match := _PY_SPY.match(name)):
            return tuple(sorted((k, v if k == "thread" else int(v)) for k, v in match.groupdict().items() if v))
        if not self._ours:
            return (("thread", name),) if name and len(self._parts) > 1 else ()
        match = _OURS.match(name)
        if not match:
            return (("process", name),) if name not in ("", UNKNOWN) else ()
        labels: dict[str, str | int] = {"pid": int(match["pid"])}
        if match["process"] not in ("", UNKNOWN):
            labels["process"] = match["process"]
        if match["tid"]:
            labels["tid"] = int(match["tid"])
            if match["thread"] not in ("", UNKNOWN):
                labels["thread"] = match["thread"]
        return tuple(sorted(labels.items()))


def _value_type(unit: str) -> ValueType:
    if unit in _NANOSECONDS:
        return ValueType("time", "nanoseconds")
    return ValueType("bytes", "bytes") if unit == "bytes" else ValueType("weight", "count")
