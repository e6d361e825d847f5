"""On-CPU samples: what a thread executes when a clock or a hardware counter interrupts it."""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .....converters.base.units import plural
from .....converters.model.states import RUNNING
from ....kernel import perf_events
from ....kernel.bpfobject import Link, Object
from ....kernel.libbpf import BpfError
from ....kernel.records import RUNNING as RUNNING_STATE
from ....kernel.records import Origin
from ....kernel.sampled_events import open_on, set_period
from ....measures.oncpu import OnCpu
from ...rows import Row
from .protocol import SCHEDULER, Ended
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

_SUM = struct.Struct("<QQ")
_CONTEXTS = 2
"""Entries of scratch maps, one per context up to CONTEXT_SAMPLE: enum context of bpf/include/maps.bpf.h."""
_NSEC = 1_000_000_000


class _Sum(NamedTuple):
    samples: int
    events: int


class OnCpuCollector(Summed):
    """Counts samples by place, in the kernel."""

    name = OnCpu.name
    programs = SCHEDULER
    placed = ("oncpu_sample",)
    entries = "new_samples"
    table = "samples"
    value_size = _SUM.size

    def __init__(self, measure: OnCpu) -> None:
        self.columns = measure.columns
        self.frequency = measure.frequency
        self._event, self._by_clock = measure.event, measure.by_clock
        # The interrupt of a counter may come while a core writes another event, that of the clock may not.
        self._one_by_one = measure.one_by_one and measure.by_clock
        self._samples: dict[Origin, _Sum] = {}
        self._object: Object | None = None
        self._lost = 0
        self.weight = 1
        """Number of samples for which one stands: they have become rarer."""
        self._fds: list[int] = []
        """Events, which the links close."""
        self._blind: list[int] = []
        """CPUs whose event could not be opened."""

    def knobs(self) -> Mapping[str, int]:
        return {"timeline_samples": self._one_by_one, "sample_weight": self.weight}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS)

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        self._samples = {}
        self._object = loaded

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add, np.add)

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        (name,) = self.placed
        links: list[Link] = []
        try:
            for cpu in perf_events.online_cpus():
                fd = open_on(cpu, self._event, self.frequency)
                if fd is None:
                    self._blind.append(cpu)
                    continue
                try:
                    links.append(loaded.programs[name + suffix].attach_perf_event(fd))
                    self._fds.append(fd)
                except BpfError:
                    os.close(fd)
                    raise
        except BaseException:
            for link in links:
                link.close()
            raise
        return links

    def halve(self) -> None:
        """Half as many samples from now on, each of which counts twice. The trace has to run, with a budget."""
        assert self._object, "it was not opened"
        self.weight *= 2
        for fd in self._fds:
            set_period(fd, _NSEC * self.weight // self.frequency)
        self._object.set_variable("sample_weight", self.weight)

    def read(self, loaded: Object) -> None:
        self.drain()
        lost = loaded.find_map("lost_samples").take_percpu(self.slot)
        self._lost = sum(int.from_bytes(value, "little") for value in lost)

    def next(self) -> None:
        super().next()
        self._samples = {}

    def rows(self, ended: Ended) -> list[Row]:
        self._samples |= {origin: _Sum(*values) for origin, values in self.totals().take()}
        if not self._by_clock:
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
                origin = keys[first]._replace(ustack=0, kstack=0, object=0, state=RUNNING_STATE)
                rows.append(Row(origin, RUNNING, (time, 0)))
        return rows

    def _shared_out(self, origins: list[Origin], time: int | None) -> list[Row]:
        """Splits ``time`` by numbers of samples; the parts sum to it. None: unknown; a sample counts as a period.

        If samples became rarer, ``events`` of a sum is the number for which they stand."""
        counts = [_standing_for(self._samples[origin], self.weight) for origin in origins]
        if time is None:
            time = sum(counts) * _NSEC // self.frequency
        total, seen, given = sum(counts), 0, 0
        rows = []
        for origin, count in zip(origins, counts, strict=True):
            seen += count
            part = time * seen // total - given
            given += part
            rows.append(Row(origin, RUNNING, (part, self._samples[origin].samples)))
        return rows

    def losses(self) -> Mapping[str, int]:
        return {"samples": self._lost}

    def remarks(self) -> Iterable[str]:
        if self._blind:
            yield f"{plural(len(self._blind), 'core')} went away as the trace began: not sampled"


def _standing_for(total: _Sum, weight: int) -> int:
    return total.events if weight > 1 else total.samples
