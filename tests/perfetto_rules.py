"""Reads a Perfetto trace with the official definitions (package perfetto) and checks the rules that these tell.

The rules stand in the comments of trace_packet.proto, interned_data.proto, track_event.proto and
ftrace_event_bundle.proto, and, for switches, in the importer (ftrace_sched_event_tracker.cc).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
from stallscope.converters.base.text import printable

MAX_CORES = 1024
CLEARED = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDS_STATE = proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
REFERENCES = {
    "event_categories": "category_iids",
    "event_names": "name_iid",
    "callstacks": "callstack_iid",
}
INTERNED = (
    *REFERENCES,
    "debug_annotation_names",
    "debug_annotation_string_values",
    "function_names",
    "frames",
    "mappings",
    "mapping_paths",
    "source_paths",
    "build_ids",
)


@dataclass
class Slice:
    """A span on a track."""

    track: int
    begin: int
    end: int | None
    name: str
    stack: tuple[str, ...]
    notes: dict[str, str]


@dataclass
class Trace:
    """Content of a trace."""

    packets: list[Any]
    switches: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Switches by core: time, who leaves, his state, who comes."""
    names: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Names of threads in switches and wake-ups, by id."""
    wakeups: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Time, waker, woken, core where it is going to run."""
    others: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Other events of the kernel by name: time and thread."""
    slices: list[Slice] = field(default_factory=list)
    tracks: dict[int, Any] = field(default_factory=dict)
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Core, and first time of the bundle that says so (-1: it has no events)."""
    processes: dict[int, str] = field(default_factory=dict)
    threads: list[tuple[int, int, int, str]] = field(default_factory=list)
    """Time, thread, process, name."""


def read(data: bytes) -> Trace:
    """AssertionError where a rule is broken."""
    packets = list(proto.Trace.FromString(data).packet)
    trace = Trace(packets)
    assert all(not unknown(packet) for packet in packets)
    assert packets[0].HasField("clock_snapshot")
    for packet in packets:
        assert packet.trusted_packet_sequence_id > 0
        assert printable(str(packet).replace("\n", "")) == str(packet).replace("\n", "")
        if packet.HasField("process_tree"):
            assert packet.HasField("timestamp")
            for process in packet.process_tree.processes:
                trace.processes[process.pid] = " ".join(filter(None, process.cmdline))
            trace.threads += [(packet.timestamp, t.tid, t.tgid, t.name) for t in packet.process_tree.threads]
    _events_of_cores(trace)
    _track_events(trace)
    return trace


def unknown(message: Any) -> bool:
    """Whether there are fields that the definitions do not have."""
    if len(UnknownFieldSet(message)):
        return True
    return any(
        unknown(each)
        for descriptor, value in message.ListFields()
        if descriptor.message_type
        for each in ([value] if isinstance(value, Message) else value)
    )


def _events_of_cores(trace: Trace) -> None:
    last: dict[int, int] = {}
    wakes: list[tuple[int, int, int | None, int, int]] = []
    for packet in trace.packets:
        if not packet.HasField("ftrace_events"):
            continue
        bundle = packet.ftrace_events
        assert bundle.HasField("cpu")
        assert bundle.cpu < MAX_CORES
        found = sorted([*_compact(bundle, trace), *_whole(bundle, trace, wakes)])
        if bundle.lost_events:
            trace.lost.append((bundle.cpu, found[0][0] if found else -1))
        times = [time for time, *_ in found]
        assert not times or times[0] >= last.get(bundle.cpu, 0), "bundles of a core must follow each other"
        last[bundle.cpu] = max([*times, last.get(bundle.cpu, 0)])
        for time, _, leaves, state, comes in found:
            if comes is not None:
                chain = trace.switches[bundle.cpu]
                assert chain or leaves is not None, "the first switch of a core must be a whole one"
                before = chain[-1][3] if chain else leaves
                assert leaves in (None, before)
                chain.append((time, before, state, comes))
        wakes += _packed_wakes(bundle, trace)
    for time, cpu, waker, tid, target in sorted(wakes, key=lambda each: each[:2]):
        if waker is None:
            had = [comes for at, _, _, comes in trace.switches[cpu] if at <= time]
            assert had, "a packed wake-up must come after a switch of its core"
            waker = had[-1]
        trace.wakeups.append((time, waker, tid, target))


def _compact(bundle: Any, trace: Trace) -> Iterator[tuple[Any, ...]]:
    compact = bundle.compact_sched
    columns = (
        compact.switch_timestamp,
        compact.switch_prev_state,
        compact.switch_next_pid,
        compact.switch_next_prio,
        compact.switch_next_comm_index,
    )
    time = 0
    for later, state, tid, _, name in zip(*columns, strict=True):
        time += later
        trace.names[tid].add(compact.intern_table[name])
        yield time, 1, None, state, tid


def _packed_wakes(bundle: Any, trace: Trace) -> Iterator[tuple[int, int, int | None, int, int]]:
    compact = bundle.compact_sched
    columns = (
        compact.waking_timestamp,
        compact.waking_pid,
        compact.waking_target_cpu,
        compact.waking_prio,
        compact.waking_comm_index,
        compact.waking_common_flags,
    )
    time = 0
    for later, tid, target, _, name, _ in zip(*columns, strict=True):
        assert 0 <= later < 1 << 62
        time += later
        trace.names[tid].add(compact.intern_table[name])
        yield time, bundle.cpu, None, tid, target


def _whole(bundle: Any, trace: Trace, wakes: list[tuple[int, int, int | None, int, int]]) -> Iterator[tuple[Any, ...]]:
    times = [event.timestamp for event in bundle.event]
    assert times == sorted(times)
    for event in bundle.event:
        assert event.HasField("timestamp")
        assert event.HasField("pid")
        kind = event.WhichOneof("event")
        inner = getattr(event, kind)
        if kind == "sched_switch":
            trace.names[inner.next_pid].add(inner.next_comm)
            yield event.timestamp, 0, inner.prev_pid, inner.prev_state, inner.next_pid
        elif kind == "sched_waking":
            wakes.append((event.timestamp, bundle.cpu, event.pid, inner.pid, inner.target_cpu))
        else:
            trace.others[kind].append((event.timestamp, inner.pid))
            yield event.timestamp, 2, None, None, None


def _track_events(trace: Trace) -> None:
    known: dict[int, dict[str, dict[int, Any]]] = {}
    last: dict[int, int] = defaultdict(int)
    open_: dict[int, list[Slice]] = defaultdict(list)
    for packet in trace.packets:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & CLEARED:
            known[sequence] = {name: {} for name in INTERNED}
        if packet.sequence_flags & NEEDS_STATE or packet.HasField("interned_data"):
            assert sequence in known
        _intern(packet.interned_data, known.get(sequence, {}))
        if packet.HasField("track_descriptor"):
            trace.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            event = packet.track_event
            assert packet.timestamp >= last[sequence], "events of a sequence must be sorted"
            last[sequence] = packet.timestamp
            assert event.track_uuid in trace.tracks
            if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
                found = _begun(packet, event, known.get(sequence, {}))
                trace.slices.append(found)
                open_[event.track_uuid].append(found)
            elif event.type == proto.TrackEvent.TYPE_INSTANT:
                found = _begun(packet, event, known.get(sequence, {}))
                found.end = found.begin
                trace.slices.append(found)
            else:
                assert event.type == proto.TrackEvent.TYPE_SLICE_END
                open_[event.track_uuid].pop().end = packet.timestamp


def _begun(packet: Any, event: Any, known: dict[str, dict[int, Any]]) -> Slice:
    uses_state = event.name_iid or event.callstack_iid or event.category_iids
    assert not uses_state or packet.sequence_flags & NEEDS_STATE
    name = known["event_names"][event.name_iid].name if event.name_iid else event.name
    assert all(iid in known["event_categories"] for iid in event.category_iids)
    stack: tuple[str, ...] = ()
    if event.callstack_iid:
        frames = [known["frames"][iid] for iid in known["callstacks"][event.callstack_iid].frame_ids]
        stack = tuple(known["function_names"][frame.function_name_id].str.decode() for frame in frames)
    notes = {}
    for note in event.debug_annotations:
        key = known["debug_annotation_names"][note.name_iid].name if note.name_iid else note.name
        iid = note.string_value_iid
        notes[key] = known["debug_annotation_string_values"][iid].str.decode() if iid else note.string_value
    return Slice(event.track_uuid, packet.timestamp, None, name, stack, notes)


def _intern(data: Any, known: dict[str, dict[int, Any]]) -> None:
    for name in INTERNED:
        for entry in getattr(data, name):
            assert entry.iid > 0
            assert entry.iid not in known[name], "a number must keep its meaning"
            known[name][entry.iid] = entry
    for frame in data.frames:
        assert frame.function_name_id in known["function_names"]
        assert not frame.source_path_iid or frame.source_path_iid in known["source_paths"]
        assert bool(frame.mapping_id) == frame.HasField("rel_pc")
        assert not frame.mapping_id or frame.mapping_id in known["mappings"]
    for stack in data.callstacks:
        assert all(iid in known["frames"] for iid in stack.frame_ids)
    for mapping in data.mappings:
        assert all(iid in known["mapping_paths"] for iid in mapping.path_string_ids)
        assert not mapping.build_id or mapping.build_id in known["build_ids"]
