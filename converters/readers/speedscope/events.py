"""Profiles of type "evented": their events are processed as they are read, and summed per stack."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from .json import JsonParts
from .text import Shapes, code_of
from .values import MAX_VALUE, number, typed

_MAX_DEPTH = 10_000
ROOT = 0

Same = Callable[[int, int], bool]
"""Whether two indices refer to equal frames."""


class Nodes(dict[int, int]):
    """Stacks of a document, by caller << 32 | frame; 0 is the empty one. Missing stacks are added."""

    def __init__(self) -> None:
        super().__init__()
        self.callers, self.frames, self.depths = array("I", [ROOT]), array("i", [-1]), array("H", [0])

    def __missing__(self, key: int) -> int:
        caller = key >> 32
        self.depths.append(self.depths[caller] + 1)
        node = self[key] = len(self.callers)
        self.callers.append(caller)
        self.frames.append(key & 0xFFFF_FFFF)
        return node

    def calls(self) -> Iterator[tuple[int, int]]:
        """(caller, frame) of all stacks but the empty one, callers first."""
        return islice(zip(self.callers, self.frames, strict=True), 1, None)

    def indices(self, node: int) -> list[int]:
        """The frames of a stack, outermost first."""
        found = []
        while node:
            found.append(self.frames[node])
            node = self.callers[node]
        return found[::-1]


class Calls:
    """Columns of the calls, callers first, while they are read."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []
        self.frames = array("i")
        self._open: list[int] = []

    def take(self, codes: Sequence[int], times: Sequence[float]) -> None:
        """Adds events that nest."""
        for code, now in zip(codes, times, strict=True):
            if code >= 0:
                self._open.append(len(self.starts))
                self.starts.append(now)
                self.ends.append(now)
                self.frames.append(code)
            else:
                self.ends[self._open.pop()] = now


def _is_time(value: float) -> bool:
    return -MAX_VALUE < value < MAX_VALUE


class Events:
    """The events of the profile called ``where``: ``times`` per node that has one, ``counts`` of the calls, and
    the ``calls`` themselves if they are to be kept."""

    def __init__(self, nodes: Nodes, where: str, *, keep: bool) -> None:
        self._nodes = nodes
        self._where = where
        self._keep = keep
        self._begin()

    def _begin(self) -> None:
        self.times: defaultdict[int, float] = defaultdict(int)
        self.counts: defaultdict[int, int] = defaultdict(int)
        self.calls = Calls() if self._keep else None
        self.first: float | None = None
        self.last: float = 0
        """The times of the first event and of the last one."""
        self._node = ROOT
        self._number = 0
        self._highest: list[tuple[int, int]] = []
        """(number of the event, frame) for each frame with a higher index than all before it."""
        self._unequal: list[tuple[int, int, int]] = []
        """(number of the event, open frame, frame that it closes) if the two indices differ."""
        self._wrong: str | None = f"the events of {self._where} should be a JSON array"
        self._stopped = False

    def read(self, parts: JsonParts, shapes: Shapes) -> None:
        """Reads the value of "events"."""
        self._begin()
        if parts.next() != "[":
            parts.value()
            return
        self._wrong = None
        for _ in parts.elements():
            self._take(parts, shapes)
            value = parts.value()
            if not self._stopped:
                self._add(value)

    def check(self, start: Any, count: int, same: Same) -> None:
        """ValueError for the first error in a profile whose startValue is ``start``, in a file with ``count``
        frames."""
        begin = number(start, self._where)
        found: list[tuple[int, int, str]] = []
        for event, frame in self._highest:
            if not 0 <= frame < count:
                found.append((event, 0, f"{self._place(event)} has a frame that is not in shared.frames"))
                break
        if self.first is not None and self.first < begin:
            found.append((1, 1, f"{self._place(1)} is earlier than the one before it"))
        known = (each for each in self._unequal if max(each[1:]) < count)
        if bad := next((event for event, was, frame in known if not same(was, frame)), None):
            found.append((bad, 2, self._not_innermost(bad)))
        if self._wrong:
            found.append((self._number, 2, self._wrong))
        if found:
            raise ValueError(min(found)[2])
        if self._node:
            raise ValueError(f"{self._where} ends with {self._nodes.depths[self._node]} frames open")

    def spans(self) -> Iterator[tuple[float, float, int]]:
        """(start, end, frame) of the calls that were kept."""
        assert self.calls is not None
        return zip(self.calls.starts, self.calls.ends, self.calls.frames, strict=True)

    def _take(self, parts: JsonParts, shapes: Shapes) -> None:
        """Reads events by their text, all but the last one available."""
        if parts.next() != "{":
            return
        shape = shapes.find(parts)
        run = parts.run(shape.between, "]") if shape is not None else ""
        if shape is not None and run:
            try:
                codes, times = shape.events(run)
            except ValueError:
                shapes.forget()
            else:
                parts.skip(len(run) + shape.step)
                if not self._stopped:
                    self._walk(codes, times)
                return
        values = parts.objects("]")
        if values and not self._stopped:
            self._add_all(values)

    def _add_all(self, values: list[Any]) -> None:
        """Adds events of several shapes."""
        try:
            codes = [code_of(value["type"], value["frame"]) for value in values]
            times = [value["at"] for value in values]
        except (TypeError, KeyError):
            codes, times = [None], []
        known = [code for code in codes if code is not None]
        if len(known) == len(values) and set(map(type, times)) <= {int, float} and all(map(_is_time, times)):
            self._walk(known, times)
            return
        for value in values:
            if not self._stopped:
                self._add(value)

    def _walk(self, codes: list[int], times: list[float]) -> None:
        """Processes events that are valid except perhaps for their order."""
        before = self._number
        if self.first is None:
            self.first = self.last = times[0]
        self._look_for_highest(codes)
        try:
            self._add_up(codes, times)
        except ValueError as error:
            self._stop(str(error))
            done = self._number - before - 1
            codes, times = codes[:done], times[:done]
        if self.calls is not None:
            self.calls.take(codes, times)

    def _add_up(self, codes: list[int], times: list[float]) -> None:
        nodes, frames, callers, depths = self._nodes, self._nodes.frames, self._nodes.callers, self._nodes.depths
        totals, counts = self.times, self.counts
        node, last, event, before = self._node, self.last, self._number, self._number
        try:
            for event, code, now in zip(range(before + 1, before + 1 + len(codes)), codes, times, strict=True):
                if now != last:
                    if now < last:
                        raise ValueError(f"{self._place(event)} is earlier than the one before it")
                    if node:
                        totals[node] += now - last
                    last = now
                if code >= 0:
                    node = nodes[node << 32 | code]
                    counts[node] += 1
                    if depths[node] > _MAX_DEPTH:
                        raise ValueError(
                            f"{self._place(event)} is the {_MAX_DEPTH}th that opens a frame and does not close it"
                        )
                else:
                    if frames[node] != ~code:
                        if not node:
                            raise ValueError(self._not_innermost(event))
                        self._unequal.append((event, frames[node], ~code))
                    node = callers[node]
        finally:
            self._node, self.last, self._number = node, last, event

    def _look_for_highest(self, codes: list[int]) -> None:
        """Adds to ``_highest`` the frames that these events open or close."""
        highest = self._highest[-1][1] if self._highest else -1
        if max(codes) <= highest and ~min(codes) <= highest:
            return
        for event, code in enumerate(codes, self._number + 1):
            frame = code if code >= 0 else ~code
            if frame > highest:
                highest = frame
                self._highest.append((event, frame))

    def _add(self, value: Any) -> None:
        """Adds a single event of any kind."""
        place = self._place(self._number + 1)
        try:
            fields = typed(value, dict, place)
            now = number(fields.get("at"), place)
            frame = typed(fields.get("frame"), int, f"a frame of {place}")
            if not 0 <= frame < 1 << 31:
                raise ValueError(f"{place} has a frame that is not in shared.frames")
        except ValueError as error:
            self._number += 1
            self._stop(str(error))
            return
        code = code_of(fields.get("type"), frame)
        if code is not None:
            self._walk([code], [now])
            return
        if self.first is None:
            self.first = self.last = now
        self._look_for_highest([frame])
        self._number += 1
        earlier = now < self.last
        self._stop(
            f"{place} is earlier than the one before it"
            if earlier
            else f"{place} neither opens (O) nor closes (C) a frame"
        )

    def _stop(self, wrong: str) -> None:
        self._wrong, self._stopped = wrong, True

    def _place(self, event: int) -> str:
        return f"event {event} of {self._where}"

    def _not_innermost(self, event: int) -> str:
        return f"{self._place(event)} closes a frame that is not the innermost one"
