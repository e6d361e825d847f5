"""Perfetto's trace format (protos/perfetto/trace/ of google/perfetto): the scheduler's events, for ui.perfetto.dev.

A trace is a sequence of packets. Times are CLOCK_BOOTTIME, as in traces recorded by the viewer's own
tools; ClockSnapshot gives the other clocks' values at that time. Information about the whole recording, including
losses, is in a slice on a track of its own, which is as long as the recording.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from ...base.errors import StallscopeError
from ...base.text import printable
from ...base.units import count
from ...model import Profile
from ...model.scheduling import in_order
from ...phrases.remarks import worded
from ..base.options import WriteOptions
from . import wire
from .context import CLEARED, CORES, MAX_CORES, Context, packet
from .cores import bundles
from .critical import path_slices
from .meetings import meeting_slices
from .spans import slices
from .threads import process_trees

_CLOCK_SNAPSHOT, _SYSTEM_INFO, _TRACK_EVENT, _TRACK_DESCRIPTOR = 6, 45, 11, 60
_CLOCKS, _PRIMARY, _CLOCK_ID, _CLOCK_TIME = 1, 2, 1, 2
_REALTIME, _MONOTONIC, _BOOTTIME = 1, 3, 6
_UTSNAME, _MACHINE_NAME, _SYSNAME, _RELEASE = 1, 17, 1, 3
_STATES_SINCE = "4.14"
"""Kernels from this version on report states as in the model; the viewer needs a version to interpret them this way."""
_TRACK = 1
_UUID, _TRACK_NAME = 1, 2
_TYPE, _OF_TRACK, _NAME, _ANNOTATION, _BEGIN, _END = 9, 11, 23, 4, 1, 2
_ANNOTATION_NAME, _ANNOTATION_STRING = 10, 6


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the scheduler's events. Raises StallscopeError (exit code 2) when the profile has none."""
    if profile.scheduling is None:
        raise StallscopeError(
            "the profile has no scheduler events, which a .pftrace is made of",
            "record them, or write NAME.trace.json, which ui.perfetto.dev opens, too",
            exit_code=2,
        )
    scheduling = in_order(profile.scheduling)
    highest = max(int(array["cpu"].max(initial=0)) for array in (scheduling.switches, scheduling.wakeups))
    if highest >= MAX_CORES:
        cause = f"the viewer shows {MAX_CORES} cores at most, and there are events of core {highest}"
        raise StallscopeError(cause, "write NAME.trace.json, which ui.perfetto.dev opens, too")
    context = Context(scheduling, profile.start_ns)
    file.write(_clocks(context, profile.start_ns) + _system(scheduling.kernel, profile.host))
    file.write(_recording(context, profile, options))
    file.writelines(process_trees(context))
    file.writelines(bundles(context))
    file.writelines(slices(context))
    file.writelines(meeting_slices(context, profile.collectives))
    if profile.critical:
        file.writelines(path_slices(context, profile.critical, printable(profile.title)))


def _clocks(context: Context, start_ns: int) -> bytes:
    scheduling = context.scheduling
    clocks = {_BOOTTIME: context.base, _MONOTONIC: scheduling.monotonic, _REALTIME: start_ns}
    told = [
        wire.text(_CLOCKS, wire.number(_CLOCK_ID, clock) + wire.number(_CLOCK_TIME, time))
        for clock, time in clocks.items()
        if time or clock == _BOOTTIME
    ]
    snapshot = b"".join(told) + wire.number(_PRIMARY, _BOOTTIME)
    return packet(CORES, wire.text(_CLOCK_SNAPSHOT, snapshot), time=context.base, flags=CLEARED)


def _system(kernel: str, host: str) -> bytes:
    version = re.match(r"(\d+)\.(\d+)", kernel)
    told = version and (int(version[1]), int(version[2])) >= (4, 14)
    release = printable(kernel) if told else _STATES_SINCE
    about = wire.text(_UTSNAME, wire.text(_SYSNAME, "Linux") + wire.text(_RELEASE, release))
    if host:
        about += wire.text(_MACHINE_NAME, printable(host))
    return packet(CORES, wire.text(_SYSTEM_INFO, about))


def _recording(context: Context, profile: Profile, options: WriteOptions) -> bytes:
    """The slice with information about the whole recording."""
    scheduling = context.scheduling
    title = printable(options.title or profile.title or "recording")
    about = {"host": profile.host, "kernel": scheduling.kernel}
    about |= {f"lost: {kind}": count(number) for kind, number in {**profile.lost, **scheduling.lost()}.items()}
    about |= {f"comment {i}": comment for i, comment in enumerate(worded(profile.comments), 1)}
    told = [
        wire.text(_ANNOTATION, wire.text(_ANNOTATION_NAME, printable(name)) + wire.text(_ANNOTATION_STRING, value))
        for name, value in ((name, printable(value)) for name, value in about.items())
        if value
    ]
    track = wire.text(_TRACK_DESCRIPTOR, wire.number(_UUID, _TRACK) + wire.text(_TRACK_NAME, "stallscope"))
    where = wire.number(_OF_TRACK, _TRACK)
    begin = b"".join([wire.number(_TYPE, _BEGIN), where, wire.text(_NAME, title), *told])
    end = wire.number(_TYPE, _END) + where
    return (
        packet(CORES, track)
        + packet(CORES, wire.text(_TRACK_EVENT, begin), time=context.base + scheduling.begin)
        + packet(CORES, wire.text(_TRACK_EVENT, end), time=context.base + scheduling.end)
    )
