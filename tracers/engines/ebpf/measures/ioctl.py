"""ioctl calls: on which device, which command, how long, and what the thread did meanwhile."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .....converters.base.errors import StallscopeError
from .....converters.base.units import plural
from .....converters.model.calls import BUCKETS, CallTimes
from .....converters.model.sharing import SharedCall
from .....converters.model.states import RUNNING
from ....images.maps import Mapping as MappedFile
from ....ioctls import nvidia
from ....kernel.bpfobject import Link, Object
from ....kernel.records import RECORD_IOCTL, Origin, ThreadRecord
from ....kernel.records import RUNNING as RUNNING_STATE
from ....kernel.sum_table import SumTable
from ....kernel.tracepoints import attach_tracepoints
from ....measures.ioctl import Ioctl
from ...rows import LEFT_OUT, Row, Timed
from .ioctl_records import (
    CALL,
    FAILURE,
    KIND,
    LOSSES,
    NUMBER_SHIFT,
    SUM,
    TIMES,
    UNREPORTED,
    Open,
    Targets,
    add_times,
    as_origins,
    on_cores,
    open_call,
    open_calls,
    plain,
    present_wait,
    wait_rows,
)
from .ioctl_rings import IoctlRings
from .narrow import NarrowPrograms
from .open_calls import DEPTH
from .protocol import SCHEDULER, Ended
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

    from .shared_rings import SharedRings
    from .spans import CallSpans, Spans
    from .totals import Moved, Totals

_TRACEPOINTS = {"ioctl_enter": "syscalls:sys_enter_ioctl", "ioctl_return": "syscalls:sys_exit_ioctl"}
_CONTEXTS = 4
"""Entries of scratch maps, one per context up to CONTEXT_SYSCALL: enum context of bpf/include/maps.bpf.h."""
_INSIDE = 1 << 14
"""Threads that can be inside an ioctl at a time."""
_TARGETS = 1 << 14
_SMALL = 32
"""Tables of kinds of calls have so many times fewer entries than that of stacks: SMALL_TABLE of bpf/ioctl.bpf.c."""
_NAMES = 1 << 12
_LEVEL = DEPTH
"""Level of ioctls among spans: inside calls of functions."""


class IoctlCollector(Summed):
    """Adds up calls by place and by what is called, in the kernel."""

    name = Ioctl.name
    programs = SCHEDULER
    placed = tuple(_TRACEPOINTS)
    entries = "new_ioctls"
    table = "ioctl_sums"
    value_size = SUM.size
    weights = (0, 1)
    period = 0.05

    def __init__(self, measure: Ioctl, *, nvidia_major: int = nvidia.MAJOR) -> None:
        """``nvidia_major``: of the devices whose arguments are read as those of NVIDIA's driver."""
        self.columns = measure.columns
        self.is_alone = measure.alone
        self._span_options = measure.spans
        self._spans: Spans | None = None
        self._nvidia_major = nvidia_major
        self._missing = ""
        """Reason why there are no ioctls; "" if there are some."""
        self._object: Object | None = None
        self._small: dict[str, SumTable] = {}
        self._times: Totals | None = None
        self._all_times: list[tuple[Origin, list[int]]] | None = None
        self._failures: Totals | None = None
        self._open: list[Open] = []
        self._cut: list[tuple[int, Open]] = []
        """Calls that went on at the end of an interval, which was then, from the ring buffer."""
        self._targets = Targets(nvidia_major)
        self._lost = dict.fromkeys((*LOSSES, UNREPORTED, LEFT_OUT), 0)
        self._lost_before = dict(self._lost)
        self._unfinished = 0
        self._rings = IoctlRings(places=measure.spans is not None)
        self._sharing: SharedRings | None = None
        self._reading = threading.Lock()
        self._narrow = NarrowPrograms()

    def knobs(self) -> Mapping[str, int]:
        own = {"measure_ioctl": 1, "ioctl_rows": int(self.is_alone), "nvidia_major": self._nvidia_major}
        return {**own, **self._rings.knobs()}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {
            "ioctl_calls": _INSIDE,
            "ioctl_targets": _TARGETS,
            "ioctl_names": _NAMES,
            **self._rings.sizes(),
            **dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS),
        }

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add,) * 3

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        few = max(entries // _SMALL, 16)
        self._object = loaded
        self._small = {
            "times": SumTable(loaded, "ioctl_times", TIMES.size, few, key_size=KIND.size),
            "failures": SumTable(loaded, "ioctl_failures", 8, few, key_size=FAILURE.size),
        }
        self._rings.open(loaded)

    def consume(self) -> None:
        # While a boundary passes, another thread reads it.
        if not self._rings.memory or not self._reading.acquire(blocking=False):
            return
        try:
            if self._events().take() >= self._events().SETTLED_FROM:
                self._settle()
        finally:
            self._reading.release()

    def _events(self) -> SharedRings:
        if self._sharing is None:
            # It needs numpy, which takes longer to import than the probes to attach.
            from .shared_rings import SharedRings
            from .spans import Spans

            self._spans = Spans(self._span_options, _LEVEL) if self._span_options else None
            events, rings, *places = self._rings.memory
            self._sharing = SharedRings(events, rings, self._device, self._spans, *places)
        return self._sharing

    def _device(self, number: int) -> Hashable:
        assert self._object, "it was not opened"
        return self._targets.device(number, self._object)

    def _settle(self, *, final: bool = False) -> None:
        """Works on the calls that were read, and on those that go on."""
        assert self._object, "it was not opened"
        now, going_on = time.monotonic_ns(), dict[tuple[int, int], int]()
        for call in open_calls(self._object).values():
            if 0 < call.began < now:
                who = call.target, call.origin.tgid
                going_on[who] = min(call.began, going_on.get(who, now))
        self._events().take()
        self._events().settle(now, going_on, final=final)

    def close(self) -> None:
        super().close()
        for table in self._small.values():
            table.close()
        if self._sharing:
            self._sharing.close()
        self._rings.close()

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        try:
            # Returns first: every call that is seen to begin is seen to end.
            return attach_tracepoints(loaded, {name + suffix: at for name, at in reversed(_TRACEPOINTS.items())})
        except StallscopeError as error:
            if not self.is_alone:
                self._missing = error.cause
                return []
            raise StallscopeError(
                f"the kernel's tracepoints of ioctl cannot be used: {error.cause}",
                error.remedy or "the kernel needs CONFIG_FTRACE_SYSCALLS; trace-doctor says more",
            ) from error

    def mapped(self, pid: int, mapping: MappedFile) -> None:
        self._narrow.look(pid, mapping)

    def on_record(self, data: bytes) -> bool:
        if int.from_bytes(data[:4], "little") != RECORD_IOCTL:
            return False
        self._cut.append((int.from_bytes(data[8:16], "little"), open_call(data[16 : 16 + CALL])))
        return True

    def drain(self) -> None:
        super().drain()
        keys, values = self._small["times"].drain(self.slot)
        self._times_totals().add(as_origins(keys), values)
        keys, values = self._small["failures"].drain(self.slot)
        self._failures_totals().add(as_origins(keys, FAILURE.size - KIND.size), values)

    def _failures_totals(self) -> Totals:
        """The word behind the origin is the error and the status."""
        if self._failures is None:
            import numpy as np

            from .totals import Totals

            self._failures = Totals((np.add,), (0,), more=1)
        return self._failures

    def _times_totals(self) -> Totals:
        if self._times is None:
            import numpy as np

            from .totals import Totals

            self._times = Totals((*(np.add,) * 5, np.minimum, np.maximum, *(np.add,) * BUCKETS), (0,))
        return self._times

    def move(self, moved: Moved) -> None:
        super().move(moved)
        self._times_totals().move(moved)
        self._failures_totals().move(moved)

    def stacks(self) -> list[int]:
        assert self._object, "it was not opened"
        calls = [*open_calls(self._object).values(), *(call for _, call in self._cut)]
        return [call.origin.ustack for call in calls]

    def read(self, loaded: Object) -> None:
        self.drain()
        with self._reading:
            self._settle(final=True)
        calls = open_calls(loaded)
        # Of one that an event has cut meanwhile, what was read may be of two intervals; its record is in the ring.
        after = open_calls(loaded)
        self._open = [
            call
            for tid, call in calls.items()
            if call.began and tid in after and (after[tid].began, after[tid].cut) == (call.began, call.cut)
        ]
        self._targets.read(loaded)
        losses = loaded.find_map("ioctl_losses")
        self._lost = {kind: losses.lookup_percpu_u64(i) for i, kind in enumerate(LOSSES)}
        self._lost[LEFT_OUT] = self._events().lost
        programs = [loaded.programs[name + suffix] for name in self.placed for suffix in ("", "_raw")]
        self._lost[UNREPORTED] = max((each.misses for each in programs if each.is_loaded), default=0)

    def next(self) -> None:
        super().next()
        self._times_totals().clear()
        self._all_times = None
        self._failures_totals().clear()
        self._events().found.clear()
        self._open, self._cut = [], []
        self._lost_before = self._lost

    def rows(self, ended: Ended) -> list[Row]:
        rows = []
        ran = on_cores(self._returned() if self.is_alone else ())
        for origin, (length, runnable, count) in self.totals().take():
            number, origin = origin.state >> NUMBER_SHIFT, plain(origin)
            name = self._call(number)
            if origin.state == RUNNING_STATE:
                rows.append(Row(origin, RUNNING, (length, count if self.is_alone else 0), call=name))
                left = ran.get((origin.tid, origin.tgid, origin.life, number), [0, 0])
                left[0] -= length
                left[1] -= count
            else:
                rows += wait_rows(origin, length, runnable, name)
        for (tid, tgid, life, number), (length, count) in ran.items():
            if count:
                origin = Origin(0, 0, 0, tid, tgid, life, RUNNING_STATE)
                rows.append(Row(origin, RUNNING, (length, count), call=self._call(number)))
        going_on = [call for call in self._going_on(ended) if self.is_alone or call.is_outside]
        self._unfinished = len(going_on)
        threads = {record.thread.key.tid: record for record in ended.threads if not record.exited}
        for call in going_on:
            if record := threads.get(call.origin.tid):
                rows += self._open_rows(call, record)
        return rows

    def _returned(self) -> list[tuple[Origin, list[int]]]:
        """The values of struct ioctl_times."""
        if self._all_times is None:
            self._all_times = list(self._times_totals().take())
        return self._all_times

    def calls(self, ended: Ended) -> list[Timed]:
        found: dict[tuple[Origin, str, str], CallTimes] = {}
        for origin, values in self._returned():
            add_times(self._entry(found, origin), values)
        for call in self._going_on(ended):
            entry = self._entry(found, call.origin._replace(ustack=0, kstack=0, object=0))
            entry.open_count += 1
            entry.open_time += max(ended.stopped - call.since, 0)
        for origin, (what, number) in self._failures_totals().take():
            entry = self._entry(found, origin)
            code, status = what & 0xFFFFFFFF, what >> 32
            error = errno.errorcode.get(code, f"errno {code}") if code else nvidia.status(status)
            entry.errors[error] = entry.errors.get(error, 0) + number
        return [Timed(origin, call) for (origin, _, _), call in found.items()]

    def _going_on(self, ended: Ended) -> list[Open]:
        """The calls that had not returned at the end, with what they did since the beginning."""
        found = {}
        # Of a call that was read before it was cut, the record can come in the next interval.
        cut = [call for at, call in self._cut if at > ended.began]
        for call in (*self._open, *cut):
            if call.cut >= ended.stopped:  # it belongs to the next interval
                continue
            if call.since < ended.began:  # no event cut it there: no wait has ended since then
                call = call._replace(since=ended.began, blocked=0, runnable=0)
            found[call.origin.tid, call.began] = call
        return list(found.values())

    def inside(self) -> dict[int, Open]:
        """Ioctls that threads were in at the end, by thread. After `read`."""
        return {call.origin.tid: call for call in self._open}

    def described(self, number: int) -> tuple[str, str]:
        """Names of a target and of what it is called on. After `read`."""
        return self._targets.described(number)[:2]

    def shared(self) -> list[SharedCall]:
        found = []
        for number, call in self._events().found.items():
            call.name, call.device, _ = self._targets.described(number)
            if call.shared:
                found.append(call)
        return found

    def spans(self) -> CallSpans | None:
        if not self._spans:
            return None
        from .....converters.model.scheduling import CallName
        from .spans import GoingOn

        going_on = [GoingOn(each.began, each.origin, each.target, _LEVEL) for each in self._open]
        return self._spans.finish(lambda number: CallName(self._call(number), "ioctl"), going_on, self._lost[LEFT_OUT])

    def losses(self) -> Mapping[str, int]:
        return {kind: number - self._lost_before[kind] for kind, number in self._lost.items()}

    def remarks(self) -> Iterable[str]:
        if self._missing:
            yield f"ioctls in the calls are not told apart: the kernel's tracepoints cannot be used ({self._missing})"
        if number := self.losses()[UNREPORTED]:
            kept = f"the kernel kept up to {plural(number, 'ioctl')} of all processes from the probes"
            yield f"{kept}: counts are too low by these"
        if self.is_alone:
            yield from self._narrow.remarks()
        if self._unfinished and self.is_alone:
            yield f"{plural(self._unfinished, 'ioctl')} had not ended: their time is in the picture, up to the end"
        if self._spans and self._span_options:
            yield from self._span_options.remarks("ioctl", self._spans.short)

    def _entry(self, found: dict[tuple[Origin, str, str], CallTimes], origin: Origin) -> CallTimes:
        """Several targets can have one name: an escape of NVIDIA's driver with other sizes, for example."""
        name, device, locks = self._targets.described(origin.state >> NUMBER_SHIFT)
        key = plain(origin), name, device
        if key not in found:
            found[key] = CallTimes(name, device, origin.tgid, "", locks=locks)
        return found[key]

    def _call(self, number: int) -> str:
        return " ".join(self._targets.described(number)[:2])

    def _open_rows(self, call: Open, record: ThreadRecord) -> Iterator[Row]:
        """Rows of a call that goes on: its time on a core, and the wait that it is in. Earlier waits have rows
        already."""
        present, name, origin = present_wait(record, call.since), self._call(call.target), plain(call.origin)
        waited = call.blocked + call.runnable + sum(present or ())
        yield Row(origin, RUNNING, (max(record.end - call.since - waited, 0), 0), True, name)
        if present:
            key = record.thread.key
            yield from wait_rows(origin._replace(kstack=key.kstack, state=key.state), *present, name, is_open=True)
