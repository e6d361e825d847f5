"""Shared by all parts of a Perfetto trace: its clock, its threads and their names, and the making of packets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.text import printable
from ...model.scheduling import Array, Scheduling, Threads
from . import wire

CORES, SPANS, MEETINGS = 1, 2, 3
"""``trusted_packet_sequence_id``: interned data and time order apply within a sequence."""

CLEARED, NEEDS_STATE = 1, 2
"""``sequence_flags``: earlier interned data is dropped; the packet uses interned data."""

PACKET, TIMESTAMP, SEQUENCE, FLAGS, INTERNED = 1, 8, 10, 13, 12
"""Field numbers: `Trace.packet`, and the fields that all TracePackets have."""

FIRST_FREE_TID = 1 << 22
"""The kernel's PID_MAX_LIMIT: no thread has this id or a higher one."""
MAX_CORES = 1024
"""The viewer ignores higher core numbers as invalid (``kMaxCpuCount`` in its ftrace_tokenizer.cc)."""

IDLE, NOT_TRACED, LOST_EVENTS, NO_NAME = "swapper", "[not traced]", "[events lost]", ""


class Context:
    """Data of one trace. ``scheduling`` must have been sorted by `in_order`."""

    def __init__(self, scheduling: Scheduling, start_ns: int) -> None:
        self.scheduling = scheduling
        self.known = Threads(scheduling.threads)
        self.base = scheduling.boottime or start_ns
        """The trace's clock, CLOCK_BOOTTIME, when the recording began; the time of day if unknown."""
        self.names = [name.encode() for name in map(printable, scheduling.names)]
        special = (IDLE, NOT_TRACED, LOST_EVENTS, NO_NAME)
        self.special = {name: len(self.names) + i for i, name in enumerate(special)}
        self.names += [name.encode() for name in special]

    def time(self, times: Array) -> Array:
        """Converts to the trace's clock."""
        return np.asarray(times + self.base)

    def shown_tids(self, tids: Array, cpus: Array) -> Array:
        """Thread ids for the viewer: an unknown thread gets a different id on every core."""
        # OTHERS is -1, LOST is -2.
        return np.where(tids < 0, FIRST_FREE_TID + (-1 - tids) * MAX_CORES + cpus, tids).astype(np.int64)

    def thread_names(self, tids: Array, times: Array) -> Array:
        """Indices of `names`."""
        threads = self.scheduling.threads
        if len(threads):
            rows = self.known.rows(tids, times)
            found = np.where(rows >= 0, threads["name"][rows], self.special[NO_NAME])
        else:
            found = np.full(len(tids), self.special[NO_NAME])
        for tid, name in ((0, IDLE), (-1, NOT_TRACED), (-2, LOST_EVENTS)):
            found[tids == tid] = self.special[name]
        return found


def packet(sequence: int, *fields: bytes, time: int | None = None, flags: int = 0) -> bytes:
    """One packet; ``time`` is in the trace's clock."""
    head = wire.number(SEQUENCE, sequence)
    if time is not None:
        head += wire.number(TIMESTAMP, time)
    if flags:
        head += wire.number(FLAGS, flags)
    return wire.text(PACKET, head + b"".join(fields))


def packets(sequence: int, times: Array, columns: Sequence[wire.Column], flags: int = 0) -> bytes:
    """Many packets, each with a piece of every column; ``times`` are in the trace's clock."""
    head = wire.number(SEQUENCE, sequence) + (wire.number(FLAGS, flags) if flags else b"")
    fixed = wire.constant(head, len(times))
    return wire.messages(PACKET, [fixed, wire.numbers(TIMESTAMP, times), *columns]).bytes()
