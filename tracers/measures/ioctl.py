"""ioctl calls: on which device, which command, how long, and what the thread did meanwhile."""

from __future__ import annotations

import errno
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...converters.base.errors import StallscopeError
from ...converters.base.units import plural
from ...converters.model import ValueType
from ...converters.model.calls import BUCKETS, CallTimes
from ...converters.model.states import PREEMPTED, RUNNING, WOKEN
from ..ioctls import commands, nvidia
from ..ioctls.devices import Device, device_of
from ..kernel.bpfobject import Link, Object
from ..kernel.libbpf import BpfError
from ..kernel.records import (
    BLOCKED,
    NEW,
    ON_CPU,
    ORIGIN,
    RECORD_IOCTL,
    STATES,
    Origin,
    ThreadRecord,
)
from ..kernel.records import PREEMPTED as SWITCHED_OUT
from ..kernel.sum_table import SumTable
from .protocol import SCHEDULER, Ended, Row
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

    from .totals import Totals

TIME = ValueType("ioctl", "nanoseconds")
CALLS = ValueType("calls", "count")
_CONTEXTS = 4
"""Entries of scratch maps, one per context up to CONTEXT_SYSCALL: enum context of bpf/include/maps.bpf.h."""
_INSIDE = 1 << 14
"""Threads that can be inside an ioctl at a time."""
_TARGETS = 1 << 14
_SMALL = 32
"""Tables of kinds of calls have so many times fewer entries than that of stacks: SMALL_TABLE of bpf/ioctl.bpf.c."""
_NAMES = 1 << 12
_NVIDIA_MAJOR = 195
_NUMBER_SHIFT = 8
"""The number of a target is above the state of an origin."""

_TARGET = struct.Struct("<QIIII")
_SUM = struct.Struct("<3Q")
_KIND = struct.Struct("<4I")
_TIMES = struct.Struct(f"<{7 + BUCKETS}Q")
_FAILURE = struct.Struct("<4I")
_CALL_HEAD = struct.Struct("<6QII")
_CALL = _CALL_HEAD.size + ORIGIN.size
_NAME = struct.Struct("<16s32s")
_FILE = struct.Struct("<QII")
_LOSSES = (
    "ioctls",
    "ioctls without a stack",
    "errors of ioctls",
    "names of ioctls",
    "ioctls at the end of an interval",
    "returns from ioctls",
)
"""enum ioctl_loss, in its order."""


_UNREPORTED = "ioctls not reported by the kernel"
"""Of all processes, traced or not: while the CPU was in a system call of BPF, ours as a rule, which another thread
interrupted. Kernels that preempt themselves do that."""


class Target(NamedTuple):
    """struct ioctl_target: a command on a kind of file. ``ops``, ``device`` and ``mode`` are of the file."""

    ops: int
    device: int
    mode: int
    command: int
    detail: int


class Open(NamedTuple):
    """A call that has not returned: struct ioctl_call. Waits are those since ``since`` that have ended."""

    began: int
    since: int
    cut: int
    blocked: int
    runnable: int
    argument: int
    status: int
    target: int
    origin: Origin


class Ioctl(Summed):
    """Columns: time inside ioctls, and how many returned."""

    name = "ioctl"
    columns = (TIME, CALLS)
    programs = SCHEDULER
    placed = ("ioctl_enter", "ioctl_return")
    entries = "new_ioctls"
    table = "ioctl_sums"
    value_size = _SUM.size
    weights = (0, 1)

    def __init__(self, *, nvidia_major: int = _NVIDIA_MAJOR) -> None:
        """``nvidia_major``: of the devices whose arguments are read as those of NVIDIA's driver."""
        self._nvidia_major = nvidia_major
        self._object: Object | None = None
        self._small: dict[str, SumTable] = {}
        self._times: Totals | None = None
        self._failures: Counter[tuple[int, int, str]] = Counter()
        """By process, target and error."""
        self._open: list[Open] = []
        self._cut: list[tuple[int, Open]] = []
        """Calls that went on at the end of an interval, which was then, from the ring buffer."""
        self._targets: dict[int, Target] = {}
        self._devices: dict[tuple[int, int, int], Device] = {}
        self._lost = dict.fromkeys((*_LOSSES, _UNREPORTED), 0)
        self._lost_before = dict(self._lost)
        self._unfinished = 0

    def knobs(self) -> Mapping[str, int]:
        return {"measure_ioctl": 1, "nvidia_major": self._nvidia_major}

    def sizes(self, entries: int) -> Mapping[str, int]:  # noqa: ARG002
        return {
            "ioctl_calls": _INSIDE,
            "ioctl_targets": _TARGETS,
            "ioctl_names": _NAMES,
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
            "times": SumTable(loaded, "ioctl_times", _TIMES.size, few, key_size=_KIND.size),
            "failures": SumTable(loaded, "ioctl_failures", 8, few, key_size=_FAILURE.size),
        }

    def close(self) -> None:
        super().close()
        for table in self._small.values():
            table.close()

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        links: list[Link] = []
        try:
            for name in reversed(self.placed):  # returns first: every call that is seen to begin is seen to end
                links.append(loaded.programs[name + suffix].attach())
        except BpfError as error:
            for link in links:
                link.close()
            raise StallscopeError(
                f"the kernel's tracepoints of ioctl cannot be used: {error.cause}",
                "mount tracefs (mount -t tracefs tracefs /sys/kernel/tracing); the kernel needs CONFIG_FTRACE_SYSCALLS",
            ) from error
        return links

    def on_record(self, data: bytes) -> bool:
        if int.from_bytes(data[:4], "little") != RECORD_IOCTL:
            return False
        self._cut.append((int.from_bytes(data[8:16], "little"), _open(data[16 : 16 + _CALL])))
        return True

    def drain(self) -> None:
        super().drain()
        keys, values = self._small["times"].drain(self.slot)
        self._times_totals().add(_as_origins(keys), values)
        keys, values = self._small["failures"].drain(self.slot)
        for key, value in zip(_FAILURE.iter_unpack(keys), struct.iter_unpack("<Q", values), strict=True):
            tgid, target, code, status = key
            error = errno.errorcode.get(code, f"errno {code}") if code else nvidia.status(status)
            self._failures[tgid, target, error] += value[0]

    def _times_totals(self) -> Totals:
        if self._times is None:
            import numpy as np

            from .totals import Totals

            self._times = Totals((*(np.add,) * 5, np.minimum, np.maximum, *(np.add,) * BUCKETS), (0,))
        return self._times

    def stacks(self) -> list[int]:
        assert self._object, "it was not opened"
        calls = [*_calls(self._object).values(), *(call for _, call in self._cut)]
        return [call.origin.ustack for call in calls]

    def read(self, loaded: Object) -> None:
        self.drain()
        calls = _calls(loaded)
        # Of one that an event has cut meanwhile, what was read may be of two intervals; its record is in the ring.
        after = _calls(loaded)
        self._open = [
            call
            for tid, call in calls.items()
            if call.began and tid in after and (after[tid].began, after[tid].cut) == (call.began, call.cut)
        ]
        for key, value in loaded.find_map("ioctl_targets").items():
            self._targets[int.from_bytes(value, "little")] = Target(*_TARGET.unpack(key))
        for key, value in loaded.find_map("ioctl_names").items():
            ops, device, mode = _FILE.unpack(key)
            kind, name = (text.split(b"\0")[0] for text in _NAME.unpack(value))
            self._devices[ops, device, mode] = device_of(mode, device, kind, name)
        losses = loaded.find_map("ioctl_losses")
        self._lost = {kind: losses.lookup_percpu_u64(i) for i, kind in enumerate(_LOSSES)}
        programs = [loaded.programs[name + suffix] for name in self.placed for suffix in ("", "_raw")]
        self._lost[_UNREPORTED] = max((each.misses for each in programs if each.is_loaded), default=0)

    def next(self) -> None:
        super().next()
        self._times_totals().clear()
        self._failures.clear()
        self._open, self._cut = [], []
        self._lost_before = self._lost

    def rows(self, ended: Ended) -> list[Row]:
        rows = []
        for origin, (time, runnable, count) in self.totals().take():
            name, origin = self._call(origin.state >> _NUMBER_SHIFT), _plain(origin)
            if origin.state == len(STATES):
                rows.append(Row(origin, RUNNING, (time, count), call=name))
            else:
                rows += _wait_rows(origin, time, runnable, name)
        going_on = self._going_on(ended)
        self._unfinished = len(going_on)
        threads = {record.thread.key.tid: record for record in ended.threads if not record.exited}
        for call in going_on:
            if record := threads.get(call.origin.tid):
                rows += self._open_rows(call, record)
        return rows

    def calls(self, ended: Ended) -> list[CallTimes]:
        """Per process, device and command. Processes have no name yet."""
        found: dict[tuple[str, str, int], CallTimes] = {}
        for origin, values in self._times_totals().take():
            _add(self._entry(found, origin.state >> _NUMBER_SHIFT, origin.tgid), values)
        for call in self._going_on(ended):
            entry = self._entry(found, call.target, call.origin.tgid)
            entry.open_count += 1
            entry.open_time += max(ended.stopped - call.since, 0)
        for (tgid, target, error), number in self._failures.items():
            entry = self._entry(found, target, tgid)
            entry.errors[error] = entry.errors.get(error, 0) + number
        return list(found.values())

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

    def losses(self) -> Mapping[str, int]:
        return {kind: number - self._lost_before[kind] for kind, number in self._lost.items()}

    def remarks(self) -> Iterable[str]:
        if number := self.losses()[_UNREPORTED]:
            kept = f"the kernel kept up to {plural(number, 'ioctl')} of all processes from the probes"
            yield f"{kept}: counts are too low by these"
        if self._unfinished:
            yield f"{plural(self._unfinished, 'ioctl')} had not ended: their time is in the picture, up to the end"

    def _entry(self, found: dict[tuple[str, str, int], CallTimes], target: int, tgid: int) -> CallTimes:
        """Several targets can have one name: an escape of NVIDIA's driver with other sizes, for example."""
        name, device = self._names(target)
        key = name, device, tgid
        if key not in found:
            found[key] = CallTimes(name, device, tgid, "")
        return found[key]

    def _names(self, number: int) -> tuple[str, str]:
        """Names of the command and of what it is called on."""
        target = self._targets.get(number)
        if target is None:
            return _NO_NAMES
        device = self._devices.get((target.ops, target.device, target.mode))
        if device is None:
            device = device_of(target.mode, target.device, b"", b"")
        file = device.file
        if target.device >> 20 == self._nvidia_major != _NVIDIA_MAJOR:
            file = file._replace(major=_NVIDIA_MAJOR, mode=commands.CHARACTER)
        return commands.name(file, target.command, target.detail), device.name

    def _call(self, number: int) -> str:
        return " ".join(self._names(number))

    def _open_rows(self, call: Open, record: ThreadRecord) -> Iterator[Row]:
        """Of a call that goes on: its time on a core, and the wait that it is in. Earlier waits have rows already."""
        present, name, origin = _present_wait(record, call.since), self._call(call.target), _plain(call.origin)
        waited = call.blocked + call.runnable + sum(present or ())
        yield Row(origin, RUNNING, (max(record.end - call.since - waited, 0), 0), True, name)
        if present:
            key = record.thread.key
            yield from _wait_rows(origin._replace(kstack=key.kstack, state=key.state), *present, name, is_open=True)


_NO_NAMES = "[other ioctls]", "[other devices]"
"""Of targets that found no room."""


def _plain(origin: Origin) -> Origin:
    """Without the number of a target."""
    return origin._replace(state=origin.state & (1 << _NUMBER_SHIFT) - 1)


def _as_origins(kinds: bytes) -> bytes:
    """struct ioctl_kind is the end of a struct origin."""
    size = _KIND.size
    nothing = bytes(ORIGIN.size - size)
    return b"".join(nothing + kinds[i : i + size] for i in range(0, len(kinds), size))


def _wait_rows(origin: Origin, blocked: int, runnable: int, call: str, *, is_open: bool = False) -> Iterator[Row]:
    """The two parts of a wait, or of several. Times in ns."""
    if origin.state in (SWITCHED_OUT, NEW):
        yield Row(origin, PREEMPTED, (runnable, 0), is_open, call)
        return
    yield Row(origin, STATES[origin.state], (blocked, 0), is_open, call)
    if runnable:
        yield Row(origin, WOKEN, (runnable, 0), is_open, call)


def _present_wait(record: ThreadRecord, since: int) -> tuple[int, int] | None:
    """The wait that the thread is in, up to the end: its blocked and its runnable part. None if it is in none that
    began after ``since``."""
    thread = record.thread
    if thread.phase == ON_CPU or thread.out < since:
        return None
    whole = record.end - thread.out
    blocked = 0
    if thread.phase == BLOCKED:
        blocked = whole
    elif thread.key.state not in (SWITCHED_OUT, NEW) and thread.woken:
        blocked = thread.woken - thread.out
    return blocked, whole - blocked


def _add(entry: CallTimes, values: Sequence[int]) -> None:
    """``values``: those of struct ioctl_times."""
    count, total, earlier, blocked, runnable, least, most, *latencies = values
    entry.min = min(entry.min, least) if entry.count else least
    entry.max = max(entry.max, most)
    entry.count += count
    entry.total += total
    entry.earlier += earlier
    entry.blocked += blocked
    entry.runnable += runnable
    known = entry.latencies or (0,) * BUCKETS
    entry.latencies = tuple(map(sum, zip(known, latencies, strict=True)))


def _calls(loaded: Object) -> dict[bytes, Open]:
    """By thread; of calls that have returned, ``began`` is 0."""
    return {key: _open(value) for key, value in loaded.find_map("ioctl_calls").items()}


def _open(data: bytes) -> Open:
    origin = Origin(*ORIGIN.unpack_from(data, _CALL_HEAD.size))
    return Open._make((*_CALL_HEAD.unpack_from(data), origin))
