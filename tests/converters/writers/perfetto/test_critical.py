"""The critical path in a Perfetto trace."""

from __future__ import annotations

import io
import struct

import numpy as np
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.critical import CriticalPath, Segment
from stallscope.converters.model.scheduling import NO_STACK, SWITCH, THREAD, Scheduling
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.perfetto import critical, writer
from stallscope.converters.writers.perfetto.context import Context


def scheduling() -> Scheduling:
    threads = np.array([(5, 5, 0, 0, 0), (6, 5, 0, 1, 0)], THREAD)
    switches = np.array([(0, 0, 0, 0, 5, 120)], SWITCH)
    return Scheduling(100, threads=threads, switches=switches, names=["train", "\x1b[2Jloader"])


PATH = CriticalPath(
    0,
    (
        Segment(0, 20, 0, 5, "running", NO_STACK),
        Segment(20, 60, 1, 6, "running", NO_STACK, (0,)),
        Segment(60, 100, 0, 5, "runnable-woken", NO_STACK),
    ),
)


def flows(packets: list[bytes], field: int) -> list[int]:
    """The numbers of the flows in a field of these packets."""
    key = bytes([(field << 3 | 1) & 0x7F | 0x80, field >> 4])
    return [struct.unpack_from("<Q", data, at + 2)[0] for data in packets if (at := data.find(key)) >= 0]


def test_arrows_lead_from_one_thread_to_the_next() -> None:
    packets = list(critical.path_slices(Context(scheduling(), 0), PATH, "the path"))
    assert len(packets) == 1 + 2 + 2 * 3  # the group, its tracks, and two for each segment
    begins, ends = flows(packets, 47), flows(packets, 48)
    assert len(begins) == len(set(begins)) == 2
    assert begins == ends


def test_names_are_printable_and_a_trace_has_the_path() -> None:
    file = io.BytesIO()
    profile = Profile([ValueType("critical", "nanoseconds")], scheduling=scheduling(), critical=PATH, title="Path of x")
    writer.write(profile, file, WriteOptions())
    assert file.getvalue().count(b"Path of x") == 2
    assert b"\x1b[2J" not in file.getvalue()
    without = io.BytesIO()
    profile.critical = None
    writer.write(profile, without, WriteOptions())
    assert len(without.getvalue()) < len(file.getvalue())
