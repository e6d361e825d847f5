"""The timeline: every switch, wake-up, creation and exit, one by one, with the stacks of waits."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .....converters.model.processes import LATENCY_BUCKETS
from ....kernel import perf_events
from ....kernel.bpfobject import Link, Object
from ....kernel.records import RECORD_EXIT
from ....kernel.shared_memory import unmap
from ....measures.timeline import Timeline
from ...rows import Row
from .protocol import SCHEDULER, Collector, Ended, Recorded

if TYPE_CHECKING:
    from .recorder import Recorder

SLOT = 64
"""Bytes of a struct sched_event, and of a struct event_ring."""
_FEWEST = 1 << 12
"""Minimum number of slots of a core."""
_PLACE = struct.Struct("<2Q")
_PLACE_OFFSET = 32
"""Offset of ``first`` and ``slots`` in struct event_ring."""
_EXIT_HEAD = struct.Struct("<IIQ16sQ")
"""Begin of a struct thread_record, up to ``thread.start``."""
_EXITED_TID = 32 + 8 * 8 + 8 * 8 + 8 + LATENCY_BUCKETS * 4 + 24
"""Offset of ``thread.key.tid`` and ``thread.key.tgid``."""


_FOREVER = (1 << 63) - 1


class TimelineCollector(Collector):
    """Has no rows: its result is `Recorded`, beside the rows of other measures."""

    name = Timeline.name
    columns = ()
    programs = (*SCHEDULER, "timeline_waking", "timeline_new")
    period = 0.02

    def __init__(self, measure: Timeline) -> None:
        self._limit, self._kept, self._every_switch = measure.limit, measure.kept, measure.every_switch
        buffer_bytes = measure.buffer_bytes
        self._cores = perf_events.possible_cpus()
        online = len(perf_events.online_cpus())
        self._slots = max(_FEWEST, 1 << (max(buffer_bytes // SLOT // online, 1).bit_length() - 1))
        self._places = online * self._slots
        self._exits = bytearray()
        self._leaving: set[tuple[int, int]] = set()
        self._recorder: Recorder | None = None
        self._seeded = 0
        self._begin, self._end = 0, _FOREVER
        """Times of the present interval."""
        self._memory: list[mmap.mmap] = []

    def knobs(self) -> Mapping[str, int]:
        return {"measure_timeline": 1}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {"timeline_events": self._places, "timeline_rings": self._cores}

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        for name, entries in self.sizes(0).items():
            self._memory.append(mmap.mmap(loaded.find_map(name).fd, entries * SLOT))
        rings = self._memory[1]
        for i, cpu in enumerate(perf_events.online_cpus()[: self._places // self._slots]):
            _PLACE.pack_into(rings, cpu * SLOT + _PLACE_OFFSET, i * self._slots, self._slots)
        return []

    def on_record(self, data: bytes) -> bool:
        """Takes the time of an exit, and leaves the record to others."""
        if int.from_bytes(data[:4], "little") == RECORD_EXIT:
            _, cpu, end, _, start = _EXIT_HEAD.unpack_from(data)
            tid, tgid = struct.unpack_from("<II", data, _EXITED_TID)
            # It is sent when the thread begins to exit, and again at its last switch.
            if (tid, start) in self._leaving:
                self._leaving.remove((tid, start))
            else:
                self._leaving.add((tid, start))
                self._exits += struct.pack("<qHii", end, cpu, tid, tgid)
        return False

    def seeded(self) -> None:
        self._seeded = time.monotonic_ns()

    def consume(self) -> None:
        self._take()

    def _take(self) -> Recorder:
        if self._recorder is None:
            # It needs numpy, which takes longer to import than the probes to attach.
            from .recorder import Recorder

            events, rings = self._memory
            self._recorder = Recorder(events, rings, self._limit, self._kept)
        self._recorder.take()
        return self._recorder

    def read(self, loaded: Object) -> None:
        self._take()

    def ends(self, at: int) -> None:
        self._end = at

    def next(self) -> None:
        assert self._recorder is not None, "the interval was read"
        self._recorder.begin(self._end)
        self._exits = bytearray(self._exits_within(self._end, _FOREVER))
        self._begin, self._end = self._end, _FOREVER

    def _exits_within(self, begin: int, end: int) -> bytes:
        import numpy as np

        from .....converters.model.scheduling import EXIT

        exits = np.frombuffer(bytes(self._exits), EXIT)
        return exits[(exits["time"] >= begin) & (exits["time"] < end)].tobytes()

    def rows(self, ended: Ended) -> list[Row]:
        return []

    def recorded(self, ended: Ended) -> Recorded:
        assert self._recorder is not None, "nothing was read"
        self._recorder.close()
        for memory in self._memory:
            unmap(memory)
        exits = bytes(self._exits)
        if self._begin or self._end != _FOREVER:
            self._recorder.within(self._begin, self._end)
            exits = self._exits_within(self._begin, self._end)
        return self._recorder.finish(ended, exits, self._seeded, every_switch=self._every_switch)

    def lost_so_far(self, counters: Mapping[str, int]) -> int:
        return self._recorder.lost if self._recorder else 0

    def remarks(self) -> list[str]:
        if self._recorder and self._recorder.lost:
            return ["scheduler events came faster than they were read: raise --event-buffer, or trace fewer processes"]
        return []
