"""Layouts of records: where they have a thread and a time is said by the record of each event (HEADER_ATTR).

The formats are those of perf_event_open(2): a sample has the fields IDENTIFIER, IP, TID, TIME in this order, all other
records end with TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER, each if the event's sample_type has it.
"""

from __future__ import annotations

import struct

LOST, COMM, EXIT, FORK, SAMPLE, SWITCH = 2, 3, 4, 7, 9, 14
"""Types of records that perf script prints."""
_SAME = {13: LOST, 15: SWITCH}
"""LOST_SAMPLES, SWITCH_CPU_WIDE."""
_KINDS = {kind: bytes((kind,)) for kind in (LOST, COMM, EXIT, FORK, SAMPLE, SWITCH)}
_KINDS |= {kind: bytes((same,)) for kind, same in _SAME.items()}
_IP, _TID, _TIME, _ID, _CPU, _STREAM_ID, _IDENTIFIER = 1, 1 << 1, 1 << 2, 1 << 6, 1 << 7, 1 << 9, 1 << 16
"""PERF_SAMPLE_*."""
_AT_THE_END = _TID, _TIME, _ID, _STREAM_ID, _CPU, _IDENTIFIER
_HEADER = 8
_SIZE_AT, _SAMPLE_TYPE_AT = _HEADER + 4, _HEADER + 24
"""Offsets in the record of an event: size and sample_type of its perf_event_attr."""
_WORD = struct.Struct("=Q")
_BOTH = 16
"""Bytes of TID and TIME, which follow each other."""


class Layouts:
    """Layouts of the events of a recording."""

    def __init__(self) -> None:
        self._sample = 0
        """Place of TID in a sample; 0: not known."""
        self._end = 0
        """Distance of TID from the end of records other than samples, for the first event."""
        self._by_id: dict[int, int] = {}
        """Distance of TID from the end of such records, for the event of an id, where records tell it."""

    def add(self, record: bytes | bytearray) -> None:
        """The record of an event. One that has no thread or no time is left out: nothing of it is believed."""
        if len(record) < _SAMPLE_TYPE_AT + 8:
            return
        (size,), (kinds,) = struct.unpack_from("=I", record, _SIZE_AT), _WORD.unpack_from(record, _SAMPLE_TYPE_AT)
        if not (kinds & _TID and kinds & _TIME):
            return
        end = 8 * sum(bool(kinds & each) for each in _AT_THE_END)
        if not self._end:
            self._sample = _HEADER + 8 * (bool(kinds & _IDENTIFIER) + bool(kinds & _IP))
            self._end = end
        if kinds & _IDENTIFIER:
            ids = record[_HEADER + size :]
            self._by_id.update((number, end) for (number,) in _WORD.iter_unpack(ids[: len(ids) // 8 * 8]))

    def notice(self, kind: int, data: bytearray, at: int, end: int) -> bytes | bytearray:
        """The kind, pid, tid and time of a record: see `passed`; b"" for one that is not printed, or of which they are
        not known."""
        told = _KINDS.get(kind)
        if told is None or not self._end:
            return b""
        if kind == SAMPLE:
            place = at + self._sample
        else:
            # Records that perf record makes itself have zeros there.
            (number,) = _WORD.unpack_from(data, end - 8)
            place = end - self._by_id.get(number, self._end)
        return told + data[place : place + _BOTH] if at + _HEADER <= place <= end - _BOTH else b""
