"""The shapes of the events in a Chrome trace: their text without digits.

A program writes its events in the same way, so a trace has few shapes. One event of each shape is parsed. If it is a
call whose times can be found by the text around them, the other events of this shape need not be parsed: apart from the
times only the text that identifies thread and function matters in them, and that text repeats.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple, cast

from .v8 import is_part

DIGITS = b"0123456789"
_TIME = re.compile(rb'"(ts|dur)"[ \t\r\n]*:[ \t\r\n]*(?=[0-9])')
_NUMBER = rb"([1-3][0-9]{15}|[0-9]{1,15})(?:\.([0-9]+))?(?=[, \t\r\n])"
"""A number of µs; the sum of two fits into 63 bits of ns."""
_ONE_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?(?=[ \t\r\n]*(?:,|\Z))")
_TOLD = re.compile(rb'"(?:ph|name|cat|pid|tid|filename|line)"|\\')
"""Keys that matter after the times. Any of them may be written with escapes."""
_MAX_SHAPES, _MAX_ONCE = 1 << 14, 1 << 18
"""Each shape takes about as much memory as the text of an event; 60 bytes if it was only seen once."""

Times = tuple[bytes, bytes, bytes, bytes]
"""A call's start and duration in µs: integer digits and decimals of each; b"" for missing parts."""


class Shape(NamedTuple):
    """Texts by which the times in an event of this shape are found."""

    first: bytes = b""
    """The text before the first time, b"" if the times cannot be found."""
    second: bytes = b""
    """The text before the second time: all text between the two times, if it is constant and does not matter. b"" if
    there is no second time."""
    apart: bool = False
    """Whether the text between the times matters."""
    swapped: bool = False
    """Whether the duration comes first."""
    whole: bool = False
    """Whether the text after the times matters."""
    arguments: bool = False
    """Whether the call's arguments follow the times, and are kept."""
    phase: str = ""
    """The phase of events that are not calls, names or samples; "" for all others."""

    def times(self, events: list[bytes]) -> list[Times]:
        """Times of events of this shape; fewer than ``events`` if the notation of some times is unusual."""
        text = b",\n".join([*events, b""])
        if not self.second:
            return [(*each, b"", b"") for each in _pattern(self.first).findall(text)]
        if not self.apart:
            both = _pattern(self.first, self.second).findall(text)
        else:
            columns = _pattern(self.first).findall(text), _pattern(self.second).findall(text)
            both = [(*one, *two) for one, two in zip(*columns, strict=False)]
        return [(*each[2:], *each[:2]) for each in both] if self.swapped else both

    def texts(self, events: list[bytes]) -> list[bytes]:
        """The text that matters in events of this shape, apart from their times."""
        first = self.first
        if not self.apart and not self.whole:
            return [event.partition(first)[0] for event in events]
        return [self._text(event) for event in events]

    def behind(self, events: list[bytes]) -> Iterable[bytes]:
        """The text after the times, b"" for events without arguments."""
        last = self.second or self.first
        return (event.partition(last)[2].partition(b",")[2] for event in events) if self.arguments else repeat(b"")

    def _text(self, event: bytes) -> bytes:
        text, _, rest = event.partition(self.first)
        if self.second:
            before, _, rest = rest.partition(self.second)
            if self.apart:
                text += before.partition(b",")[2]
        return text + rest.partition(b",")[2] if self.whole else text


PARSED = Shape()
"""Each event of this shape has to be parsed."""


class Shapes:
    """The shapes seen so far; equal ones are the same object."""

    def __init__(self, *, arguments: bool) -> None:
        """``arguments``: whether the arguments of calls are kept."""
        self._arguments = arguments
        self._known: dict[bytes, Shape] = {}
        self._once: set[int] = set()
        """Hashes of the texts that were seen once."""
        self._same: dict[Shape, Shape] = {PARSED: PARSED}
        self._decode = json.JSONDecoder(parse_float=str).decode

    def of(self, events: list[bytes], bare: list[bytes]) -> list[Shape]:
        """The shape of each text, which has no braces around it; ``bare`` are the texts without their digits."""
        shapes = list(map(self._known.get, bare))
        if None not in shapes:
            return cast("list[Shape]", shapes)
        if len(self._known) > _MAX_SHAPES:
            self._known.clear()
        last = dict(zip(bare, events, strict=True))
        for text, number in Counter(text for text in bare if text not in self._known).items():
            if (number > 1 or self._came_again(text)) and (parsed := self.parse(last[text])) is not None:
                shape = self._shape(last[text], text, parsed)
                self._known[text] = self._same.setdefault(shape, shape)
        return [self._known.get(text, PARSED) for text in bare]

    def _came_again(self, text: bytes) -> bool:
        """Whether the text was seen before: most texts occur only once."""
        known = len(self._once)
        self._once.add(hash(text))
        if len(self._once) > _MAX_ONCE:
            self._once.clear()
        return len(self._once) == known

    def parse(self, event: bytes) -> dict[str, Any] | None:
        """The event with this text, None if it is invalid. Fractions stay text."""
        try:
            return cast("dict[str, Any]", self._decode(f"{{{event.decode()}}}"))
        except (ValueError, RecursionError):
            return None

    def _shape(self, event: bytes, bare: bytes, parsed: dict[str, Any]) -> Shape:
        phase = parsed.get("ph")
        if not isinstance(phase, str) or bare.count(b'"ph"') != 1 or any(map(str.isdigit, phase)):
            return PARSED
        if phase not in ("X", "B", "E"):
            return PARSED if phase in ("M", "P", "") or is_part(parsed) else Shape(phase=phase)
        shape = self._of_call(event, bare, 2 if phase == "X" else 1)
        if shape is PARSED or not self._arguments or not _has_arguments(parsed):
            return shape
        shape = shape._replace(arguments=True)
        (behind,) = shape.behind([event])
        return shape if bare.count(b'"args"') == 1 and b'"args"' in behind else PARSED

    def _of_call(self, event: bytes, bare: bytes, count: int) -> Shape:
        """``count``: how many times the event must have."""
        times = list(_TIME.finditer(event))
        numbers = [number for time in times if (number := _ONE_NUMBER.match(event, time.end()))]
        if len(numbers) != count or bare.count(b'"ts"') != 1 or bare.count(b'"dur"') != count - 1:
            return PARSED
        ends = [number.end() for number in numbers]
        parts = event[: ends[0]], b'"":0' + event[ends[0] : ends[-1]], b'"":0' + event[ends[-1] :]
        # If a time were inside another value, the text before or after it would not be an object.
        if any(self.parse(part) is None for part in parts):
            return PARSED
        whole = _TOLD.search(parts[-1]) is not None
        if count == 1:
            return Shape(times[0][0], whole=whole)
        middle = event[ends[0] : numbers[1].start()]
        apart = _TOLD.search(middle) is not None or any(digit in middle for digit in DIGITS)
        return Shape(times[0][0], times[1][0] if apart else middle, apart, times[0][1] == b"dur", whole)


def _has_arguments(event: dict[str, Any]) -> bool:
    args = event.get("args")
    return bool(args) and not (isinstance(args, dict) and args.keys() <= {"filename", "line"})


@lru_cache(maxsize=64)
def _pattern(*before: bytes) -> re.Pattern[bytes]:
    """Matches numbers after each of these texts."""
    return re.compile(b"".join(re.escape(text) + _NUMBER for text in before))
