from __future__ import annotations

import gzip
import io
import json
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pprof_wire import fields, loaded, packed, profile, saved
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Kind, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.asked_values import AskedValues
from stallscope.converters.model.call_ioctls import CallIoctls
from stallscope.converters.model.calls import BUCKETS, CallTimes
from stallscope.converters.model.collectives import Watched
from stallscope.converters.model.copies import Copies
from stallscope.converters.model.file_locks import FileLock, LockAsker
from stallscope.converters.model.gpus import REASONS, Gpu, GpuLimit
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.pressure import KINDS, RESOURCES, CoreThread, Interrupts, Pressure
from stallscope.converters.model.processes import (
    LATENCY_BUCKETS,
    THREAD_VARIABLES,
    CpuLimit,
    ProcessTimes,
    cpu_list,
)
from stallscope.converters.model.ranks import LABELS as RANK_LABELS
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.model.wait_objects import Link, ObjectEnd, WaitObject
from stallscope.converters.pprof.schema import STALLSCOPE
from stallscope.converters.writers import pprof as pprof_writer
from stallscope.converters.writers.base.options import WriteOptions

# Round trips

TEXT = st.text(st.one_of(st.characters(), st.sampled_from("\udc80\udcff\ud800\\u;\n\0 05c")), max_size=12)
INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
FRAMES = st.builds(
    Frame,
    name=TEXT.filter(bool),
    kind=st.sampled_from(get_args(Kind)),
    module=st.none() | st.builds(Module, TEXT, st.sampled_from(["", "ab12"]), UINT64),
    address=UINT64,
    file=TEXT,
    line=st.integers(0, 2**31),
)
_CALLS = partial(
    st.builds,
    CallTimes,
    TEXT,
    TEXT,
    *[UINT64, TEXT, *[UINT64] * 6],
    latencies=st.just(()) | st.lists(UINT64, min_size=BUCKETS, max_size=BUCKETS).map(tuple),
    errors=st.dictionaries(TEXT, UINT64, max_size=2),
    open_count=UINT64,
    open_time=UINT64,
    pid_life=UINT64,
)
CALLS = _CALLS(threads=st.lists(_CALLS(tid=UINT64, tid_life=UINT64, thread=TEXT), max_size=2))
LABELS = st.dictionaries(TEXT, TEXT | INT64, max_size=4).map(lambda labels: tuple(sorted(labels.items())))
COUNTS = st.dictionaries(TEXT, UINT64, max_size=3)
WALLS, PARTS = st.integers(2**60, 2**63), st.integers(0, 2**58)
BLOCKED = st.dictionaries(TEXT, PARTS, max_size=3)
THREADS = st.builds(ThreadTimes, INT64, TEXT, INT64, TEXT, WALLS, PARTS, PARTS, BLOCKED, UINT64, st.booleans(), INT64)
LIMITS = st.builds(CpuLimit, TEXT, UINT64, st.integers(1, 10**6), UINT64, UINT64, UINT64)
PROCESSES = st.builds(
    ProcessTimes,
    INT64,
    TEXT,
    st.just(()) | st.lists(UINT64, min_size=LATENCY_BUCKETS, max_size=LATENCY_BUCKETS).map(tuple),
    st.frozensets(st.integers(0, 999), max_size=5).map(cpu_list),
    st.lists(LIMITS, max_size=2).map(tuple),
    st.none() | st.dictionaries(st.sampled_from(THREAD_VARIABLES), TEXT, max_size=3),
    TEXT,
    ranks=st.dictionaries(st.sampled_from(RANK_LABELS), TEXT, max_size=2),
)

SHARED = st.builds(
    SharedCall,
    TEXT,
    TEXT,
    *[UINT64] * 7,
    st.dictionaries(UINT64, UINT64, max_size=3),
    st.dictionaries(st.tuples(UINT64, UINT64), UINT64, max_size=3),
)

CALL_IOCTLS = st.builds(CallIoctls, TEXT, TEXT, UINT64, TEXT, TEXT, TEXT, *[UINT64] * 7)
ANSWERS = st.builds(
    AskedValues,
    *[TEXT] * 4,
    UINT64,
    INT64,
    st.lists(st.tuples(INT64, INT64, UINT64), max_size=2),
    st.lists(st.tuples(TEXT, UINT64), max_size=2),
    UINT64,
)
COPIES = st.builds(Copies, TEXT, TEXT, UINT64, TEXT, TEXT, st.booleans(), *[UINT64] * 7)
OBJECTS = st.builds(
    WaitObject, UINT64, *[TEXT] * 3, TEXT, UINT64, TEXT, TEXT, st.booleans(), TEXT,
    st.lists(st.builds(ObjectEnd, TEXT, UINT64), max_size=2), UINT64, mapped=st.booleans(), source=TEXT,
    links=st.lists(st.builds(Link, TEXT, *[UINT64] * 8, st.booleans()), max_size=2),
)  # fmt: skip
FILE_LOCKS = st.builds(
    FileLock, TEXT, TEXT, UINT64, TEXT, UINT64, st.booleans(), UINT64, TEXT, *[UINT64] * 4, TEXT, *[UINT64] * 7,
    st.lists(st.builds(LockAsker, UINT64, UINT64), max_size=2), UINT64,
)  # fmt: skip
NEIGHBOURS = st.builds(Neighbour, TEXT, UINT64, UINT64, st.sampled_from(["", "0-3,8"]))

PRESSURE = st.builds(Pressure, st.sampled_from(RESOURCES), UINT64, UINT64, UINT64, TEXT)
_FIGURES = st.integers(-1, 2**63 - 1)
_LIMITS = st.lists(st.builds(GpuLimit, st.sampled_from([*REASONS.values()]), _FIGURES), max_size=2)
GPUS = st.builds(Gpu, _FIGURES, TEXT, *[_FIGURES] * 14, _LIMITS)
INTERRUPTS = st.builds(Interrupts, st.sampled_from(KINDS), TEXT, UINT64, UINT64, UINT64, st.integers(-1, 2**63))
CORE_THREADS = st.builds(CoreThread, UINT64, TEXT, TEXT, UINT64, UINT64, UINT64)
WATCHED = st.builds(Watched, UINT64, UINT64)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    kinds = st.builds(ValueType, TEXT, TEXT, st.sampled_from(["sum", "min", "max"]))
    value_types = draw(st.lists(kinds, max_size=4))
    values = st.tuples(*[INT64] * len(value_types))
    frames = st.lists(st.sampled_from(draw(st.lists(FRAMES, min_size=1, max_size=4))), max_size=5).map(tuple)
    return Profile(
        value_types,
        draw(st.lists(st.builds(Sample, frames, values, LABELS), max_size=4)),
        title=draw(TEXT),
        host=draw(TEXT),
        start_ns=draw(INT64),
        duration_ns=draw(INT64),
        threads=draw(st.lists(THREADS, max_size=2)),
        processes=draw(st.lists(PROCESSES, max_size=2)),
        calls=draw(st.lists(CALLS, max_size=2)),
        shared=draw(st.lists(SHARED, max_size=2)),
        call_ioctls=draw(st.lists(CALL_IOCTLS, max_size=2)),
        answers=draw(st.lists(ANSWERS, max_size=2)),
        copies=draw(st.lists(COPIES, max_size=2)),
        file_locks=draw(st.lists(FILE_LOCKS, max_size=2)),
        neighbours=draw(st.lists(NEIGHBOURS, max_size=2)),
        pressure=draw(st.lists(PRESSURE, max_size=2)),
        gpus=draw(st.lists(GPUS, max_size=2)),
        core_threads=draw(st.lists(CORE_THREADS, max_size=2)),
        watched=draw(st.lists(WATCHED, max_size=2)),
        interrupts=draw(st.lists(INTERRUPTS, max_size=2)),
        objects=draw(st.lists(OBJECTS, max_size=2)),
        lost=draw(COUNTS),
        comments=draw(st.lists(TEXT | TEXT.map("stallscope:".__add__), max_size=3)),
    )


@settings(max_examples=300, deadline=None)
@given(profiles())
def test_any_profile_comes_back(original: Profile) -> None:
    assert loaded(saved(original)) == original


def test_more_samples_than_one_piece_holds() -> None:
    original = profile()
    original.samples = [Sample(original.samples[i % 2].stack, (0, i, 1, i), (("tid", i % 7),)) for i in range(2500)]
    assert loaded(saved(original)) == original


def test_types_of_labels_survive_where_python_calls_them_equal() -> None:
    back = loaded(saved(profile()))
    assert [type(value) for _, value in back.samples[0].labels] == [str, int, str, str, int]


def test_equal_stacks_and_labels_are_shared_after_loading() -> None:
    original = profile()
    original.samples *= 2
    back = loaded(saved(original)).samples
    assert back[0].stack is back[2].stack
    assert back[0].labels is back[2].labels


def test_the_same_profile_gives_the_same_bytes() -> None:
    data = saved(profile())
    assert data == saved(profile())
    assert data[:8] == b"\x1f\x8b\x08\0\0\0\0\0"  # no file name, no time


def test_a_number_beyond_64_bits_is_reported() -> None:
    with pytest.raises(StallscopeError, match="cannot be saved"):
        saved(Profile([ValueType("off-cpu", "nanoseconds")], [Sample((), (2**63,))]))


def test_the_writer_replaces_the_title() -> None:
    file = io.BytesIO()
    pprof_writer.write(profile(), file, WriteOptions(title="other"))
    assert loaded(file.getvalue()).title == "other"


# The bytes


@pytest.fixture
def wire() -> dict[int, list[Any]]:
    return fields(gzip.decompress(saved(profile())))


@pytest.fixture
def strings(wire: dict[int, list[Any]]) -> list[str]:
    return [text.decode() for text in wire[6]]  # strict: protobuf strings are valid UTF-8


def test_header(wire: dict[int, list[Any]], strings: list[str]) -> None:
    assert strings[0] == ""
    sample_types = [fields(data) for data in wire[1]]
    assert [(strings[t[1][0]], strings[t[2][0]]) for t in sample_types] == [
        ("off-cpu", "nanoseconds"),
        ("count", "count"),
    ]
    assert wire[9] == [1_790_000_000_000_000_000]
    assert wire[10] == [10_000_000_000]
    assert strings[wire[14][0]] == "off-cpu"


def test_samples_are_leaf_first_and_their_labels_typed(wire: dict[int, list[Any]], strings: list[str]) -> None:
    sample = fields(wire[2][0])
    locations = {message[1][0]: message for message in map(fields, wire[4])}
    functions = {message[1][0]: message for message in map(fields, wire[5])}
    lines = [fields(locations[i][4][0]) for i in packed(sample[1][0])]
    names = [strings[functions[line[1][0]][2][0]] for line in lines]
    assert names == ["schedule", "entry_SYSCALL_64", "ioctl", "topk<int>(int)", "start_thread"]
    assert packed(sample[2][0]) == [3_000_000_000, 3]
    labels = {strings[label[1][0]]: label for label in map(fields, sample[3])}
    assert labels["min"][3] == [5]
    assert strings[labels["max"][4][0]] == "nanoseconds"
    assert labels["tid"][3] == [101]
    assert strings[labels["pid"][4][0]] == "pid"  # without a unit, viewers drop the 0
    assert strings[labels["host"][2][0]] == "n1"


def test_functions_and_locations(wire: dict[int, list[Any]], strings: list[str]) -> None:
    functions = {strings[f[2][0]]: f for f in map(fields, wire[5])}
    assert strings[functions["schedule"][3][0]] == "schedule [kernel]"
    assert strings[functions["start_thread"][3][0]] == "start_thread"
    assert strings[functions["topk<int>(int)"][4][0]] == "topk.cpp"
    locations = [fields(data) for data in wire[4]]
    assert {location[3][0] for location in locations if location[3]} == {
        0x89000,
        0x1234,
        0x10E000,
        0xFFFFFFFF81000010,
        0xFFFFFFFF81000020,
        0x55,
    }
    assert [fields(location[4][0])[2] for location in locations if location[3] == [0x1234]] == [[42]]


def test_the_program_is_the_first_mapping(wire: dict[int, list[Any]], strings: list[str]) -> None:
    first, second = (fields(data) for data in wire[3])
    assert (strings[first[5][0]], strings[first[6][0]], first[3]) == ("/opt/demo", "bb" * 20, [0x4000])
    assert (first[7], first[8], first[9]) == ([1], [1], [1])
    assert (strings[second[5][0]], second[8], second[9]) == ("/usr/lib/libc.so.6", [], [])


def test_comments_for_people_and_for_machines(wire: dict[int, list[Any]], strings: list[str]) -> None:
    comments = [strings[i] for i in packed(wire[13][0])]
    assert comments[1] == "lost: lost events 0, stacks cut short 3"
    assert len(comments) == len(profile().comments) + 2
    machine = json.loads(wire[STALLSCOPE][0])
    assert machine["lost"] == {"lost events": 0, "stacks cut short": 3}
    assert machine["threads"][0]["blocked"] == {"interruptible": 7}


def test_thread_accounts_are_nothing_that_other_programs_print() -> None:
    """`pprof -top` begins with all comments: a million threads must not be among them."""
    content = profile()
    content.threads = [
        ThreadTimes(7, "pool", tid, f"worker-{tid}", 10, 1, 2, {"interruptible": 7}, 5, exited=True)
        for tid in range(20_000)
    ]
    wire = fields(gzip.decompress(saved(content)))
    assert len(wire[STALLSCOPE][0]) > 1_000_000
    strings = [data.decode() for data in wire[6]]
    assert sum(len(strings[i]) for i in packed(wire[13][0])) < 1000
    assert not any("worker-" in text for text in strings)
    assert loaded(saved(content)).threads == content.threads
