"""On-CPU samples: what a thread executes when a clock or a hardware counter interrupts it."""

from __future__ import annotations

import errno
import os
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .....converters.base.errors import StallscopeError
from .....converters.base.units import plural
from .....converters.model import ValueType
from .....converters.model.states import RUNNING
from ....kernel import perf_events
from ....kernel.bpfobject import Link, Object
from ....kernel.libbpf import BpfError
from ....kernel.records import RUNNING as RUNNING_STATE
from ....kernel.records import Origin
from .protocol import SCHEDULER, Ended, Row
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

_SUM = struct.Struct("<QQ")
_CONTEXTS = 2
"""Entries of scratch maps, one per context up to CONTEXT_SAMPLE: enum context of bpf/include/maps.bpf.h."""
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR, _EXCLUDE_IDLE = 1 << 0, 1 << 5, 1 << 6, 1 << 7
_NO_COUNTER = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENXIO, errno.ENODEV)
"""What the kernel says of a counter that is not there."""
_NSEC = 1_000_000_000


class Event(NamedTuple):
    """``type`` and ``config`` of struct perf_event_attr."""

    type: int
    config: int


def _cache(cache: int, result: int) -> Event:
    """Read accesses: PERF_COUNT_HW_CACHE_*."""
    return Event(perf_events.TYPE_CACHE, cache | result << 16)


CLOCK = "cpu-clock"
EVENTS = {
    CLOCK: Event(perf_events.TYPE_SOFTWARE, 0),
    "page-faults": Event(perf_events.TYPE_SOFTWARE, 2),
    "cycles": Event(perf_events.TYPE_HARDWARE, 0),
    "instructions": Event(perf_events.TYPE_HARDWARE, 1),
    "cache-references": Event(perf_events.TYPE_HARDWARE, 2),
    "cache-misses": Event(perf_events.TYPE_HARDWARE, 3),
    "branches": Event(perf_events.TYPE_HARDWARE, 4),
    "branch-misses": Event(perf_events.TYPE_HARDWARE, 5),
    "ref-cycles": Event(perf_events.TYPE_HARDWARE, 9),
    "L1-dcache-load-misses": _cache(0, 1),
    "LLC-load-misses": _cache(2, 1),
    "dTLB-load-misses": _cache(3, 1),
}
"""Names as in perf."""


class _Sum(NamedTuple):
    samples: int
    events: int


class OnCpu(Summed):
    """Columns: with the clock, time and samples; with another event, its count and samples.

    With the clock, the samples only give the shares of a thread's time: the time itself is the scheduler's, and exact.
    """

    name = "oncpu"
    programs = SCHEDULER
    placed = ("oncpu_sample",)
    entries = "new_samples"
    table = "samples"
    value_size = _SUM.size

    def __init__(
        self, frequency: int = 99, event: str = CLOCK, *, time: str = "on-cpu", one_by_one: bool = False
    ) -> None:
        """``frequency``: samples per second and core. ``event``: a key of `EVENTS`.

        ``time``: the name of the time column; columns of this name of other measures are added to it. ``one_by_one``:
        a timeline records the samples of the clock with their times, too.
        """
        self.frequency = frequency
        self.event = event
        weight = ValueType(time, "nanoseconds") if event == CLOCK else ValueType(event, "count")
        self.columns = (weight, ValueType("samples", "count"))
        # The interrupt of a counter may come while a core writes another event, that of the clock may not.
        self._one_by_one = one_by_one and event == CLOCK
        self._samples: dict[Origin, _Sum] = {}
        self._lost = 0
        self._blind: list[int] = []
        """CPUs whose event could not be opened."""

    def knobs(self) -> Mapping[str, int]:
        return {"timeline_samples": self._one_by_one}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS)

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        self._samples = {}

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add, np.add)

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        (name,) = self.placed
        links: list[Link] = []
        try:
            for cpu in perf_events.online_cpus():
                fd = self._open(cpu)
                if fd is None:
                    continue
                try:
                    links.append(loaded.programs[name + suffix].attach_perf_event(fd))
                except BpfError:
                    os.close(fd)
                    raise
        except BaseException:
            for link in links:
                link.close()
            raise
        return links

    def _open(self, cpu: int) -> int | None:
        """The event's descriptor; None for a CPU that just went offline."""
        event = EVENTS[self.event]
        flags = perf_events.FREQUENCY | _DISABLED | _EXCLUDE_IDLE
        attr = perf_events.Attr(type=event.type, config=event.config, sample_period=self.frequency, flags=flags)
        try:
            return perf_events.open_event(attr, cpu)
        except OSError as error:
            if error.errno == errno.ENODEV and event.type == perf_events.TYPE_SOFTWARE:
                self._blind.append(cpu)
                return None
            raise self._refusal(error) from None

    def check(self) -> None:
        """StallscopeError for an event that this machine does not count. What else the kernel refuses is not told."""
        event = EVENTS[self.event]
        if event.type == perf_events.TYPE_SOFTWARE:
            return
        flags = perf_events.FREQUENCY | _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
        attr = perf_events.Attr(type=event.type, config=event.config, sample_period=self.frequency, flags=flags)
        try:
            os.close(perf_events.open_event(attr, -1, 0))
        except OSError as error:
            if error.errno in _NO_COUNTER:
                raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> StallscopeError:
        cause = f"no samples of {self.event}: {error.strerror}"
        if EVENTS[self.event].type != perf_events.TYPE_SOFTWARE and error.errno in _NO_COUNTER:
            cause = f"this machine does not count {self.event}: it has no such hardware counter, or hides it from us"
            return StallscopeError(
                cause, f"leave --event out, to sample by {CLOCK}; few virtual machines have counters"
            )
        if error.errno == errno.EINVAL:
            return StallscopeError(cause, "ask for fewer samples: see /proc/sys/kernel/perf_event_max_sample_rate")
        return StallscopeError(cause, "`trace-doctor` says what is missing")

    def read(self, loaded: Object) -> None:
        self.drain()
        lost = loaded.find_map("lost_samples").take_percpu(self.slot)
        self._lost = sum(int.from_bytes(value, "little") for value in lost)

    def next(self) -> None:
        super().next()
        self._samples = {}

    def rows(self, ended: Ended) -> list[Row]:
        self._samples |= {origin: _Sum(*values) for origin, values in self.totals().take()}
        if self.event != CLOCK:
            return [Row(origin, RUNNING, (total.events, total.samples)) for origin, total in self._samples.items()]
        on_cpu: defaultdict[int, int] = defaultdict(int)
        for record in ended.threads:
            on_cpu[record.thread.first] += record.on_cpu
        threads: defaultdict[tuple[int, int], list[Origin]] = defaultdict(list)
        for origin in self._samples:
            # Of an unknown life: its record was lost, and the thread is only known by its id.
            first = ended.lives.get(origin.life, -1)
            threads[first, 0 if first >= 0 else origin.tid].append(origin)
        rows = []
        for (first, _), origins in threads.items():
            rows += self._shared_out(origins, on_cpu.pop(first, None))
        keys = {record.thread.first: record.thread.key for record in ended.threads}
        for first, time in on_cpu.items():
            if time:
                origin = keys[first]._replace(ustack=0, kstack=0, python=0, state=RUNNING_STATE)
                rows.append(Row(origin, RUNNING, (time, 0)))
        return rows

    def _shared_out(self, origins: list[Origin], time: int | None) -> list[Row]:
        """Splits ``time`` by numbers of samples; the parts sum to it. None: unknown; a sample counts as a period."""
        counts = [self._samples[origin].samples for origin in origins]
        if time is None:
            time = sum(counts) * _NSEC // self.frequency
        total, seen, given = sum(counts), 0, 0
        rows = []
        for origin, count in zip(origins, counts, strict=True):
            seen += count
            part = time * seen // total - given
            given += part
            rows.append(Row(origin, RUNNING, (part, count)))
        return rows

    def losses(self) -> Mapping[str, int]:
        return {"samples": self._lost}

    def remarks(self) -> Iterable[str]:
        if self._blind:
            yield f"{plural(len(self._blind), 'core')} went away as the trace began: not sampled"
