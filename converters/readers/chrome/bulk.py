"""Reads the events of a Chrome trace from its text, mostly without making an object for each.

The text is cut where one event ends and the next begins. Runs of calls whose shape is known (see `chrome_shapes`) are
appended to the columns of their threads; every other event is parsed and handled like a single one.

Invalid JSON is left to the caller, with one exception: digits are not part of a shape. In an event of a known shape,
an unused number may be missing or begin with 0, and there may be digits in invalid places.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from .calls import Calls
from .events import Events
from .frames import arguments_in
from .shapes import DIGITS, PARSED, Shape, Shapes, Times
from .times import nanoseconds

_BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
_MAX_KNOWN = 1 << 15
"""Maximum number of known calls; each takes about as much memory as the text of an event."""
_TRIAL, _WORTH = 10_000, 2
"""Limit on events that are parsed one by one: the first number, plus the second one for each event that was not. Beyond
it, parsing all of them at once is faster."""
_MAX_BEHIND = 1 << 10
"""Maximum size of arguments that are kept as text, in bytes; longer ones are reduced to what is shown."""

_Known = tuple[Any, Any, Any, int, int, Calls]
"""The columns' append methods, the frame, the end that `Calls` stores for a B or an E (0 for an X), and the columns."""


class Bulk:
    """Reads events in bulk; passes the others to ``events``."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._shapes = Shapes(arguments=events.tracks.timeline)
        self._known: dict[bytes, _Known] = {}
        self._taken = self._parsed = 0

    def take(self, key: str, data: bytes) -> int:
        """Reads the complete events at the start of ``data``, which begins with one; returns their size in bytes."""
        between = _BETWEEN.search(data)
        if key == "samples" or between is None or self._parsed > _TRIAL + _WORTH * self._taken:
            return 0
        # Usually this is not inside an event. If it is, the text before it is invalid JSON, and is left to the caller.
        separator = between[0]
        events = data[1:].split(separator)
        bare = data[1:].translate(None, DIGITS).split(separator)
        if len(events) != len(bare):
            return 0
        events.pop()
        bare.pop()
        first = self._events.number
        taken = self._take(events, self._shapes.of(events, bare), range(first, first + len(events)))
        self._events.number = first + taken
        return sum(map(len, events[:taken])) + taken * len(separator)

    def _take(self, events: list[bytes], shapes: list[Shape], numbers: range) -> int:
        """Number of events that were read, from the first on. ``numbers``: for each event, how many preceded it."""
        if len(set(map(id, shapes))) == 1 and not shapes[0].phase:
            return self._take_run(events, shapes[0], numbers)
        places = [i for i, shape in enumerate(shapes) if not shape.phase]
        done = 0
        for _, run in groupby(places, lambda i: id(shapes[i])):
            at = list(run)
            taken = self._take_run([events[i] for i in at], shapes[at[0]], [numbers[i] for i in at])
            done += taken
            if taken < len(at):
                break
        total = places[done] if done < len(places) else len(shapes)
        for phase, count in Counter(shape.phase for shape in shapes[:total] if shape.phase).items():
            self._events.pass_by(phase, count)
        return total

    def _take_run(self, events: list[bytes], shape: Shape, numbers: Sequence[int]) -> int:
        if shape is not PARSED:
            times = shape.times(events)
            if len(times) == len(events):
                columns = numbers, shape.texts(events), times, shape.behind(events)
                return self._take_calls(zip(events, *columns, strict=False))  # The last iterable may be infinite.
        for done, (event, number) in enumerate(zip(events, numbers, strict=True)):
            if not self._add(event, number):
                return done
        return len(events)

    def _take_calls(self, calls: Iterable[tuple[bytes, int, bytes, Times, bytes]]) -> int:
        known_of = self._known.get
        taken = parsed = 0
        for event, number, text, (start, part, length, length_part), behind in calls:
            known = known_of(text)
            if known is not None:
                add_start, add_end, add_frame, frame, end, track = known
                if behind:
                    track.keep(behind if len(behind) < _MAX_BEHIND else arguments_in(behind))
                begin = int(start + part) if len(part) == 3 else _nanoseconds(start, part)
                add_start(begin)
                if not end:
                    end = int(length + length_part) if len(length_part) == 3 else _nanoseconds(length, length_part)
                    end += begin
                add_end(end)
                add_frame(frame)
                taken += 1
            elif self._add(event, number, text):
                parsed += 1
            else:
                break
        self._events.tracks.pending += taken
        self._taken += taken
        return taken + parsed

    def _add(self, event: bytes, number: int, text: bytes | None = None) -> bool:
        """Parses an event, and remembers the result for others with this ``text``. Returns whether it is an event."""
        parsed = self._shapes.parse(event)
        if parsed is None:
            return False
        self._parsed += 1
        self._events.number = number
        call = self._events.add(parsed)
        if text is not None and call is not None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            columns = call.track
            appends = columns.starts.append, columns.ends.append, columns.frames.append
            self._known[text] = (*appends, call.frame, call.end, columns)
        return True


def _nanoseconds(whole: bytes, part: bytes) -> int:
    """Nanoseconds from µs and their decimals."""
    return nanoseconds(f"{whole.decode()}.{part.decode()}") if part else int(whole) * 1000
