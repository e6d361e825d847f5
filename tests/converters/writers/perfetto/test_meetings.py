"""Meetings of ranks in a Perfetto trace."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import perfetto_rules
import pytest
from collective_profiles import of_ranks, rank
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
from scheduling_traces import rows
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.collectives import UNKNOWN, Collectives, Meeting
from stallscope.converters.model.scheduling import SWITCH, THREAD, Scheduling
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.perfetto import meetings, writer

BASE = 1_000_000


def communicator(*arrivals: Sequence[int], size: int = 4096, number: int = 3) -> Collectives:
    """Meetings with these arrivals."""
    worst = tuple(Meeting(place, "all-reduce", size, tuple(each)) for place, each in enumerate(arrivals, 1))
    found = of_ranks(*map(rank, range(number)), meetings=len(arrivals))
    return replace(found, worst=worst)


def written(*found: Collectives) -> bytes:
    scheduling = Scheduling(
        1000,
        boottime=BASE,
        threads=rows(THREAD, tid=[10], tgid=[10]),
        switches=rows(SWITCH, time=[0], cpu=[0], next_tid=[10]),
        names=["train"],
    )
    file = io.BytesIO()
    profile = Profile([ValueType("off-cpu", "nanoseconds")], scheduling=scheduling, collectives=list(found))
    writer.write(profile, file, WriteOptions())
    return file.getvalue()


def drawn(*found: Collectives) -> dict[str, list[tuple[int, int, str]]]:
    """Begin, end and name of the slices on the tracks of ranks."""
    trace = perfetto_rules.read(written(*found))
    made: dict[str, list[tuple[int, int, str]]] = {}
    for each in trace.slices:
        if trace.tracks[each.track].parent_uuid:
            assert each.end is not None
            name = trace.tracks[each.track].name
            made.setdefault(name, []).append((each.begin - BASE, each.end - BASE, each.name))
    return made


def arrows(data: bytes) -> tuple[dict[int, str], dict[int, str]]:
    """Tracks of the events at the begins and the ends of arrows."""
    tracks: dict[int, str] = {}
    begins: dict[int, str] = {}
    ends: dict[int, str] = {}
    for packet in proto.Trace.FromString(data).packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        for number in packet.track_event.flow_ids:
            assert number not in begins
            begins[number] = tracks[packet.track_event.track_uuid]
        for number in packet.track_event.terminating_flow_ids:
            assert number not in ends
            ends[number] = tracks[packet.track_event.track_uuid]
    return begins, ends


def test_each_rank_waits_for_the_last_one() -> None:
    assert drawn(communicator((10, 90, 40), (200, 210, 205))) == {
        "rank 0: train 10": [(10, 90, "all-reduce (4 KiB) 1"), (200, 210, "all-reduce (4 KiB) 2")],
        "rank 1: train 11": [
            (90, 90, "all-reduce (4 KiB) 1: the last one, 80 ns after the first"),
            (210, 210, "all-reduce (4 KiB) 2: the last one, 10 ns after the first"),
        ],
        "rank 2: train 12": [(40, 90, "all-reduce (4 KiB) 1"), (205, 210, "all-reduce (4 KiB) 2")],
    }


def test_arrows_lead_to_the_last_one() -> None:
    begins, ends = arrows(written(communicator((10, 90, 40), (210, 200, 205)), communicator((1, 2), number=2)))
    assert begins.keys() == ends.keys()
    assert sorted((begins[number], ends[number]) for number in begins) == [
        ("rank 0: train 10", "rank 1: train 11"),
        ("rank 0: train 10", "rank 1: train 11"),
        ("rank 1: train 11", "rank 0: train 10"),
        ("rank 2: train 12", "rank 0: train 10"),
        ("rank 2: train 12", "rank 1: train 11"),
    ]


def test_a_wait_ends_where_the_next_one_begins() -> None:
    """A rank that only enqueues comes to the next meeting before all have come to this one."""
    found = drawn(communicator((10, 90, 95), (30, 100, 120), (30, 101, 121)))
    assert [each[:2] for each in found["rank 0: train 10"]] == [(10, 30), (30, 30), (30, 121)]


def test_a_rank_without_a_number_has_that_of_its_process() -> None:
    found = communicator((10, 90, 40))
    nameless = replace(found, ranks=tuple(replace(each, rank=UNKNOWN) for each in found.ranks))
    assert sorted(drawn(nameless)) == ["train 10", "train 11", "train 12"]


def test_titles_say_what_is_left_out() -> None:
    found = communicator((10, 90, 40), size=UNKNOWN)
    titles = [
        track.name
        for each in (found, replace(found, meetings=1000))
        for track in perfetto_rules.read(written(each)).tracks.values()
        if track.name.startswith("NCCL")
    ]
    assert titles == [
        "NCCL communicator of 3 ranks of train: 1 meeting",
        "NCCL communicator of 3 ranks of train: those 1 of 1,000 that ranks waited longest for",
    ]


def test_communicators_beyond_the_limit_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meetings, "_MOST_ARRIVALS", 5)
    assert len(drawn(communicator((1, 2, 3)), communicator((1, 2, 3)))) == 3


def test_ranks_are_shown_in_their_order() -> None:
    trace = perfetto_rules.read(written(*[communicator(range(1, 13), number=12)] * 2))
    groups = [each for each in trace.tracks.values() if each.name.startswith("NCCL")]
    assert [(each.child_ordering, each.sibling_merge_behavior) for each in groups] == [
        (proto.TrackDescriptor.EXPLICIT, proto.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE)
    ] * 2
    places = [each.sibling_order_rank for each in trace.tracks.values() if each.parent_uuid]
    assert places == [*range(12)] * 2


def test_names_are_printable() -> None:
    found = communicator((10, 90, 40))
    hostile = replace(found, ranks=tuple(replace(each, process="\x1b[2J") for each in found.ranks))
    assert b"\x1b[2J" not in written(hostile)
