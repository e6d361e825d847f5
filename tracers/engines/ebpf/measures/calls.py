"""Calls of functions in libraries: which, how long, whether they failed, and what the thread did meanwhile."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from .....converters.base.units import plural, share
from .....converters.model.calls import BUCKETS, LEFT, WITHOUT_PROBE, CallTimes
from .....converters.model.states import PREEMPTED, RUNNING, WOKEN
from ....images.maps import Mapping as MappedFile
from ....kernel.bpfobject import Link, Object
from ....kernel.records import NEW, STATES, Origin
from ....kernel.records import PREEMPTED as SWITCHED_OUT
from ....kernel.records import RUNNING as ON_A_CORE
from ....kernel.sum_table import SumTable
from ....kernel.uprobes import Way, best_way
from ....measures.calls import Calls
from ....measures.ioctl import Ioctl
from ....probe_targets import cuda, results
from ...rows import Row, Timed
from .call_parts import OTHER_FUNCTIONS, CallParts
from .ioctl_records import NUMBER_SHIFT, plain
from .leaving import Leaving
from .open_calls import DEPTH, HEAD, Inside, Open, Part, open_calls, parts, waits_of_ioctl
from .probed import NOT_LOOKED_INTO, Probed
from .protocol import SCHEDULER, Ended
from .recorded_arguments import RecordedArguments
from .recorded_calls import PERIOD, RecordedCalls
from .slow_calls import SlowCalls
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

    from .....converters.collectives.records import CallTable
    from .....converters.model.call_ioctls import CallIoctls
    from .....converters.model.copies import Copies
    from .call_sums import CallSums, Sum
    from .ioctl import IoctlCollector
    from .protocol import Collector
    from .spans import CallSpans
    from .totals import Moved

_CONTEXTS = 4
"""Entries of scratch maps, one per context up to CONTEXT_CALL and more: enum context of bpf/include/maps.bpf.h."""
_INSIDE = 1 << 14
"""Threads that can be inside a call at a time."""
_KINDS = 8
"""One function of a thread, and one kind of its errors, per so many entries of the user's choice: CALL_KINDS of
bpf/include/call_sums.bpf.h."""
_TIME = struct.Struct("<4Q")
_KEY = struct.Struct("<4I")
_SUM = struct.Struct(f"<11Q{BUCKETS}I")
_FAILURE = struct.Struct("<4IiI")
TOO_DEEP = f"calls inside {DEPTH} others"
"""Kind of loss: calls that are not counted, whose time is that of the innermost of the others."""
_LOSSES = (
    "calls",
    "calls without a stack in the table",
    "errors of calls",
    "stacks of calls",
    "ioctls in calls",
    "copies",
    TOO_DEEP,
)
"""enum call_loss, in its order; two counters of the probes' cost follow, and that of stacks cut."""


class Time(NamedTuple):
    """Time of calls at one origin: struct call_time, in ns."""

    calls: int
    on_cpu: int
    blocked: int
    runnable: int


def _time(values: Sequence[int]) -> Time:
    """The sums of a place. What a thread waited in inner calls is taken off the time of the outer ones: where a switch
    was missed, that can be more than they have, and the sum of 64 bits wraps."""
    return Time(*(0 if value >> 63 else value for value in values))


class Cost(NamedTuple):
    """Cost of the programs in traced threads: how often they ran, and for how long in ns."""

    runs: int
    ns: int


class CallsCollector(Summed):
    """Adds up calls by place and function, in the kernel."""

    name = Calls.name
    PROBES, BEGIN = ("calls_session", "calls_enter", "calls_return"), "calls_begin"
    """Programs at functions: for entry and return, for the entry, for the return; for functions with a probe at their
    entry only."""
    programs = SCHEDULER
    entries = "new_calls"
    table = "call_times"
    value_size = _TIME.size
    weights = (1, 2, 3)

    def __init__(self, measure: Calls, *, way: Way | None = None) -> None:
        """``way``: how the probes get to the functions; None: the best that the kernel has."""
        wanted, spans, over = measure.wanted, measure.spans, measure.over
        self.columns = measure.columns
        self._recorded = RecordedCalls(spans)
        self._arguments = RecordedArguments(measure.arguments, self._name)
        self.period = PERIOD if spans or measure.arguments else None
        self.wanted, self._given_way = wanted, way
        self.modules = (cuda.DRIVER, *(library.path for library in wanted.libraries))
        self._ioctls: IoctlCollector | None = None
        """Another one of the trace, whose ioctls are parts of the calls."""
        self._parts = CallParts()
        self._slow = SlowCalls(over)
        self._inside: dict[int, Inside] = {}
        self.probed: Probed | None = None
        self._tables: dict[str, SumTable] = {}
        self._sums: CallSums | None = None
        self._open: list[Open] = []
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._lost_before = dict(self._lost)
        self._cost = self._cost_before = Cost(0, 0)
        self._cut_stacks = self._cut_before = 0
        self.leaving: Leaving | None = None
        self._ran = 0
        """Time of the traced threads on cores."""

    def beside(self, others: Sequence[Collector]) -> None:
        ioctls = (cast("IoctlCollector", each) for each in others if each.name == Ioctl.name)
        self._ioctls = next((each for each in ioctls if not each.is_alone), None)

    @property
    def way(self) -> Way:
        """Needs the privilege to load programs."""
        if self._given_way is None:
            self._given_way = best_way()
        return self._given_way

    on_files = True

    @property
    def placed(self) -> tuple[str, ...]:  # type: ignore[override]
        begin = (self.BEGIN,) if self._arguments.is_on else ()
        return (*(self.PROBES[:1] if self.way is Way.SESSION else self.PROBES[1:]), *begin)

    def attach_types(self) -> Mapping[str, int]:
        types = {name: (Way.MULTI if name == self.BEGIN else self.way).attach_type for name in self.placed}
        return types if self.way.attach_type else {}

    def knobs(self) -> Mapping[str, int]:
        return {"measure_calls": 1, **self._recorded.knobs(), **self._arguments.knobs(), **self._slow.knobs()}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {
            **self._recorded.sizes(),
            **self._arguments.sizes(),
            "call_stacks": _INSIDE,
            **dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS),
        }

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add,) * 4

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        self._recorded.open(loaded)
        self._arguments.open(loaded)
        few = max(entries // _KINDS, 1024)
        self._tables = {
            "call_sums": SumTable(loaded, "call_sums", _SUM.size, few, key_size=_KEY.size),
            "call_failures": SumTable(loaded, "call_failures", 8, few, key_size=_FAILURE.size),
        }
        self.leaving = Leaving(loaded, self._tables["call_sums"])
        self._parts.open(loaded, few)
        self._slow.open(loaded, few)

    def consume(self) -> None:
        self._recorded.consume()
        self._arguments.consume()

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        """The probes on functions come when files are mapped."""
        both, enter, end = (name + suffix for name in self.PROBES)
        self.probed = Probed(loaded, self.way, (both, enter, end), self.wanted, self.BEGIN + suffix)
        return [self.probed]

    def mapped(self, pid: int, mapping: MappedFile) -> None:
        if self.probed:
            self.probed.look(pid, mapping)

    def expect(self, path: str, *, is_program: bool) -> None:
        if self.probed:
            self.probed.expect(path, is_program=is_program)

    def drain(self) -> None:
        super().drain()
        self._call_sums().add(*self._tables["call_sums"].drain(self.slot))
        self._call_sums().add_failures(*self._tables["call_failures"].drain(self.slot))
        self._parts.drain(self.slot)
        self._slow.drain(self.slot)

    def stepped_calls(self) -> int:
        return self.leaving.stepped_calls(self.probed, self.slot) if self.leaving and self.probed else 0

    def _call_sums(self) -> CallSums:
        if self._sums is None:
            # It needs numpy, which takes longer to import than the probes to attach.
            from .call_sums import CallSums

            self._sums = CallSums()
        return self._sums

    def move(self, moved: Moved) -> None:
        super().move(moved)
        self._call_sums().move(moved)
        self._parts.move(moved)
        self._slow.move(moved)

    def read(self, loaded: Object) -> None:
        self.drain()
        stacks = [(int.from_bytes(tid, "little"), value) for tid, value in loaded.find_map("call_stacks").items()]
        if self.probed and self.probed.is_closed:  # the trace has ended, not only an interval of it
            self._open = open_calls(stacks)
            if self.leaving:
                self._open = self.leaving.remembered(self._open)
            self._inside = self._inside_of(stacks)
        losses = loaded.find_map("call_losses")
        self._lost = {kind: losses.lookup_percpu_u64(i) for i, kind in enumerate(_LOSSES)}
        heads = [HEAD.unpack_from(value) for _, value in stacks]
        gone = (losses.lookup_percpu_u64(len(_LOSSES) + i) for i in (0, 1))
        self._cost = Cost(*(number + sum(head[2 + i] for head in heads) for i, number in enumerate(gone)))
        self._cut_stacks = losses.lookup_percpu_u64(len(_LOSSES) + 2)
        self._slow.read(losses.lookup_percpu_u64(len(_LOSSES) + 3))
        self._recorded.read(loaded)
        self._arguments.read(loaded)

    def next(self) -> None:
        super().next()
        self._call_sums().clear()
        self._parts.clear()
        self._slow.next()
        self._lost_before, self._cost_before = self._lost, self._cost
        self._cut_before = self._cut_stacks

    def close(self) -> None:
        super().close()
        for table in self._tables.values():
            table.close()
        self._parts.close()
        self._slow.close()
        if self.probed:
            self.probed.close()
        self._recorded.close()
        self._arguments.close()

    def rows(self, ended: Ended) -> list[Row]:
        self._ran = sum(record.on_cpu for record in ended.threads)
        rows = [row for origin, values in self.totals().take() for row in self._rows(origin, _time(values))]
        rows += [row for part in self._going_on(ended) for row in self._open_rows(part)]
        self._slow.take()
        processes = {record.thread.key.tid: record.thread.key.tgid for record in ended.threads if not record.exited}
        for place, *times in self._slow.waits(self._slow.going_on(self._open, ended)):
            if place.tid in processes:
                rows += self._rows(place._replace(tgid=processes[place.tid]), Time(0, 0, *times), is_open=True)
        return rows

    def _going_on(self, ended: Ended) -> list[Part]:
        return parts(self._slow.going_on(self._open, ended), ended, self._inside)

    def _inside_of(self, stacks: Iterable[tuple[int, bytes]]) -> dict[int, Inside]:
        """Ioctls that threads were in at the end, by thread. ``stacks``: of the map ``call_stacks``."""
        going_on = self._ioctls.inside() if self._ioctls else {}
        found = {}
        for tid, value in stacks:
            if call := going_on.get(tid):
                waits = waits_of_ioctl(value, call.began)
                found[tid] = Inside(call.began, call.origin.ustack, call.target, *waits)
        return found

    def call_ioctls(self, ended: Ended) -> list[tuple[Origin, CallIoctls]]:
        if self._ioctls is None or self.probed is None:
            return []
        return self._parts.ioctls(self.probed.functions, self._ioctls.described, self._going_on(ended))

    def copies(self) -> list[tuple[Origin, Copies]]:
        return self._parts.copies(self.probed.functions) if self.probed else []

    def calls(self, ended: Ended) -> list[Timed]:
        found: dict[tuple[Origin, int], CallTimes] = {}
        for origin, function, total in self._call_sums().sums():
            _add(self._entry(found, origin, function), total)
        for part in self._going_on(ended):
            entry = self._entry(found, part.origin._replace(ustack=0), part.function)
            entry.open_count += 1
            entry.open_time += part.whole
            entry.open_inner += part.inner
        for origin, function, code, number in self._call_sums().failures():
            entry = self._entry(found, origin, function)
            if error := results.error_name(entry.name, code):
                entry.errors[error] = entry.errors.get(error, 0) + number
        return [Timed(origin, call) for (origin, _), call in found.items()]

    def spans(self) -> CallSpans | None:
        return self._recorded.finish(self._name, self._open)

    def collectives(self, ended: Ended) -> CallTable | None:
        users = self.probed.users(self._arguments.keeps) if self.probed else frozenset[int]()
        return self._arguments.finish(self._open, ended.began, self.leaving.first if self.leaving else 0, users)

    def is_needed(self, function: int) -> bool:
        """Whether a function's calls are asked for one by one, with their arguments: without one, others tell less."""
        return self._arguments.keeps(self._name(function))

    def _name(self, function: int) -> str:
        assert self.probed
        return self.probed.functions[function].name

    def functions(self) -> frozenset[tuple[str, str]]:
        return frozenset((probe.path, probe.name) for probe in self.probed.probes()) if self.probed else frozenset()

    def losses(self) -> Mapping[str, int]:
        lost = {kind: number - self._lost_before[kind] for kind, number in self._lost.items()}
        lost[NOT_LOOKED_INTO] = len(self.probed.problems) if self.probed else 0
        lost |= self._arguments.losses()
        refused = len(self.probed.functions) - len(self.probed.probes()) if self.probed else 0
        return lost | ({WITHOUT_PROBE: refused} if refused else {})

    def remarks(self) -> Iterable[str]:
        yield from self.probed.remarks() if self.probed else ()
        runs, ns = (after - before for after, before in zip(self._cost, self._cost_before, strict=True))
        if runs > 0:
            cost = f"{ns / runs:.0f} ns each in the programs"
            cost += f", {share(ns, self._ran)} of the threads' time on cores" if self._ran else ""
            yield f"the probes ran {plural(runs, 'time')} in traced threads, {cost}; traps come on top"
        if number := self._cut_stacks - self._cut_before:
            yield f"stacks of waits and ioctls that have the traced function, and nothing inside of it: {number:,}"
        yield from self._slow.remarks([probe.name for probe in self.probed.functions] if self.probed else [])
        yield from self._recorded.remarks()
        yield from self._arguments.remarks()
        yield from self._remarks_on_open()

    def _remarks_on_open(self) -> Iterator[str]:
        if number := len(self._open):
            yield f"{plural(number, 'call')} had not ended: their time is in the picture, up to the end"

    def _rows(self, origin: Origin, time: Time, *, is_open: bool = False) -> Iterator[Row]:
        number, origin = origin.state >> NUMBER_SHIFT, plain(origin)
        name = " ".join(self._ioctls.described(number)) if number and self._ioctls else ""
        state = origin.state
        if state == ON_A_CORE:
            yield Row(origin, RUNNING, (time.on_cpu, time.calls), is_open, name)
        elif state in (SWITCHED_OUT, NEW):
            yield Row(origin, PREEMPTED, (time.blocked + time.runnable, 0), is_open, name)
        else:
            yield Row(origin, STATES[state], (time.blocked, 0), is_open, name)
            if time.runnable:
                yield Row(origin, WOKEN, (time.runnable, 0), is_open, name)

    def _open_rows(self, part: Part) -> Iterator[Row]:
        """Rows of a call that goes on: its own time on a core, that of its ioctl, and of the innermost one the wait
        that its thread is in."""
        yield from self._rows(part.origin, Time(0, part.on_cpu, 0, 0), is_open=True)
        if part.ioctl_origin:
            yield from self._rows(part.ioctl_origin, Time(0, part.ioctl_on_cpu, 0, 0), is_open=True)
        if part.wait:
            yield from self._rows(part.wait, Time(0, 0, part.blocked, part.runnable), is_open=True)

    def _entry(self, found: dict[tuple[Origin, int], CallTimes], origin: Origin, function: int) -> CallTimes:
        assert self.probed
        if (origin, function) not in found:
            name, path = OTHER_FUNCTIONS
            if function >= 0:
                name, path, _ = self.probed.functions[function]
            found[origin, function] = CallTimes(name, "", origin.tgid, "", library=os.path.basename(path))
        return found[origin, function]


def _add(entry: CallTimes, total: Sum) -> None:
    if total.returned:
        entry.min = min(entry.min, total.min) if entry.count else total.min
        entry.max = max(entry.max, total.max)
    entry.count += total.returned
    entry.total += total.total
    entry.inner += total.total - total.own
    entry.blocked += total.blocked
    entry.runnable += total.runnable
    entry.open_count += total.open
    entry.open_time += total.open_time
    entry.open_inner += total.open_inner
    if total.left:
        entry.errors[LEFT] = entry.errors.get(LEFT, 0) + total.left
    known = entry.latencies or (0,) * BUCKETS
    entry.latencies = tuple(map(sum, zip(known, total.latencies, strict=True)))
