"""Reads events of evented profiles from their text: text that is the same in all of them is compared, not parsed."""

from __future__ import annotations

import json
import re
from typing import Any

from .json import JsonParts
from .values import MAX_VALUE

_SPACE = r"[ \t\r\n]*"
_EVENT = re.compile(
    rf'(\{{{_SPACE}"(\w+)"{_SPACE}:{_SPACE})("[OC]"|[-+.\w]+)({_SPACE},{_SPACE}"(\w+)"{_SPACE}:{_SPACE})("[OC]"|[-+.\w]+)'
    rf'({_SPACE},{_SPACE}"(\w+)"{_SPACE}:{_SPACE})("[OC]"|[-+.\w]+)({_SPACE}\}})({_SPACE},{_SPACE})(?=\{{)'
)
_KEYS = {"type", "frame", "at"}
_MAX_KNOWN = 1 << 16
_MARK, _SECOND = "@", "#"
"""Replacements for the texts before the second and the third value."""

_LOOK = 1 << 10
"""Maximum length of an event of a known shape, in characters."""


class Shape(dict[str, int]):
    """Events that differ only in their values. As a dict: from the text of an event's type and frame to the frame, or
    ~frame for a closing event."""

    def __init__(self, match: re.Match[str]) -> None:
        super().__init__()
        first, key, _, second, second_key, _, third, third_key, _, end, between = match.groups()
        self._keys = key, second_key, third_key
        self._second, self._third = second, third
        self._at = self._keys.index("at")
        self.start = first
        """The text of an event before its first value."""
        self.between = end + between + first
        """The text from the end of an event's last value to the first value of the next event."""
        self.step = len(end + between)
        """Number of those characters that precede the next event."""

    def __missing__(self, text: str) -> int:
        values = text.removeprefix(_MARK).split(self._second if self._at == 2 else _SECOND)
        if len(values) != 2 or text.startswith(_MARK) != (self._at == 0):
            raise ValueError("events of another shape")
        keys = [key for key in self._keys if key != "at"]
        fields = json.loads(f'{{"{keys[0]}": {values[0]}, "{keys[1]}": {values[1]}}}')
        code = code_of(fields.get("type"), fields.get("frame")) if fields.keys() == set(keys) else None
        if code is None:
            raise ValueError("another event")
        if len(self) >= _MAX_KNOWN:
            self.clear()
        self[text] = code
        return code

    def events(self, run: str) -> tuple[list[int], list[float]]:
        """Frames (or ~frames) and times of the events in a text from the start of the first one to the last one's
        ``between``, exclusive. ValueError when they are not all of this shape."""
        text = run[len(self.start) :]
        if self._at == 2:
            values = text.replace(self._third, self.between + _MARK).split(self.between)
            if len(values) % 2:
                raise ValueError("events of another shape")
            return list(map(self.__getitem__, values[::2])), _times(values[1::2], _MARK)
        text = text.replace(self._second, self.between + _MARK).replace(self._third, self.between + _SECOND)
        values = text.split(self.between)
        if len(values) % 3:
            raise ValueError("events of another shape")
        if self._at == 1:
            heads, times = map(str.__add__, values[::3], values[2::3]), _times(values[1::3], _MARK)
        else:
            heads, times = map(str.__add__, values[1::3], values[2::3]), _times(values[::3], "")
        return list(map(self.__getitem__, heads)), times


class Shapes:
    """Holds the last shape that was seen: most files have one."""

    def __init__(self) -> None:
        self._last: Shape | None = None

    def find(self, parts: JsonParts) -> Shape | None:
        """The shape of the next event, if it is followed by another one."""
        text = parts.ahead(_LOOK)
        if self._last is not None and text.startswith(self._last.start):
            return self._last
        match = _EVENT.match(text)
        if match is None or {match[2], match[5], match[8]} != _KEYS:
            return None
        self._last = Shape(match)
        return self._last

    def forget(self) -> None:
        """Discards the shape, which did not fit."""
        self._last = None


def code_of(kind: Any, frame: Any) -> int | None:
    """The frame, or ~frame when it is closed; None if it is not an event."""
    if type(frame) is not int or not 0 <= frame < 1 << 31:
        return None
    return frame if kind == "O" else ~frame if kind == "C" else None


def _times(values: list[str], mark: str) -> list[float]:
    """The numbers in ``values``, each of which follows a ``mark``."""
    text = ",".join(values)
    if mark:
        if text.count(mark) != len(values) or text.count(f",{mark}") != len(values) - 1 or not text.startswith(mark):
            raise ValueError("events of another shape")
        text = text.replace(mark, "")
    times: list[float] = json.loads(f"[{text}]")
    kinds = set(map(type, times))
    if len(times) != len(values) or not kinds <= {int, float} or "N" in text:
        raise ValueError("times that are no numbers")
    if min(times) <= -MAX_VALUE or max(times) >= MAX_VALUE:
        raise ValueError("times that are no numbers")
    return times
