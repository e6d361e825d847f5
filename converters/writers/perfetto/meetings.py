"""Meetings of ranks as tracks: a group for each communicator, in it one for each rank, and arrows to the last one.

A slice goes from the arrival of a rank to that of the last one, for which it waits. Fields are those of TrackEvent and
TrackDescriptor of google/perfetto; for arrows, see `critical`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...base.text import printable
from ...base.units import count, duration, plural
from ...facts.identity import kernel_id
from ...model.collectives import UNKNOWN, CollectiveRank, Collectives, Meeting
from ...phrases.collectives import kind_text
from . import wire
from .context import MEETINGS, Context, packet

_TRACK_EVENT, _TRACK_DESCRIPTOR = 11, 60
_UUID, _TRACK_NAME, _PARENT, _ORDERING, _PLACE, _MERGING = 1, 2, 5, 11, 12, 15
_BY_PLACE, _NOT_MERGED = 3, 2
"""Tracks of a group are shown by their ``sibling_order_rank``; groups of the same name are not put together."""
_TYPE, _TRACK, _NAME, _BEGIN, _END, _INSTANT = 9, 11, 23, 1, 2, 3
_FLOWS, _ENDING_FLOWS = 47, 48
_FIXED64 = 1
"""Wire type."""
_FIRST = 1 << 49
"""``uuid`` of the first group; those of its tracks and of the other groups follow."""
_MOST_ARRIVALS = 200_000
"""Arrivals that are drawn: a viewer is slow with more, and a communicator has 1,000 meetings at most."""


class _Event(NamedTuple):
    """Begin, end or instant of a slice."""

    time: int
    order: int
    """Order at the same time: ends come first."""
    data: bytes


def meeting_slices(context: Context, found: Sequence[Collectives]) -> Iterator[bytes]:
    """Packets: the tracks of all communicators, then what is on them, by time."""
    uuid, drawn = _FIRST, 0
    events: list[_Event] = []
    for of in found:
        arrivals = len(of.worst) * len(of.ranks)
        if not arrivals or drawn + arrivals > _MOST_ARRIVALS:
            continue
        yield _track(uuid, _title(of))
        for column, rank in enumerate(of.ranks):
            yield _track(uuid + 1 + column, _rank(rank), parent=uuid, place=column)
            events += _of_rank(of, column, uuid + 1 + column, drawn)
        uuid += 1 + len(of.ranks)
        drawn += arrivals
    for event in sorted(events):
        yield packet(MEETINGS, wire.text(_TRACK_EVENT, event.data), time=context.base + event.time)


def _track(uuid: int, name: str, parent: int = 0, place: int = 0) -> bytes:
    about = wire.number(_UUID, uuid) + wire.text(_TRACK_NAME, printable(name)) + wire.number(_MERGING, _NOT_MERGED)
    if parent:
        about += wire.number(_PARENT, parent) + wire.number(_PLACE, place)
    else:
        about += wire.number(_ORDERING, _BY_PLACE)
    return packet(MEETINGS, wire.text(_TRACK_DESCRIPTOR, about))


def _title(of: Collectives) -> str:
    drawn = f"those {count(len(of.worst))} of {count(of.meetings)} that ranks waited longest for"
    which = drawn if len(of.worst) < of.meetings else plural(of.meetings, "meeting")
    return f"{of.library} communicator of {plural(len(of.ranks), 'rank')} of {of.ranks[0].process}: {which}"


def _rank(rank: CollectiveRank) -> str:
    named = f"{rank.process} {kernel_id(rank.pid)}"
    return f"rank {rank.rank}: {named}" if rank.rank != UNKNOWN else named


def _of_rank(of: Collectives, column: int, track: int, first: int) -> Iterator[_Event]:
    """Events on the track of one rank. A wait is cut off where the rank comes to the next meeting, as one that only
    enqueues may. ``first``: number of the communicator's first arrow."""
    where = wire.number(_TRACK, track)
    meetings = sorted(enumerate(of.worst), key=lambda each: each[1].arrivals[column])
    for i, (place, each) in enumerate(meetings):
        came, last = each.arrivals[column], max(each.arrivals)
        arrows = range(first + place * len(of.ranks), first + (place + 1) * len(of.ranks))
        if each.arrivals.index(last) == column:
            ending = b"".join(_flow(_ENDING_FLOWS, arrow) for at, arrow in enumerate(arrows) if at != column)
            name = wire.text(_NAME, f"{_name(each)}: the last one, {_late(each)}")
            yield _Event(came, 1, wire.number(_TYPE, _INSTANT) + where + name + ending)
            continue
        begin = where + wire.text(_NAME, _name(each)) + _flow(_FLOWS, arrows[column])
        following = meetings[i + 1][1].arrivals[column] if i + 1 < len(meetings) else last
        if came < min(last, following):
            yield _Event(came, 2, wire.number(_TYPE, _BEGIN) + begin)
            yield _Event(min(last, following), 0, wire.number(_TYPE, _END) + where)
        else:
            yield _Event(came, 1, wire.number(_TYPE, _INSTANT) + begin)


def _name(meeting: Meeting) -> str:
    return printable(f"{kind_text(meeting)} {count(meeting.number)}")


def _late(meeting: Meeting) -> str:
    return f"{duration(max(meeting.arrivals) - min(meeting.arrivals))} after the first"


def _flow(field: int, number: int) -> bytes:
    return wire.varint(field << 3 | _FIXED64) + struct.pack("<Q", _FIRST + number)
