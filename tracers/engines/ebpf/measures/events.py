"""Events that the user named, counted by thread and stack: entries of functions, USDT probes, places of the kernel."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .....converters.model.calls import CallTimes
from .....converters.model.states import RUNNING
from ....images.maps import Mapping as MappedFile
from ....kernel.bpfobject import Link, Object, Program
from ....kernel.records import Origin
from ....kernel.sum_table import SLOTS
from ....kernel.uprobes import Way, best_way
from ....measures.events import Events
from ...rows import Row, Timed
from .event_probes import KERNELS, EventProbes
from .ioctl_records import NUMBER_SHIFT, plain
from .probed import NOT_LOOKED_INTO
from .protocol import SCHEDULER, Ended
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

_CONTEXTS = 7
"""Entries of scratch maps, one per context up to CONTEXT_EVENT: enum context of bpf/include/maps.bpf.h."""
_USER, _TRACEPOINT, _KERNEL = "events_user", "events_tracepoint", "events_kernel"


class EventsCollector(Summed):
    """Counts events by place, in the kernel."""

    name = Events.name
    programs = SCHEDULER
    entries = "new_events"
    table = "event_counts"
    value_size = 8

    def __init__(self, measure: Events, *, way: Way | None = None) -> None:
        """``way``: how the probes get to instructions; None: the best that the kernel has."""
        self.columns = measure.columns
        self._wanted, self._chosen, self._given_way = measure.wanted, measure.chosen, way
        self.modules = tuple(library.path for library in self._wanted.libraries)
        self.probed: EventProbes | None = None
        self._taken: list[tuple[Origin, int, int]] = []
        """Counts: where, the number of the probe, how often."""
        self._lost = self._bare = self._misses = 0
        self._before = 0, 0
        self._programs: list[Program] = []

    @property
    def way(self) -> Way:
        """Needs the privilege to load programs."""
        if self._given_way is None:
            self._given_way = best_way((Way.MULTI,))
        return self._given_way

    @property
    def on_files(self) -> bool:  # type: ignore[override]
        return bool(self._wanted.libraries)

    @property
    def placed(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.counting

    @property
    def counting(self) -> tuple[str, ...]:
        """The programs that count."""
        wanted = (
            (_USER, self._wanted.libraries),
            (_TRACEPOINT, self._chosen.tracepoints),
            (_KERNEL, self._chosen.functions),
        )
        return tuple(name for name, what in wanted if what)

    def attach_types(self) -> Mapping[str, int]:
        return {_USER: self.way.attach_type} if _USER in self.placed and self.way.attach_type else {}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS)

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add,)

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        self._taken = []

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        """The probes on files come when these are mapped."""
        way = self.way if self._wanted.libraries else Way.SINGLE
        self.probed = self.make_probes(loaded, way, suffix)
        try:
            self.probed.attach_in_kernel(self._chosen)
        except BaseException:
            self.probed.close()
            raise
        self._programs = [loaded.programs[name + suffix] for name in self.attached]
        return [self.probed]

    def make_probes(self, loaded: Object, way: Way, suffix: str) -> EventProbes:
        """Makes the probes on files and in the kernel; nothing is attached yet."""
        return EventProbes(loaded, way, suffix, self._wanted)

    @property
    def attached(self) -> tuple[str, ...]:
        """The programs at the events."""
        return self.counting

    def mapped(self, pid: int, mapping: MappedFile) -> None:
        if self.probed:
            self.probed.look(pid, mapping)

    def expect(self, path: str, *, is_program: bool) -> None:
        if self.probed:
            self.probed.expect(path, is_program=is_program)

    def read(self, loaded: Object) -> None:
        self.drain()
        losses = loaded.find_map("event_losses")
        self._lost = sum(int.from_bytes(value, "little") for value in losses.take_percpu(self.slot))
        self._bare = losses.lookup_percpu_u64(SLOTS)
        self._misses = sum(program.misses for program in self._programs)

    def next(self) -> None:
        super().next()
        self._taken = []
        self._before = self._bare, self._misses

    def close(self) -> None:
        super().close()
        if self.probed:
            self.probed.close()

    def rows(self, ended: Ended) -> list[Row]:
        self._take()
        return [Row(origin, RUNNING, (number,), call=self._probe(of)[0]) for origin, of, number in self._taken]

    def calls(self, ended: Ended) -> list[Timed]:
        """Calls without times: nothing is known of the returns."""
        self._take()
        counts = Counter[tuple[Origin, int]]()
        for origin, of, number in self._taken:
            counts[origin._replace(ustack=0, kstack=0, object=0), of] += number
        found = []
        for (origin, of), number in counts.items():
            name, path = self._probe(of)
            found.append(Timed(origin, CallTimes(name, "", origin.tgid, "", number, library=os.path.basename(path))))
        return found

    def functions(self) -> frozenset[tuple[str, str]]:
        if not self.probed:
            return frozenset()
        return frozenset((probe.path, probe.name) for probe in self.probed.probes() if probe.path != KERNELS)

    def losses(self) -> Mapping[str, int]:
        bare, misses = self._before
        return {
            "events": self._lost,
            "runs of probes, in any thread, that the kernel left out": self._misses - misses,
            "stacks of events": self._bare - bare,
            NOT_LOOKED_INTO: len(self.probed.problems) if self.probed else 0,
        }

    def remarks(self) -> Iterable[str]:
        yield from self.probed.remarks() if self.probed else ()

    def _take(self) -> None:
        for origin, (number,) in self.totals().take():
            self._taken.append((plain(origin), origin.state >> NUMBER_SHIFT, number))

    def _probe(self, number: int) -> tuple[str, str]:
        """Name and file of a probe."""
        assert self.probed
        name, path, _ = self.probed.functions[number]
        return name, path
