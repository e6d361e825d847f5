"""Reads the calls and waits of all cores from their rings, for who was inside at the same time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...sharing import EVENT, Sharing
from .recorder import RING
from .spans import Spans

PLACE = np.dtype([("ustack", "<u8"), ("life", "<u4"), ("pad", "<u4")])
"""struct ioctl_place."""


class SharedRings(Sharing):
    """The events of all cores."""

    SETTLED_FROM = 1 << 16
    """Number of events that are read before they are worked on."""

    def __init__(
        self,
        events: Any,
        rings: Any,
        device: Callable[[int], Hashable],
        spans: Spans | None = None,
        places: Any = b"",
    ) -> None:
        """``events`` and ``rings``: buffers with `EVENT` and `RING`. ``spans`` gets the calls; for that, ``places`` is
        a buffer with a `PLACE` for each of ``events``."""
        super().__init__(device)
        self._spans = spans
        self._events, self._rings = np.frombuffer(events, EVENT), np.frombuffer(rings, RING)
        self._places = np.frombuffer(places, PLACE)
        self._tails = self._rings["tail"].copy()
        self.lost = 0
        """Number of calls and waits that are missing."""

    def take(self) -> int:
        """Reads the new events; returns how many are to be worked on."""
        heads = self._rings["head"].copy()
        for ring in np.flatnonzero(heads != self._tails):
            first, slots = int(self._rings["first"][ring]), int(self._rings["slots"][ring])
            tail, count = int(self._tails[ring]), int(heads[ring] - self._tails[ring])
            place = tail & (slots - 1)
            upto = min(place + count, slots)
            self._add(slice(first + place, first + upto))
            self._add(slice(first, first + count - (upto - place)))
            self._rings["tail"][ring] = self._tails[ring] = heads[ring]
        self.lost = int(self._rings["lost"].sum())
        return sum(map(len, self._fresh))

    def _add(self, which: slice) -> None:
        events = self._events[which].copy()
        self._fresh.append(events)
        if self._spans:
            are_calls = events["is_wait"] == 0
            calls, at = events[are_calls], self._places[which][are_calls]
            self._spans.add(
                begin=calls["begin"],
                end=calls["end"],
                tid=calls["tid"],
                name=calls["number"],
                ustack=at["ustack"],
                life=at["life"],
            )

    def close(self) -> None:
        """Releases the buffers: nothing is written any more."""
        self._events, self._rings, self._places = np.zeros(0, EVENT), np.zeros(0, RING), np.zeros(0, PLACE)
