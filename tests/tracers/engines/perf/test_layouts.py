"""Places of a record's thread and time."""

from __future__ import annotations

import struct

import pytest
from perf_recordings import (
    CPU,
    ID,
    IDENTIFIER,
    IP,
    SAMPLE,
    STREAM_ID,
    TID,
    TIME,
    WHO,
    attr,
    noticed,
    record,
)


@pytest.mark.parametrize(
    ("sample_type", "before", "after"),
    [
        (TID | TIME, 0, 0),
        (IP | TID | TIME, 8, 0),
        (IDENTIFIER | TID | TIME, 8, 8),
        (IP | IDENTIFIER | TID | TIME | CPU, 16, 16),
        (IP | TID | TIME | ID | STREAM_ID | CPU | 1 << 8, 8, 24),
    ],
)
def test_who_and_when(sample_type: int, before: int, after: int) -> None:
    sample = record(SAMPLE, bytes(before) + WHO + b"s" * 40)
    others = {kind: record(kind, b"o" * 24 + WHO + bytes(after)) for kind in (2, 3, 4, 7, 13, 14, 15, 10, 16, 80)}
    told = noticed(attr(sample_type), sample, *others.values())
    assert told == [(kind, WHO) for kind in (SAMPLE, 2, 3, 4, 7, 2, 14, 14)]


def test_events_with_other_fields() -> None:
    """The id at the end tells which: one has the core, the other has not. Records that perf itself makes have none."""
    one, two = (IDENTIFIER | IP | TID | TIME | more for more in (CPU, 0))
    ends = struct.pack("=QQ", 3, 17), struct.pack("=Q", 18), bytes(16)
    told = noticed(attr(one, 16, 17), attr(two, 18), *(record(14, WHO + end) for end in ends))
    assert told == [(14, WHO)] * 3


def test_what_is_not_known_is_not_told() -> None:
    sample = record(SAMPLE, bytes(8) + WHO)
    assert noticed(sample) == noticed(attr(IP | TID), sample) == noticed(attr(IP | TIME), sample) == []
    assert noticed(attr(IP | TID | TIME)[:20], sample) == []
    assert noticed(attr(IP | TID | TIME), record(SAMPLE, bytes(8)), record(14, b"")) == []
