"""The rings of ioctl calls and of waits in them: two per core, in memory that is shared with the probes."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping

from ....kernel import perf_events
from ....kernel.bpfobject import Object
from ....kernel.shared_memory import unmap

_EVENTS = 1 << 18
"""Number of calls and waits that were not read yet, of all cores."""
_FEWEST = 1 << 11
"""Number of calls and waits that were not read yet, of a core, at least."""
_EVENT_SIZE, _RING_SIZE, _PLACE_SIZE = 32, 64, 16
_PLACE = struct.Struct("<2Q")
_PLACE_OFFSET = 32
"""Offset of ``first`` and ``slots`` in struct event_ring."""


class IoctlRings:
    """``memory``: of the events, of the rings, and of the events' places, once they are open."""

    def __init__(self, *, places: bool = False) -> None:
        """``places``: it is kept where the calls were made."""
        self._places = places
        online = len(perf_events.online_cpus())
        self._slots = max(_FEWEST, 1 << (_EVENTS // (2 * online)).bit_length() - 1)
        self.memory: list[mmap.mmap] = []

    def knobs(self) -> Mapping[str, int]:
        """See `Collector.knobs`."""
        return {"record_ioctl_places": 1} if self._places else {}

    def sizes(self) -> Mapping[str, int]:
        """See `Collector.sizes`."""
        events = 2 * len(perf_events.online_cpus()) * self._slots
        return {
            "ioctl_events": events,
            "ioctl_rings": 2 * perf_events.possible_cpus(),
            **({"ioctl_places": events} if self._places else {}),
        }

    def open(self, loaded: Object) -> None:
        """Maps the memory, and divides it among the cores."""
        sizes = self.sizes()
        for name, size in zip(sizes, (_EVENT_SIZE, _RING_SIZE, _PLACE_SIZE), strict=False):
            self.memory.append(mmap.mmap(loaded.find_map(name).fd, sizes[name] * size))
        places = [2 * cpu + kind for cpu in perf_events.online_cpus() for kind in (0, 1)]
        for i, place in enumerate(places):
            _PLACE.pack_into(self.memory[1], place * _RING_SIZE + _PLACE_OFFSET, i * self._slots, self._slots)

    def close(self) -> None:
        """Unmaps it; nothing may use it any more."""
        for memory in self.memory:
            unmap(memory)
        self.memory = []
