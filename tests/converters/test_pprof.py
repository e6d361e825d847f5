"""pprof round trips, the bytes that other viewers see, foreign and damaged files."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
from collections import defaultdict
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters import pprof
from stallscope.converters.errors import StallscopeError
from stallscope.converters.model import Frame, Kind, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.options import WriteOptions
from stallscope.converters.writers import pprof as pprof_writer

LIBC = Module("/usr/lib/libc.so.6", "aa" * 20, 0x1D5000)
DEMO = Module("/opt/demo", "bb" * 20, 0x4000)
HOSTILE = "<script>alert(1)</script>;x \x1b[2J\u202e\"'&\n\udcff\\udc80\\u005c"


def profile() -> Profile:
    worker = (
        Frame("start_thread", "native", LIBC, 0x89000),
        Frame("topk<int>(int)", "native", DEMO, 0x1234, "topk.cpp", 42),
        Frame("ioctl", "native", LIBC, 0x10E000),
        Frame("entry_SYSCALL_64", "kernel", None, 0xFFFFFFFF81000010),
        Frame("schedule", "kernel", None, 0xFFFFFFFF81000020),
    )
    main = (Frame("main", "python", None, 0, "train.py", 7), Frame(HOSTILE, "jit", None, 0x55))
    labels = (("host", "n1"), ("pid", 0), ("process", HOSTILE), ("state", ""), ("tid", 101))
    return Profile(
        [
            ValueType("min", "nanoseconds", "min"),
            ValueType("off-cpu", "nanoseconds"),
            ValueType("count", "count"),
            ValueType("max", "nanoseconds", "max"),
        ],
        [Sample(worker, (5, 3_000_000_000, 3, 2_000_000_000), labels), Sample(main, (0, 7, 1, 7), (("pid", -1),))],
        title="off-CPU time of " + HOSTILE,
        host="n1",
        start_ns=1_790_000_000_000_000_000,
        duration_ns=10_000_000_000,
        threads=[ThreadTimes(100, HOSTILE, 101, "w", 10, 1, 2, {"interruptible": 7}, 5, exited=True)],
        lost={"lost events": 0, "stacks cut short": 3},
        comments=["hello", "stallscope:nonsense", "lost: lost events 0, stacks cut short 3", ""],
    )


def saved(content: Profile) -> bytes:
    file = io.BytesIO()
    pprof.save(content, file)
    return file.getvalue()


def loaded(data: bytes, **options: int) -> Profile:
    return pprof.load(io.BytesIO(data), **options)


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
LABELS = st.dictionaries(TEXT, TEXT | INT64, max_size=4).map(lambda labels: tuple(sorted(labels.items())))
COUNTS = st.dictionaries(TEXT, st.integers(0), max_size=3)
THREADS = st.builds(ThreadTimes, *[INT64, TEXT, INT64, TEXT, INT64, INT64, INT64, COUNTS, INT64], exited=st.booleans())


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


# The bytes, decoded by hand: what profile.proto's numbers say, whatever our own schema says


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> dict[int, list[Any]]:
    """Field number → values: ints (wire type 0) and bytes (wire type 2)."""
    found: dict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        assert tag & 7 in (0, 2)
        if tag & 7 == 2:
            found[tag >> 3].append(data[at : at + value])
            at += value
        else:
            found[tag >> 3].append(value)
    return found


def packed(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


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
    machine = json.loads(comments[-1].removeprefix("stallscope:"))
    assert machine["lost"] == {"lost events": 0, "stacks cut short": 3}
    assert machine["threads"][0]["blocked"] == {"interruptible": 7}


# Profiles of other programs


def text(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def number(field: int, value: int) -> bytes:
    out = bytearray([field << 3])
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def foreign(*, samples: bytes, tables: bytes) -> bytes:
    strings = ["", "cpu", "nanoseconds", "/lib/libx.so", "outer", "inlined", "role", "[kernel.kallsyms]"]
    head = text(1, number(1, 1) + number(2, 2))
    return head + samples + tables + b"".join(text(6, s) for s in strings) + text(6, b"na\xffme")


MAPPING = text(3, number(1, 1) + number(2, 0x7000) + number(3, 0x9000) + number(4, 0x1000) + number(5, 3))
KERNEL = text(3, number(1, 2) + number(2, 0x10000) + number(3, 0x90000) + number(5, 7))
SAMPLE = text(2, text(1, b"\x01\x02\x03") + text(2, b"\x09") + text(3, number(1, 6) + number(2, 5)))
LOCATIONS = (
    text(4, number(1, 1) + number(2, 2) + number(3, 0x20000))
    + text(4, number(1, 2) + number(2, 1) + number(3, 0x7010) + text(4, number(1, 8)) + text(4, number(1, 9)))
    + text(4, number(1, 3) + number(3, 0x42))
)
FUNCTIONS = text(5, number(1, 8) + number(2, 5) + number(5, 12)) + text(5, number(1, 9) + number(2, 8))


def test_a_foreign_profile_without_packing() -> None:
    profile = loaded(foreign(samples=SAMPLE, tables=MAPPING + KERNEL + LOCATIONS + FUNCTIONS))
    libx = Module("/lib/libx.so", "", 0x3000)
    kernel = Module("[kernel.kallsyms]", "", 0x90000)
    assert profile.value_types == [ValueType("cpu", "nanoseconds", "sum")]
    assert profile.samples == [
        Sample(
            (
                Frame("[0x42]", "native", None, 0x42),
                Frame("na\udcffme", "native", libx, 0x1010),
                Frame("inlined", "native", libx, 0x1010, "", 12),
                Frame("[kernel.kallsyms+0x20000]", "kernel", kernel, 0x20000),
            ),
            (9,),
            (("role", "inlined"),),
        )
    ]
    assert (profile.title, profile.lost, profile.threads, profile.comments) == ("", {}, [], [])
    assert loaded(saved(profile)) == profile


@pytest.mark.parametrize(
    ("samples", "tables", "cause"),
    [
        (SAMPLE, MAPPING + KERNEL + FUNCTIONS, "a location is missing"),
        (SAMPLE, KERNEL + LOCATIONS + FUNCTIONS, "a mapping is missing"),
        (SAMPLE, MAPPING + KERNEL + LOCATIONS, "a function is missing"),
        (text(2, text(2, b"\x09\x09")), b"", "number of values"),
        (text(2, text(2, b"\x09") + text(3, number(1, 99))), b"", "a string is missing"),
        (b"", text(4, number(3, 0x42)), "without an id"),
        (b"", number(13, 99), "a string is missing"),
        (b"", number(13, 2**64 - 1), "a string is missing"),
        (text(2, b"\x0a\x7f"), b"", "damaged"),
    ],
)
def test_contradictions_are_reported(samples: bytes, tables: bytes, cause: str) -> None:
    with pytest.raises(StallscopeError, match=cause):
        loaded(foreign(samples=samples, tables=tables))


# Damaged and hostile files


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b", b"hello, world\n", b"\0" * 100, b"\x12\x00" * 10, b"<svg/>"])
def test_what_is_no_profile(data: bytes) -> None:
    with pytest.raises(StallscopeError):
        loaded(data)


def test_every_truncation_is_noticed() -> None:
    data = saved(profile())
    for size in range(len(data)):
        with pytest.raises(StallscopeError):
            loaded(data[:size])


@pytest.mark.parametrize("packing", [gzip.compress, bytes])
def test_random_damage_never_gives_a_traceback(packing: Any) -> None:
    chance = random.Random(7)
    plain = gzip.decompress(saved(profile()))
    for _ in range(1500):
        data = bytearray(plain)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            loaded(packing(bytes(data)))
        except StallscopeError as error:
            assert error.remedy


@pytest.mark.parametrize(
    "meta",
    [
        "",
        "[]",
        "{",
        '{"version":2}',
        '{"version":1}',
        '{"version":1,"value_types":[[1,2,3,4]]}',
        '{"version":1,"value_types":[["cpu","nanoseconds","mean",""]]}',
        '{"version":1,"value_types":[["other","nanoseconds","sum",""]]}',
        '{"version":1,"value_types":[],"lost":{"a":"b"}}',
        '{"version":1,"value_types":[],"threads":[{"pid":1}]}',
        '{"version":1,"value_types":[],"generated":1}',
        "[" * 100_000,
        '{"version":1,"lost":{"a":' + "9" * 10_000 + "}}",
    ],
)
def test_a_forged_comment_is_reported(meta: str) -> None:
    comment = b"stallscope:" + meta.encode()
    head = text(1, number(1, 1) + number(2, 2)) + number(13, 3)
    strings = (
        text(6, "") + text(6, "cpu") + text(6, "nanoseconds") + number(6, len(comment)).replace(b"\x30", b"\x32", 1)
    )
    with pytest.raises(StallscopeError, match="damaged"):
        loaded(head + strings + comment)


def test_a_bomb_is_refused_without_unpacking_it() -> None:
    with pytest.raises(StallscopeError, match="more than 1 MiB"):
        loaded(gzip.compress(b"\0" * (64 << 20)), limit=1 << 20)


def test_an_unpacked_file_over_the_limit_is_refused() -> None:
    with pytest.raises(StallscopeError, match="more than"):
        loaded(b"\0" * 1001, limit=1000)


def test_the_limit_itself_is_allowed() -> None:
    data = saved(profile())
    assert loaded(data, limit=len(gzip.decompress(data))) == profile()


def test_a_small_file_cannot_stand_for_endless_frames() -> None:
    location = text(4, number(1, 1) + text(4, number(1, 8)) * 20)
    sample = text(2, text(1, b"\x01" * 100) + text(2, b"\x09"))
    data = foreign(samples=sample, tables=location + FUNCTIONS)
    assert len(loaded(data).samples[0].stack) == 2000
    with pytest.raises(StallscopeError, match="too large"):
        loaded(data, limit=4 * 1999)


def test_a_read_error_is_reported() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(StallscopeError, match="Input/output error"):
        pprof.load(Broken())


def test_strings_show_surrogates_as_text() -> None:
    data = saved(Profile([], [Sample((Frame("a\udc80b\\udc80c\\u0041"),), ())]))
    names = [s for s in fields(gzip.decompress(data))[6] if s.startswith(b"a")]
    assert names == [b"a\\udc80b\\u005cudc80c\\u0041"]
    assert not re.search(rb"[\x80-\xff]", names[0])
