"""ioctl calls: on which device, which command, how long, and what the thread did meanwhile."""

from __future__ import annotations

import errno
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ...converters.base.errors import StallscopeError
from ...converters.base.units import plural
from ...converters.model import ValueType
from ...converters.model.calls import BUCKETS, CallTimes
from ...converters.model.states import PREEMPTED, RUNNING, WOKEN
from ..ioctls import commands, nvidia
from ..ioctls.devices import Device, device_of
from ..kernel.bpfobject import Link, Object
from ..kernel.libbpf import BpfError
from ..kernel.records import BLOCKED, NEW, ON_CPU, ORIGIN, STATES, WAIT_SUM, Origin, ThreadRecord, WaitSum
from ..kernel.records import PREEMPTED as SWITCHED_OUT
from .protocol import SCHEDULER, Ended, Measure, Row

TIME = ValueType("ioctl", "nanoseconds")
CALLS = ValueType("calls", "count")
_CONTEXTS = 4
"""Entries of scratch maps, one per context up to CONTEXT_SYSCALL: enum context of bpf/include/maps.bpf.h."""
_INSIDE = 1 << 14
"""Threads that can be inside an ioctl at a time."""
_SITES, _KINDS = 4, 16
"""One place of calls, and one kind of error of a process, per so many entries of the user's choice."""
_NAMES = 1 << 12
_NVIDIA_MAJOR = 195

_TARGET = struct.Struct("<QIIII")
_SUM = struct.Struct(f"<6Q{4 * BUCKETS}s")
_CALL_HEAD = struct.Struct("<4QII")
_LATENCIES = struct.Struct(f"<{BUCKETS}I")
_KIND_TAIL = struct.Struct("<II")
_FAILURE_TAIL = struct.Struct("<II")
_NAME = struct.Struct("<16s32s")
_LOSSES = (
    "ioctls",
    "waits in ioctls without a stack",
    "errors of ioctls",
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


class Kind(NamedTuple):
    """A command as one process calls it."""

    target: Target
    tgid: int


class Site(NamedTuple):
    """A command at an origin."""

    origin: Origin
    target: Target


class Sum(NamedTuple):
    """Of calls that have returned; times in ns."""

    calls: int
    total: int
    blocked: int
    runnable: int
    min: int
    max: int
    latencies: tuple[int, ...]


class Open(NamedTuple):
    """A call that has not returned, and its waits so far: struct ioctl_call."""

    began: int
    blocked: int
    runnable: int
    site: Site


class Ioctl(Measure):
    """Columns: time inside ioctls, and how many returned."""

    name = "ioctl"
    columns = (TIME, CALLS)
    programs = SCHEDULER
    placed = ("ioctl_enter", "ioctl_return")

    def __init__(self, *, nvidia_major: int = _NVIDIA_MAJOR) -> None:
        """``nvidia_major``: of the devices whose arguments are read as those of NVIDIA's driver."""
        self._nvidia_major = nvidia_major
        self._sums: dict[Site, Sum] = {}
        self._waits: dict[Site, WaitSum] = {}
        self._open: list[Open] = []
        self._failures: defaultdict[Kind, dict[str, int]] = defaultdict(dict)
        self._devices: dict[tuple[int, int, int], Device] = {}
        self._lost = dict.fromkeys((*_LOSSES, _UNREPORTED), 0)

    def knobs(self) -> Mapping[str, int]:
        return {"measure_ioctl": 1, "nvidia_major": self._nvidia_major}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {
            "ioctl_calls": _INSIDE,
            "ioctl_sums": max(entries // _SITES, 1024),
            "ioctl_waits": entries,
            "ioctl_failures": max(entries // _KINDS, 1024),
            "ioctl_names": _NAMES,
            **dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS),
        }

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

    def read(self, loaded: Object) -> None:
        items = {name: loaded.find_map(f"ioctl_{name}").items() for name in ("sums", "waits", "calls")}
        self._sums = {_site(key): _sum(value) for key, value in items["sums"]}
        self._waits = {_site(key): WaitSum(*WAIT_SUM.unpack(value)) for key, value in items["waits"]}
        self._open = [call for _, value in items["calls"] if (call := _open(value)).began]
        for key, value in loaded.find_map("ioctl_failures").items():
            code, status = _FAILURE_TAIL.unpack_from(key, _TARGET.size + _KIND_TAIL.size)
            called = errno.errorcode.get(code, f"errno {code}") if code else nvidia.status(status)
            self._failures[_kind(key)][called] = int.from_bytes(value, "little")
        for key, value in loaded.find_map("ioctl_names").items():
            ops, device, mode = struct.unpack("<QII", key)
            kind, name = (text.split(b"\0")[0] for text in _NAME.unpack(value))
            self._devices[ops, device, mode] = device_of(mode, device, kind, name)
        losses = loaded.find_map("ioctl_losses")
        self._lost = {kind: losses.lookup_percpu_u64(i) for i, kind in enumerate(_LOSSES)}
        programs = [loaded.programs[name + suffix] for name in self.placed for suffix in ("", "_raw")]
        self._lost[_UNREPORTED] = max((each.misses for each in programs if each.is_loaded), default=0)

    def rows(self, ended: Ended) -> list[Row]:
        rows = []
        for site, total in self._sums.items():
            values = total.total - total.blocked - total.runnable, total.calls
            rows.append(Row(site.origin, RUNNING, values, call=self._call(site.target)))
        for site, waits in self._waits.items():
            rows += self._wait_rows(site, waits)
        return rows + [row for call in self._open for row in self._open_rows(call, ended)]

    def calls(self, ended: Ended) -> list[CallTimes]:
        """Per process, device and command. Processes have no name yet."""
        found: dict[tuple[str, str, int], CallTimes] = {}
        for site, total in self._sums.items():
            _add(self._entry(found, site), total)
        for call in self._open:
            entry = self._entry(found, call.site)
            entry.open_count += 1
            entry.open_time += max(ended.stopped - call.began, 0)
        for kind, errors in self._failures.items():
            entry = self._entry(found, Site(Origin(0, 0, 0, 0, kind.tgid, 0, 0), kind.target))
            for error, number in errors.items():
                entry.errors[error] = entry.errors.get(error, 0) + number
        return list(found.values())

    def losses(self) -> Mapping[str, int]:
        return dict(self._lost)

    def remarks(self) -> Iterable[str]:
        if number := self._lost[_UNREPORTED]:
            kept = f"the kernel kept up to {plural(number, 'ioctl')} of all processes from the probes"
            yield f"{kept}: counts are too low by these"
        if self._open:
            yield f"{plural(len(self._open), 'ioctl')} had not ended: their time is in the picture, up to the end"

    def _entry(self, found: dict[tuple[str, str, int], CallTimes], site: Site) -> CallTimes:
        """Several kinds can have one name: an escape of NVIDIA's driver with other sizes, for example."""
        name, device = self._names(site.target)
        key = name, device, site.origin.tgid
        if key not in found:
            found[key] = CallTimes(name, device, site.origin.tgid, "")
        return found[key]

    def _names(self, target: Target) -> tuple[str, str]:
        """Names of the command and of what it is called on."""
        device = self._devices.get((target.ops, target.device, target.mode))
        if device is None:
            device = device_of(target.mode, target.device, b"", b"")
        file = device.file
        if target.device >> 20 == self._nvidia_major != _NVIDIA_MAJOR:
            file = file._replace(major=_NVIDIA_MAJOR, mode=commands.CHARACTER)
        return commands.name(file, target.command, target.detail), device.name

    def _call(self, target: Target) -> str:
        return " ".join(self._names(target))

    def _wait_rows(self, site: Site, waits: WaitSum, *, is_open: bool = False) -> Iterator[Row]:
        """The blocked and the runnable part."""
        call, state = self._call(site.target), site.origin.state
        if state in (SWITCHED_OUT, NEW):
            yield Row(site.origin, PREEMPTED, (waits.runnable, 0), is_open, call)
            return
        yield Row(site.origin, STATES[state], (waits.blocked, 0), is_open, call)
        if waits.runnable:
            yield Row(site.origin, WOKEN, (waits.runnable, 0), is_open, call)

    def _open_rows(self, call: Open, ended: Ended) -> Iterator[Row]:
        """Of a call that goes on: its time on a core, and the wait that it is in. Earlier waits have rows already."""
        tid = call.site.origin.tid
        record = next((r for r in ended.threads if r.thread.key.tid == tid and not r.exited), None)
        if record is None:
            return
        present = _present_wait(record, call.began)
        on_cpu = max(record.end - call.began - call.blocked - call.runnable - present.blocked - present.runnable, 0)
        yield Row(call.site.origin, RUNNING, (on_cpu, 0), True, self._call(call.site.target))
        if present.waits:
            key = record.thread.key
            origin = call.site.origin._replace(kstack=key.kstack, state=key.state)
            yield from self._wait_rows(Site(origin, call.site.target), present, is_open=True)


def _present_wait(record: ThreadRecord, began: int) -> WaitSum:
    """The wait that the thread is in, up to the end; none if it has none that began after ``began``."""
    thread = record.thread
    if thread.phase == ON_CPU or thread.out < began:
        return WaitSum(0, 0, 0, 0, 0, 0, 0)
    whole = record.end - thread.out
    blocked = 0
    if thread.phase == BLOCKED:
        blocked = whole
    elif thread.key.state not in (SWITCHED_OUT, NEW) and thread.woken:
        blocked = thread.woken - thread.out
    rest = whole - blocked
    return WaitSum(1, blocked, blocked, blocked, rest, rest, rest)


def _add(entry: CallTimes, total: Sum) -> None:
    entry.min = min(entry.min, total.min) if entry.count else total.min
    entry.max = max(entry.max, total.max)
    entry.count += total.calls
    entry.total += total.total
    entry.blocked += total.blocked
    entry.runnable += total.runnable
    known = entry.latencies or (0,) * BUCKETS
    entry.latencies = tuple(map(sum, zip(known, total.latencies, strict=True)))


def _site(data: bytes) -> Site:
    return Site(Origin(*ORIGIN.unpack_from(data)), Target(*_TARGET.unpack_from(data, ORIGIN.size)))


def _sum(data: bytes) -> Sum:
    calls, total, blocked, runnable, least, most, latencies = _SUM.unpack(data)
    return Sum(calls, total, blocked, runnable, least, most, _LATENCIES.unpack(latencies))


def _kind(data: bytes) -> Kind:
    return Kind(Target(*_TARGET.unpack_from(data)), _KIND_TAIL.unpack_from(data, _TARGET.size)[0])


def _open(data: bytes) -> Open:
    began, blocked, runnable, _argument, _status, _fd = _CALL_HEAD.unpack_from(data)
    return Open(began, blocked, runnable, _site(data[_CALL_HEAD.size :]))
