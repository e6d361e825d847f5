"""Samples in a Chrome trace: events P and the array "samples", whose stacks are in "stackFrames"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import add
from typing import Any

from ...model import Frame, Labels, Stack
from ...model.losses import frames_without
from .times import nanoseconds

_MAX_DEPTH = 10_000
_MAX_WEIGHT = 1 << 53
_NO_FRAME, _BAD = frames_without("a definition"), "samples not understood"
_UNKNOWN = Frame("[unknown]")


class Samples:
    """Counts samples by thread and stack; the frames may follow later."""

    def __init__(self) -> None:
        self.count = 0
        self.timed = 0
        """Number of samples with a time."""
        self._bad = 0
        self._cells: dict[tuple[Any, Any, Any], list[int]] = {}
        """Number of samples, weight, and ns until the thread's next sample, by process, thread and stack."""
        self._last: dict[tuple[Any, Any], tuple[int, list[int]]] = {}
        """Time of the last sample of each thread, and that sample's cell."""
        self._frames: dict[str, Any] = {}
        self._stacks: dict[str, Stack] = {}

    def add_member(self, key: str, value: Any) -> None:
        """Reads a member of the document that is not an event; most are ignored."""
        if key == "samples":
            try:
                self._add_timed(value)
            except (TypeError, KeyError, ValueError, OverflowError, AttributeError):
                self._bad += 1
        elif key == "stackFrames" and isinstance(value, dict):
            self._frames = value

    def _add_timed(self, sample: dict[str, Any]) -> None:
        """Adds one of the document's samples: its stack lasts until the thread's next sample."""
        cell = self.add_event(sample)
        if "ts" not in sample:
            return
        time, thread = nanoseconds(sample["ts"]), (sample.get("pid"), sample.get("tid"))
        self.timed += 1
        if last := self._last.get(thread):
            last[1][2] += max(time - last[0], 0)
        self._last[thread] = time, cell

    def add_event(self, event: dict[str, Any]) -> list[int]:
        """Adds one sample; returns the cell in which it is counted.

        Raises KeyError, TypeError, ValueError or OverflowError (infinity) for an invalid one.
        """
        stack = event.get("sf")
        if stack is None:
            stack = tuple(str(name) for name in event["stack"])
        elif isinstance(stack, bool) or not isinstance(stack, int | str):
            raise TypeError("a stack that is no id")
        weight = round(float(event.get("weight", 1)))
        if not 0 <= weight < _MAX_WEIGHT:
            raise ValueError("a weight that is too large")
        pid, tid = event.get("pid"), event.get("tid")
        if not isinstance(pid, int | str | None) or not isinstance(tid, int | str | None):
            raise TypeError("an id that is neither a number nor a word")
        cell = self._cells.setdefault((pid, tid, stack), [0, 0, 0])
        cell[0] += 1
        cell[1] += weight
        self.count += 1
        return cell

    def sums(
        self, labels: Callable[[Any, Any], Labels], lose: Callable[[str, int], None]
    ) -> Iterator[tuple[Stack, tuple[int, ...], Labels]]:
        """(stack, (samples, weight, ns), labels), each combination once."""
        merged: dict[tuple[Stack, Labels], list[int]] = {}
        unknown = 0
        for (pid, tid, id_), values in self._cells.items():
            stack = (
                tuple(Frame(name or "[unknown]") for name in id_) if isinstance(id_, tuple) else self._stack(str(id_))
            )
            unknown += stack[:1] == (_UNKNOWN,)
            cell = merged.setdefault((stack, labels(pid, tid)), [0, 0, 0])
            cell[:] = map(add, cell, values)
        lose(_NO_FRAME, unknown)
        lose(_BAD, self._bad)
        for (stack, who), cell in merged.items():
            yield stack, tuple(cell), who

    def _stack(self, id_: str) -> Stack:
        """The stack from the frame up to its outermost parent; a cyclic chain ends where it repeats."""
        if (known := self._stacks.get(id_)) is not None:
            return known
        frames: list[Frame] = []
        seen: set[str] = set()
        at: Any = id_
        while at not in (None, "") and len(frames) < _MAX_DEPTH:
            entry = self._frames.get(str(at))
            if not isinstance(entry, dict) or str(at) in seen:
                frames.append(_UNKNOWN)
                break
            frames.append(Frame(str(entry.get("name") or "") or "[unknown]"))
            seen.add(str(at))
            at = entry.get("parent")
        stack = self._stacks[id_] = tuple(reversed(frames))
        return stack
