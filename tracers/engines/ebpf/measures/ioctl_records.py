"""Records that bpf/ioctl.bpf.c writes, and how their parts become rows and calls."""

from __future__ import annotations

import stat
import struct
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from .....converters.model.calls import BUCKETS, CallTimes
from .....converters.model.states import PREEMPTED, WOKEN
from ....ioctls import commands, nvidia
from ....ioctls.devices import Device, device_of
from ....kernel.bpfobject import Object
from ....kernel.records import BLOCKED, NEW, ON_CPU, ORIGIN, STATES, Origin, ThreadRecord
from ....kernel.records import PREEMPTED as SWITCHED_OUT
from ...rows import Row

_NO_NAMES = "[other ioctls]", "[other devices]"
"""Names of the command and the device of targets that found no room."""
NUMBER_SHIFT = 8
"""The number of a target is above the state of an origin."""

TARGET = struct.Struct("<QIIII")
SUM = struct.Struct("<3Q")
KIND = struct.Struct("<4I")
TIMES = struct.Struct(f"<{7 + BUCKETS}Q")
FAILURE = struct.Struct("<6I")
CALL_HEAD = struct.Struct("<6QII")
CALL = CALL_HEAD.size + ORIGIN.size + TARGET.size
NAME = struct.Struct("<16s32s")
FILE = struct.Struct("<QII")

LOSSES = (
    "ioctls",
    "ioctls without a stack",
    "errors of ioctls",
    "names of ioctls",
    "ioctls at the end of an interval",
    "returns from ioctls",
)
"""enum ioctl_loss, in its order."""
UNREPORTED = "ioctls not reported by the kernel"
"""Kind of loss, of all processes, traced or not: ioctls while the CPU was in a system call of BPF, ours as a rule,
which another thread interrupted. Kernels that preempt themselves do that."""


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

    @property
    def is_outside(self) -> bool:
        """Whether none of the functions' calls made it, in a trace of these."""
        return bool(self.status >> 31)


class Targets:
    """Meaning of the numbers of targets."""

    def __init__(self, nvidia_major: int) -> None:
        """``nvidia_major``: of the devices that are taken as those of NVIDIA's driver."""
        self._nvidia_major = nvidia_major
        self._targets: dict[int, Target] = {}
        self._devices: dict[tuple[int, int, int], Device] = {}

    def read(self, loaded: Object) -> None:
        """Reads the maps of targets and of names of files; programs may be adding to them."""
        self._read_numbers(loaded)
        for key, value in loaded.find_map("ioctl_names").items():
            ops, device, mode = FILE.unpack(key)
            kind, name = (text.split(b"\0")[0] for text in NAME.unpack(value))
            self._devices[ops, device, mode] = device_of(mode, device, kind, name)

    def _read_numbers(self, loaded: Object) -> None:
        for key, value in loaded.find_map("ioctl_targets").items():
            self._targets[int.from_bytes(value, "little")] = Target(*TARGET.unpack(key))

    def device(self, number: int, loaded: Object) -> Hashable:
        """Equal for targets whose calls can wait for each other: those on one device, or on any of NVIDIA's, whose
        driver has one lock for all. Programs may be adding targets."""
        if number not in self._targets:
            self._read_numbers(loaded)
        target = self._targets.get(number)
        if target is None:
            return number
        if stat.S_ISCHR(target.mode) and target.device >> 20 == nvidia.MAJOR:
            return "NVIDIA"
        return target.ops, target.device, target.mode

    def described(self, number: int) -> tuple[str, str, str]:
        """Names of the command and of what it is called on, and the locks that it takes."""
        target = self._targets.get(number)
        if target is None:
            return (*_NO_NAMES, "")
        device = self._devices.get((target.ops, target.device, target.mode))
        if device is None:
            device = device_of(target.mode, target.device, b"", b"")
        file = device.file
        if target.device >> 20 == self._nvidia_major != nvidia.MAJOR:
            file = file._replace(major=nvidia.MAJOR, mode=commands.CHARACTER)
        what = file, target.command, target.detail
        return commands.name(*what), device.name, commands.locks(*what)


def plain(origin: Origin) -> Origin:
    """Origin without the number of a target."""
    return origin._replace(state=origin.state & (1 << NUMBER_SHIFT) - 1)


def as_origins(kinds: bytes, more: int = 0) -> bytes:
    """struct ioctl_kind is the end of a struct origin. ``more``: bytes behind it."""
    size = KIND.size + more
    nothing = bytes(ORIGIN.size - KIND.size)
    return b"".join(nothing + kinds[i : i + size] for i in range(0, len(kinds), size))


def wait_rows(origin: Origin, blocked: int, runnable: int, call: str, *, is_open: bool = False) -> Iterator[Row]:
    """The two parts of a wait, or of several. Times in ns."""
    if origin.state in (SWITCHED_OUT, NEW):
        yield Row(origin, PREEMPTED, (runnable, 0), is_open, call)
        return
    yield Row(origin, STATES[origin.state], (blocked, 0), is_open, call)
    if runnable:
        yield Row(origin, WOKEN, (runnable, 0), is_open, call)


def present_wait(record: ThreadRecord, since: int) -> tuple[int, int] | None:
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


def add_times(entry: CallTimes, values: Sequence[int]) -> None:
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


def on_cores(returned: Iterable[tuple[Origin, Sequence[int]]]) -> defaultdict[tuple[int, int, int, int], list[int]]:
    """Time on a core and number of calls that returned, by thread and target. Without user stacks, and where there was
    no room, they are not among the sums. ``returned``: values of struct ioctl_times."""
    ran: defaultdict[tuple[int, int, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for origin, values in returned:
        count, total, _, blocked, runnable, *_ = values
        left = ran[origin.tid, origin.tgid, origin.life, origin.state >> NUMBER_SHIFT]
        left[0] += total - blocked - runnable
        left[1] += count
    return ran


def open_calls(loaded: Object) -> dict[bytes, Open]:
    """Open calls by thread; of calls that have returned, ``began`` is 0."""
    return {key: open_call(value) for key, value in loaded.find_map("ioctl_calls").items()}


def open_call(data: bytes) -> Open:
    origin = Origin(*ORIGIN.unpack_from(data, CALL_HEAD.size))
    return Open._make((*CALL_HEAD.unpack_from(data), origin))
