"""The critical path as tracks of its own: one for each thread on it, and arrows where it goes from one to the next.

Fields are those of TrackEvent and TrackDescriptor of google/perfetto. An arrow is a flow: a slice names it in flow_ids,
the next one in terminating_flow_ids.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...base.text import printable
from ...model.critical import CriticalPath, Segment
from ...model.scheduling import NO_STACK
from ..base.wait_names import wait_name
from . import wire
from .context import CORES, Context, packet

_TRACK_EVENT, _TRACK_DESCRIPTOR = 11, 60
_UUID, _TRACK_NAME, _PARENT = 1, 2, 5
_TYPE, _TRACK, _NAME, _BEGIN, _END = 9, 11, 23, 1, 2
_FLOWS, _ENDING_FLOWS = 47, 48
_FIXED64 = 1
"""Wire type."""
_TOP = 1 << 48
"""``uuid`` of the group; those of its tracks follow."""


def path_slices(context: Context, path: CriticalPath, title: str) -> Iterator[bytes]:
    """Packets: the tracks, then the beginnings and ends."""
    yield packet(CORES, wire.text(_TRACK_DESCRIPTOR, wire.number(_UUID, _TOP) + wire.text(_TRACK_NAME, title)))
    tracks: dict[int, int] = {}
    for segment in path.segments:
        if segment.tid not in tracks:
            tracks[segment.tid] = _TOP + 1 + len(tracks)
            about = wire.number(_UUID, tracks[segment.tid]) + wire.number(_PARENT, _TOP)
            yield packet(CORES, wire.text(_TRACK_DESCRIPTOR, about + wire.text(_TRACK_NAME, _thread(context, segment))))
    for i, segment in enumerate(path.segments):
        before = path.segments[i - 1] if i else segment
        after = path.segments[i + 1] if i + 1 < len(path.segments) else segment
        where = wire.number(_TRACK, tracks[segment.tid])
        begin = wire.number(_TYPE, _BEGIN) + where + wire.text(_NAME, _name(context, segment))
        begin += _flow(_ENDING_FLOWS, i) if before.tid != segment.tid else b""
        begin += _flow(_FLOWS, i + 1) if after.tid != segment.tid else b""
        end = wire.number(_TYPE, _END) + where
        yield packet(CORES, wire.text(_TRACK_EVENT, begin), time=context.base + segment.begin)
        yield packet(CORES, wire.text(_TRACK_EVENT, end), time=context.base + segment.end)


def _flow(field: int, number: int) -> bytes:
    return wire.varint(field << 3 | _FIXED64) + struct.pack("<Q", _TOP + number)


def _thread(context: Context, segment: Segment) -> str:
    scheduling = context.scheduling
    if segment.thread < 0:
        return f"thread {segment.tid}"
    return printable(f"{scheduling.names[scheduling.threads['name'][segment.thread]]} {segment.tid}")


def _name(context: Context, segment: Segment) -> str:
    return wait_name(context.scheduling, segment.stack, segment.state) if segment.stack != NO_STACK else segment.state
