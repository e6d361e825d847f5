"""Calls one by one, with their times: spans on the timeline. A measure of calls keeps them if it is told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from .....converters.model.scheduling import OPEN, Array, CallName
from ....kernel.records import Origin
from ....measures.span_options import SpanOptions

SPAN = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),
        ("ustack", "<u8"),  # at its begin; 0: not known
        ("tid", "<i4"),
        ("name", "<i4"),
        ("life", "<u4"),
        ("level", "u1"),
    ]
)
"""Layout like `CALL`, with the id of its stack and the life of its thread."""

RECORD = np.dtype(
    [
        ("length", "<u4"),  # struct bpf_ringbuf_hdr
        ("page", "<u4"),
        ("begin", "<i8"),
        ("end", "<i8"),
        ("ustack", "<u8"),
        ("tid", "<i4"),
        ("function", "<u4"),
        ("level", "<u4"),
        ("life", "<u4"),
    ]
)
"""struct call_span of bpf/include/call_spans.bpf.h, behind the header of the ring buffer."""
_BLOCK = 1 << 16


class GoingOn(NamedTuple):
    """A call that had not returned; ``begin`` in CLOCK_MONOTONIC ns. Of ``origin``, the thread, its life and the user
    stack count."""

    begin: int
    origin: Origin
    number: int
    level: int


@dataclass(frozen=True)
class CallSpans:
    """Spans of calls of one measure. ``calls``: rows of `SPAN`; times are CLOCK_MONOTONIC ns, ``name`` is an index of
    ``names``."""

    calls: Array
    names: list[CallName]
    lost: int = 0
    dropped: int = 0


class Spans:
    """Keeps about ``limit`` of the calls that it gets, the newest or the first; exactly so many in the end."""

    def __init__(self, options: SpanOptions, level: int = 0) -> None:
        """``level``: of calls that are added without one."""
        self._options, self._level = options, level
        self._kept: Literal["newest", "first"] = options.kept
        self._blocks: deque[Array] = deque()
        self._fresh: list[Array] = []
        self._fresh_count = self._stored = 0
        self.dropped = 0
        """Calls beyond the limit."""
        self.short = 0
        """Calls that took too little time."""

    def add(self, **columns: Array | int) -> None:
        """Calls that returned: the columns of `SPAN`, equally long or one value for all. ``name``: the number of the
        function or command."""
        rows = np.zeros(len(np.atleast_1d(columns["begin"])), SPAN)
        for name, column in {"level": self._level, **columns}.items():
            rows[name] = column
        if self._options.over:
            long = rows["end"] - rows["begin"] > self._options.over
            self.short += len(rows) - int(long.sum())
            rows = rows[long]
        if self._kept == "first":
            left = max(self._options.limit - self._stored, 0)
            self.dropped += max(len(rows) - left, 0)
            rows = rows[:left]
        if len(rows):
            self._fresh.append(rows)
            self._fresh_count += len(rows)
            self._stored += len(rows)
        if self._fresh_count >= _BLOCK:
            self._seal()

    def _seal(self) -> None:
        self._blocks.append(np.concatenate(self._fresh))
        self._fresh, self._fresh_count = [], 0
        while self._kept == "newest" and self._stored - len(self._blocks[0]) >= self._options.limit:
            gone = len(self._blocks.popleft())
            self._stored -= gone
            self.dropped += gone

    def finish(self, named: Callable[[int], CallName], going_on: Iterable[GoingOn], lost: int) -> CallSpans:
        """All that was kept, with those that had not returned. ``named``: the name of a number."""
        if self._fresh:
            self._seal()
        still = [
            (each.begin, OPEN, each.origin.ustack, each.origin.tid, each.number, each.origin.life, each.level)
            for each in going_on
        ]
        calls = np.concatenate([*self._blocks, np.array(still, SPAN)])
        self._blocks.clear()
        # Calls are read core by core; the newest are those that ended last.
        excess = len(calls) - len(still) - self._options.limit
        if excess > 0:
            ended = np.flatnonzero(calls["end"] != OPEN)
            calls = np.delete(calls, ended[np.argsort(calls["end"][ended], kind="stable")[:excess]])
            self.dropped += excess
        numbers, names = np.unique(calls["name"], return_inverse=True)
        calls["name"] = names
        return CallSpans(calls, [named(int(number)) for number in numbers], lost, self.dropped)
