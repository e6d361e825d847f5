"""Calls of functions in libraries: which, how long, whether they failed, and what the thread did meanwhile."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...converters.base.units import plural
from ...converters.model import ValueType
from ...converters.model.calls import BUCKETS, CallTimes
from ...converters.model.states import PREEMPTED, RUNNING, WOKEN
from ..apis import cuda
from ..apis.wanted import Wanted
from ..images.maps import Mapping as MappedFile
from ..kernel.bpfobject import Link, Object
from ..kernel.records import NEW, STATES, Origin
from ..kernel.records import PREEMPTED as SWITCHED_OUT
from ..kernel.records import RUNNING as ON_A_CORE
from ..kernel.sum_table import SumTable
from ..kernel.uprobes import Way, best_way
from .open_calls import HEAD, Open, Part, open_calls, parts
from .probed import Probed
from .protocol import SCHEDULER, Ended, Row
from .span_options import SpanOptions
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

    from .spans import CallSpans, SpanRing, Spans

TIME = ValueType("calls", "nanoseconds")
CALLS = ValueType("calls", "count")
_USUAL = Wanted()
LEFT = "left without a return"
"""Named like an error: longjmp, an exception."""
_CONTEXTS = 4
"""Entries of scratch maps, one per context up to CONTEXT_CALL and more: enum context of bpf/include/maps.bpf.h."""
_INSIDE = 1 << 14
"""Threads that can be inside a call at a time."""
_KINDS = 8
"""One function of a thread, and one kind of error of a process, per so many entries of the user's choice."""
_SPAN_PERIOD = 0.02
"""Seconds between two looks at the ring of spans."""
_TIME = struct.Struct("<4Q")
_KEY = struct.Struct("<4I")
_SUM = struct.Struct(f"<11Q{BUCKETS}I")
_FIGURES = 11
_FAILURE = struct.Struct("<IIIi")
_LOSSES = ("calls", "calls without a stack in the table", "errors of calls", "stacks of calls")
"""enum call_loss, in its order; two counters of the probes' cost follow."""
_PROGRAMS = ("calls_session", "calls_enter", "calls_return")


class Time(NamedTuple):
    """Of calls at one origin: struct call_time, in ns."""

    calls: int
    on_cpu: int
    blocked: int
    runnable: int


class Sum(NamedTuple):
    """Of one function's calls by a thread; times in ns."""

    returned: int
    total: int
    own: int
    """Without the calls that were made inside."""
    blocked: int
    runnable: int
    min: int
    max: int
    left: int
    open: int
    open_time: int
    open_inner: int
    latencies: tuple[int, ...]


class Calls(Summed):
    """Columns: time inside calls, and how many returned. Time is counted for the innermost call."""

    name = "calls"
    columns = (TIME, CALLS)
    programs = SCHEDULER
    entries = "new_calls"
    table = "call_times"
    value_size = _TIME.size
    weights = (1, 2, 3)

    def __init__(self, wanted: Wanted = _USUAL, *, way: Way | None = None, spans: SpanOptions | None = None) -> None:
        """``way``: how the probes get to the functions; None: the best that the kernel has. ``spans``: which calls are
        kept one by one, for a timeline."""
        self._span_options = spans
        self.period = _SPAN_PERIOD if spans else None
        self._loaded: Object | None = None
        self._span_ring: SpanRing | None = None
        self._spans: Spans | None = None
        self._spans_lost = self._spans_short = 0
        self._wanted, self._given_way = wanted, way
        self.probed: Probed | None = None
        self._tables: dict[str, SumTable] = {}
        self._sums: list[tuple[int, int, Sum]] = []
        """Process, function, and what its calls took in one thread."""
        self._failures: list[tuple[int, int, int, int]] = []
        """Process, function, result, number of calls."""
        self._open: list[Open] = []
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._probes = self._probes_time = 0

    @property
    def way(self) -> Way:
        """Needs the privilege to load programs."""
        if self._given_way is None:
            self._given_way = best_way()
        return self._given_way

    @property
    def placed(self) -> tuple[str, ...]:  # type: ignore[override]
        return _PROGRAMS[:1] if self.way is Way.SESSION else _PROGRAMS[1:]

    def attach_types(self) -> Mapping[str, int]:
        return dict.fromkeys(self.placed, self.way.attach_type) if self.way.attach_type else {}

    def knobs(self) -> Mapping[str, int]:
        spans = {"record_call_spans": 1, "call_span_over": self._span_options.over} if self._span_options else {}
        return {"measure_calls": 1, **spans}

    def sizes(self, entries: int) -> Mapping[str, int]:  # noqa: ARG002
        spans = {"call_spans": self._span_options.buffer_bytes} if self._span_options else {}
        return {
            **spans,
            "call_stacks": _INSIDE,
            **dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS),
        }

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add,) * 4

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        self._loaded = loaded
        few = max(entries // _KINDS, 1024)
        self._tables = {
            "call_sums": SumTable(loaded, "call_sums", _SUM.size, few, key_size=_KEY.size),
            "call_failures": SumTable(loaded, "call_failures", 8, few, key_size=_FAILURE.size),
        }

    def consume(self) -> None:
        if not (self._span_options and self._loaded):
            return
        if self._span_ring is None or self._spans is None:
            # It needs numpy, which takes longer to import than the probes to attach.
            from .spans import SpanRing, Spans

            self._span_ring = SpanRing(self._loaded.find_map("call_spans"))
            self._spans = Spans(self._span_options)
        found = self._span_ring.take()
        if len(found):
            self._spans.add(*(found[name] for name in ("begin", "end", "tid", "number", "level")))

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        """The probes on functions come when files are mapped."""
        both, enter, end = (name + suffix for name in _PROGRAMS)
        self.probed = Probed(loaded, self.way, (both, enter, end), self._wanted)
        return [self.probed]

    def mapped(self, pid: int, mapping: MappedFile) -> None:
        if self.probed:
            self.probed.look(pid, mapping)

    def expect(self, path: str, *, is_program: bool) -> None:
        if self.probed:
            self.probed.expect(path, is_program=is_program)

    def read(self, loaded: Object) -> None:
        self.drain()
        keys, values = self._tables["call_sums"].drain(self.slot)
        sums = (Sum._make((*fields[:_FIGURES], fields[_FIGURES:])) for fields in _SUM.iter_unpack(values))
        self._sums = [
            (tgid, function, total) for (_, tgid, _, function), total in zip(_KEY.iter_unpack(keys), sums, strict=True)
        ]
        keys, values = self._tables["call_failures"].drain(self.slot)
        numbers = (number for (number,) in struct.iter_unpack("<Q", values))
        self._failures = [
            (tgid, function, code, number)
            for (tgid, _, function, code), number in zip(_FAILURE.iter_unpack(keys), numbers, strict=True)
        ]
        stacks = [(int.from_bytes(tid, "little"), value) for tid, value in loaded.find_map("call_stacks").items()]
        if self.probed and self.probed.is_closed:  # the trace has ended, not only an interval of it
            self._open = open_calls(stacks)
        losses = loaded.find_map("call_losses")
        self._lost = {kind: losses.lookup_percpu_u64(i) for i, kind in enumerate(_LOSSES)}
        heads = [HEAD.unpack_from(value) for _, value in stacks]
        self._probes = losses.lookup_percpu_u64(len(_LOSSES)) + sum(head[2] for head in heads)
        self.consume()
        if self._span_options:
            counts = loaded.find_map("call_span_counts")
            self._spans_lost, self._spans_short = (counts.lookup_percpu_u64(i) for i in (0, 1))
        self._probes_time = losses.lookup_percpu_u64(len(_LOSSES) + 1) + sum(head[3] for head in heads)

    def next(self) -> None:
        super().next()
        self._sums, self._failures = [], []

    def close(self) -> None:
        super().close()
        for table in self._tables.values():
            table.close()
        if self.probed:
            self.probed.close()
        if self._span_ring:
            self._span_ring.close()
            self._span_ring = None
        self._loaded = None

    def rows(self, ended: Ended) -> list[Row]:
        rows = [row for origin, values in self.totals().take() for row in _rows(origin, Time(*values))]
        rows += [row for part in parts(self._open, ended) for row in _open_rows(part)]
        return rows

    def calls(self, ended: Ended) -> list[CallTimes]:
        """Per process and function. Processes have no name yet."""
        found: dict[tuple[int, int], CallTimes] = {}
        for tgid, function, total in self._sums:
            _add(self._entry(found, tgid, function), total)
        for part in parts(self._open, ended):
            entry = self._entry(found, part.tgid, part.function)
            entry.open_count += 1
            entry.open_time += part.whole
            entry.open_inner += part.inner
        for tgid, function, code, number in self._failures:
            entry = self._entry(found, tgid, function)
            error = cuda.error_name(entry.name, code)
            entry.errors[error] = entry.errors.get(error, 0) + number
        return list(found.values())

    def spans(self) -> CallSpans | None:
        if not self._spans:
            return None
        from ...converters.model.scheduling import CallName
        from .spans import GoingOn

        going_on = [GoingOn(call.began, call.tid, call.function, call.depth) for call in self._open]
        return self._spans.finish(lambda number: CallName(self._name(number)), going_on, self._spans_lost)

    def _name(self, function: int) -> str:
        assert self.probed
        return self.probed.functions[function].name

    def functions(self) -> frozenset[tuple[str, str]]:
        return frozenset((probe.path, probe.name) for probe in self.probed.functions) if self.probed else frozenset()

    def losses(self) -> Mapping[str, int]:
        return {**self._lost, "files not looked into": len(self.probed.problems) if self.probed else 0}

    def remarks(self) -> Iterable[str]:
        yield from self.probed.remarks() if self.probed else ()
        if self._probes:
            programs = f"{self._probes_time / self._probes:.0f} ns each in the programs"
            yield f"the probes ran {plural(self._probes, 'time')} in traced threads, {programs}; traps come on top"
        if self._span_options:
            yield from self._span_options.remarks("call", self._spans_short)
        if number := len(self._open):
            yield f"{plural(number, 'call')} had not ended: their time is in the picture, up to the end"

    def _entry(self, found: dict[tuple[int, int], CallTimes], tgid: int, function: int) -> CallTimes:
        assert self.probed
        probe = self.probed.functions[function]
        key = tgid, function
        if key not in found:
            found[key] = CallTimes(probe.name, "", tgid, "", library=os.path.basename(probe.path))
        return found[key]


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


def _rows(origin: Origin, time: Time, *, is_open: bool = False) -> Iterator[Row]:
    state = origin.state
    if state == ON_A_CORE:
        yield Row(origin, RUNNING, (time.on_cpu, time.calls), is_open)
    elif state in (SWITCHED_OUT, NEW):
        yield Row(origin, PREEMPTED, (time.blocked + time.runnable, 0), is_open)
    else:
        yield Row(origin, STATES[state], (time.blocked, 0), is_open)
        if time.runnable:
            yield Row(origin, WOKEN, (time.runnable, 0), is_open)


def _open_rows(part: Part) -> Iterator[Row]:
    """Of a call that goes on: its own time on a core, and for the innermost one the wait that the thread is in."""
    yield from _rows(part.origin, Time(0, part.on_cpu, 0, 0), is_open=True)
    if part.wait:
        yield from _rows(part.wait, Time(0, 0, part.blocked, part.runnable), is_open=True)
