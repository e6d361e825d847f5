"""speedscope's JSON (its file-format-schema.json): profiles of type "sampled" and "evented", one or several.

Several profiles become one: each is a thread, by its name. In files of our own writer "all" repeats the others and is
left out, and the names are ``process-PID`` or ``process-PID thread/TID``; those of py-spy, and the frames that it puts
around stacks for processes and threads, become labels. Times become nanoseconds. Profiles in another unit than the one
that is shown first cannot be added to it: they are left out and counted. If all profiles are evented, they become a
timeline, too, one track each.

The whole file is read at once, up to `LIMIT`: frames may stand behind the profiles that refer to them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..errors import StallscopeError
from ..model import Frame, Labels, Module, Profile, Sample, Stack, ValueType
from ..timeline import Span, Timeline, Track, add_up
from .options import ReadOptions
from .python_frames import kind_of, root_labels
from .source import Source

LIMIT = 512 << 20
"""Bytes of JSON; Python needs several times as much for it."""

_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_OURS = re.compile(r"(?s)(?P<process>.*?)-(?P<pid>\d{1,18})(?: (?P<thread>.*)/(?P<tid>\d{1,18}))?\Z")
_PY_SPY = re.compile(r'(?s)(?:Process (?P<pid>\d{1,18}) )?Thread (?P<tid>\d{1,18})(?: "(?P<thread>.*)")?\Z')
_REMEDY = "save it again from where it came from"
_MAX_VALUE = 1 << 63
_MAX_DEPTH = 10_000
_UNKNOWN = "[unknown]"
_JSON = {dict: "object", list: "array", str: "string", int: "whole number"}
_OTHER_UNIT = "profiles in another unit"


def sniff(head: bytes) -> bool:
    """Whether it is a JSON object that names speedscope or has its keys."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return text.startswith(b"{") and (b"speedscope" in text or (b'"profiles"' in text and b'"shared"' in text))


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per distinct stack and thread. Raises StallscopeError."""
    text = source.read_all(LIMIT)
    try:
        document = json.loads(text)
        return _Document(document).profile()
    except json.JSONDecodeError as error:
        source.fail(error.lineno, f"JSON ({error.msg} at column {error.colno})")
    except RecursionError as error:
        raise StallscopeError(f"{source.name} is nested too deeply for speedscope's JSON", _REMEDY) from error
    except (ValueError, OverflowError) as error:
        raise StallscopeError(f"{source.name} is not speedscope's JSON: {error}", _REMEDY) from error


class _Document:
    """A whole file; ValueError says which part of it is wrong."""

    def __init__(self, document: Any) -> None:
        self._top: dict[str, Any] = _typed(document, dict, "the file")
        exporter = str(self._top.get("exporter") or "")
        self._ours, self._py_spy = exporter == "stallscope", exporter.startswith("py-spy")
        shared = _typed(self._top.get("shared"), dict, "shared")
        frames = _typed(shared.get("frames"), list, "shared.frames")
        self._frames: list[Frame] = [self._frame(_typed(entry, dict, "a frame")) for entry in frames]
        self._profiles = [
            _typed(each, dict, "a profile") for each in _typed(self._top.get("profiles"), list, "profiles")
        ]

    def profile(self) -> Profile:
        """Everything in one unit."""
        active = _typed(self._top.get("activeProfileIndex") or 0, int, "activeProfileIndex")
        if not 0 <= active < max(len(self._profiles), 1):
            raise ValueError("activeProfileIndex is no index of a profile")
        units = [_typed(each.get("unit", "none"), str, "unit") for each in self._profiles]
        unit = units[active] if units else "none"
        profile = Profile([_value_type(unit)])
        self._tell(profile)
        shown: list[tuple[dict[str, Any], str, Labels]] = []
        for i, each in enumerate(self._profiles):
            name = _typed(each.get("name") or "", str, "a profile's name")
            if units[i] != unit:
                profile.lost[_OTHER_UNIT] = profile.lost.get(_OTHER_UNIT, 0) + 1
            elif not (self._ours and i == 0 and name == "all"):
                shown.append((each, f"profile {i + 1}", self._labels(name)))
        scale = _NANOSECONDS.get(unit, 1)
        if shown and all(each.get("type") == "evented" for each, _, _ in shown):
            self._add_timeline(profile, shown, scale)
        else:
            self._add_samples(profile, shown, scale)
        return profile

    def _add_samples(self, profile: Profile, shown: list[tuple[dict[str, Any], str, Labels]], scale: int) -> None:
        cells: dict[tuple[Labels, Stack], float] = {}
        for each, where, labels in shown:
            for stack, weight in self._weights(each, where):
                stack, who = _without_roots(stack, labels) if self._py_spy else (stack, labels)
                cells[who, stack] = cells.get((who, stack), 0) + weight
        for (labels, stack), weight in cells.items():
            if (value := round(weight * scale)) >= _MAX_VALUE:
                raise ValueError("a weight is too large")
            profile.samples.append(Sample(stack, (value,), labels))

    def _add_timeline(self, profile: Profile, shown: list[tuple[dict[str, Any], str, Labels]], scale: int) -> None:
        profile.value_types.append(ValueType("count", "count"))
        timeline = profile.timeline = Timeline(unit=profile.value_types[0].unit)
        calls = [self._calls(each, where) for each, where, _ in shown]
        starts = [_number(each.get("startValue", 0), where) for each, where, _ in shown]
        zero = min([*starts, *(each[0][0] for each in calls if each)])
        for (each, _, labels), spans in zip(shown, calls, strict=True):
            track = Track(labels, "" if labels else str(each.get("name") or ""))
            track.spans = [Span(round((a - zero) * scale), round((b - zero) * scale), f) for a, b, f in spans]
            if any(span.end >= _MAX_VALUE for span in track.spans):
                raise ValueError("a time is too large")
            timeline.tracks.append(track)
        profile.samples = add_up(timeline)

    def _tell(self, profile: Profile) -> None:
        """Title and losses."""
        title = _typed(self._top.get("name") or "", str, "name")
        if self._ours:
            lost = _typed(self._top.get("lost") or {}, dict, "lost")
            profile.lost = {kind: _typed(count, int, "lost") for kind, count in lost.items()}
            told = ", ".join(f"{count} {kind}" for kind, count in profile.lost.items() if count)
            title = title.removesuffix(f" (lost: {told})")
        profile.title = title

    def _labels(self, name: str) -> Labels:
        if self._py_spy and (match := _PY_SPY.match(name)):
            return tuple(sorted((k, v if k == "thread" else int(v)) for k, v in match.groupdict().items() if v))
        if not self._ours:
            return (("thread", name),) if name and len(self._profiles) > 1 else ()
        match = _OURS.match(name)
        if not match:
            return (("process", name),) if name != _UNKNOWN else ()
        labels: dict[str, str | int] = {"pid": int(match["pid"])}
        if match["process"] != _UNKNOWN:
            labels["process"] = match["process"]
        if match["tid"]:
            labels["tid"] = int(match["tid"])
            if match["thread"] != _UNKNOWN:
                labels["thread"] = match["thread"]
        return tuple(sorted(labels.items()))

    def _frame(self, entry: dict[str, Any]) -> Frame:
        name = _typed(entry.get("name"), str, "a frame's name") or _UNKNOWN
        file = _typed(entry.get("file") or "", str, "a frame's file")
        line = _typed(entry.get("line") or 0, int, "a frame's line")
        if file.startswith("[kernel"):
            return Frame(name, "kernel", None if file == "[kernel]" else Module(file))
        return Frame(name, kind_of(file), file=file, line=line if 0 < line < _MAX_VALUE else 0)

    def _weights(self, each: dict[str, Any], where: str) -> Iterator[tuple[Stack, float]]:
        if each.get("type") == "sampled":
            return self._sampled(each, where)
        if each.get("type") == "evented":
            return self._evented(each, where)
        raise ValueError(f"the type of {where} is neither sampled nor evented")

    def _sampled(self, each: dict[str, Any], where: str) -> Iterator[tuple[Stack, float]]:
        samples = _typed(each.get("samples"), list, f"the samples of {where}")
        weights = _typed(each.get("weights"), list, f"the weights of {where}")
        if len(samples) != len(weights):
            raise ValueError(f"{where} has {len(samples)} samples and {len(weights)} weights")
        for sample, weight in zip(samples, weights, strict=True):
            indices = _typed(sample, list, f"a sample of {where}")
            yield tuple(self._at(index, where) for index in indices), _weight(weight, where)

    def _evented(self, each: dict[str, Any], where: str) -> Iterator[tuple[Stack, float]]:
        """(stack, time) of an evented profile among sampled ones: between two events."""
        stack: list[Frame] = []
        last: float = 0
        for now, frame, opens in self._events(each, where):
            if now > last and stack:
                yield tuple(stack), now - last
            last = now
            if opens:
                stack.append(frame)
            else:
                stack.pop()

    def _calls(self, each: dict[str, Any], where: str) -> list[tuple[float, float, Frame]]:
        """(start, end, frame), callers first."""
        calls: list[tuple[float, float, Frame]] = []
        open_: list[int] = []
        for now, frame, opens in self._events(each, where):
            if opens:
                open_.append(len(calls))
                calls.append((now, now, frame))
            else:
                at = open_.pop()
                calls[at] = calls[at][0], now, frame
        return calls

    def _events(self, each: dict[str, Any], where: str) -> Iterator[tuple[float, Frame, bool]]:
        """(time, frame, whether it is opened), in order; ValueError for what does not nest."""
        stack: list[Frame] = []
        last = _number(each.get("startValue", 0), where)
        for number, event in enumerate(_typed(each.get("events"), list, f"the events of {where}"), 1):
            place = f"event {number} of {where}"
            fields = _typed(event, dict, place)
            now, frame = _number(fields.get("at"), place), self._at(fields.get("frame"), place)
            if now < last:
                raise ValueError(f"{place} is earlier than the one before it")
            last = now
            kind = fields.get("type")
            if kind == "O":
                stack.append(frame)
                if len(stack) > _MAX_DEPTH:
                    raise ValueError(f"{place} is the {_MAX_DEPTH}th that opens a frame and does not close it")
            elif kind != "C":
                raise ValueError(f"{place} neither opens (O) nor closes (C) a frame")
            elif not stack or stack.pop() != frame:
                raise ValueError(f"{place} closes a frame that is not the innermost one")
            yield now, frame, kind == "O"
        if stack:
            raise ValueError(f"{where} ends with {len(stack)} frames open")

    def _at(self, index: Any, where: str) -> Frame:
        if not 0 <= _typed(index, int, f"a frame of {where}") < len(self._frames):
            raise ValueError(f"{where} has a frame that is not in shared.frames")
        return self._frames[int(index)]


def _without_roots(stack: Stack, labels: Labels) -> tuple[Stack, Labels]:
    """py-spy's frames for the process and the thread, the outermost ones, as labels."""
    at = 0
    told = dict(labels)
    while at < len(stack) and not stack[at].file and (more := root_labels(stack[at].name)):
        told.update(more)
        at += 1
    return stack[at:], tuple(sorted(told.items()))


def _value_type(unit: str) -> ValueType:
    if unit in _NANOSECONDS:
        return ValueType("time", "nanoseconds")
    return ValueType("bytes", "bytes") if unit == "bytes" else ValueType("weight", "count")


def _typed(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{what} should be a JSON {_JSON[kind]}")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_VALUE:
        raise ValueError(f"a time or weight of {what} is no number, or too large")
    return value


def _weight(value: Any, what: str) -> float:
    if (number := _number(value, what)) < 0:
        raise ValueError(f"{what} has a weight below 0")
    return number
