from __future__ import annotations

import gzip
import io
import json
import random
from dataclasses import asdict
from typing import Any

import pytest
from pprof_wire import fields, loaded, number, packed, profile, saved, text, with_comment
from stallscope.converters import pprof
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Sample, ValueType
from stallscope.converters.model.asked_values import AskedValues
from stallscope.converters.model.copies import Copies
from stallscope.converters.model.details import Function, Mapping, renamed
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.pprof.schema import STALLSCOPE


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


ANSWER = AskedValues("count-by", "n", "f", "lib", 3, 0, values=[("x", 3)])
COPIES = Copies("cudaMemcpy", "libcudart.so.12", 7, "train", "host to device", is_async=False)
LIMIT = {"cgroup": "/x", "quota_us": 1, "period_us": 1, "periods": 1, "throttled_periods": 1, "throttled_ns": 1}


def forged(**changes: Any) -> str:
    process = {"pid": 1, "process": "x", "latencies": [], "cpus": "0", "limits": [LIMIT], "environment": None}
    return json.dumps({"version": 1, "value_types": [], "processes": [process | changes]})


@pytest.mark.parametrize(
    "meta",
    [
        "",
        "[]",
        "{",
        '{"version":0}',
        '{"version":"2"}',
        '{"version":1}',
        '{"version":1,"value_types":[[1,2,3,4]]}',
        '{"version":1,"value_types":[["cpu","nanoseconds","mean",""]]}',
        '{"version":1,"value_types":[["other","nanoseconds","sum",""]]}',
        '{"version":1,"value_types":[],"lost":{"a":"b"}}',
        '{"version":1,"value_types":[],"lost":{"stacks":-1}}',
        json.dumps({"version": 1, "value_types": [], "lost": {"stacks": 1 << 64}}),
        '{"version":1,"value_types":[],"threads":[{"pid":1}]}',
        '{"version":1,"value_types":[],"processes":[{"pid":1}]}',
        '{"version":1,"value_types":[],"calls":[{"pid":1}]}',
        '{"version":1,"value_types":[],"shared":[{"name":"x"}]}',
        '{"version":1,"value_types":[],"copies":[{"name":"x"}]}',
        json.dumps({"version": 1, "value_types": [], "neighbours": [asdict(Neighbour("gzip", 1, 2, "3-"))]}),
        json.dumps({"version": 1, "value_types": [], "neighbours": [asdict(Neighbour("gzip", 1, 2, "9-3"))]}),
        json.dumps({"version": 1, "value_types": [], "copies": [asdict(COPIES) | {"bytes": -1}]}),
        json.dumps({"version": 1, "value_types": [], "copies": [asdict(COPIES) | {"is_async": 1}]}),
        json.dumps({"version": 1, "value_types": [], "copies": [asdict(COPIES) | {"count": True}]}),
        json.dumps({"version": 1, "value_types": [], "answers": [asdict(ANSWER) | {"values": [["x"]]}]}),
        json.dumps({"version": 1, "value_types": [], "answers": [asdict(ANSWER) | {"values": [["x", -1]]}]}),
        json.dumps({"version": 1, "value_types": [], "answers": [asdict(ANSWER) | {"values": [[1, 1]]}]}),
        json.dumps({"version": 1, "value_types": [], "answers": [asdict(ANSWER) | {"others": -1}]}),
        json.dumps({"version": 1, "value_types": [], "answers": [asdict(ANSWER) | {"new": 1}]}),
        forged(cpus="1-x"),
        forged(cpus="7-3"),
        forged(latencies=[1]),
        forged(latencies=[-1] * 24),
        forged(environment=["OMP_NUM_THREADS"]),
        forged(environment={"OMP_NUM_THREADS": 8}),
        forged(environment={f"V{i}": "" for i in range(99)}),
        forged(ranks={"rank": "3"}),
        '{"version":1,"value_types":[],"ranks":[{"rank":"3"}]}',
        '{"version":1,"value_types":[],"ranks":{"rank":"3"}}',
        forged()[:-1] + ',"ranks":[{"home":"/x"}]}',
        forged()[:-1] + ',"ranks":[{"rank":3}]}',
        forged()[:-1] + ',"ranks":["rank"]}',
        forged(limits=[{"cgroup": "/x"}]),
        forged(limits=[LIMIT | {"period_us": 0}]),
        forged(limits=[LIMIT | {"throttled_ns": -1}]),
        forged(limits=[LIMIT | {"cgroup": 1}]),
        forged(limits=[LIMIT | {"quota_us": 1 << 1024}]),
        '{"version":1,"value_types":[],"generated":1}',
        "[" * 100_000,
        '{"version":1,"lost":{"a":' + "9" * 10_000 + "}}",
    ],
)
def test_a_forged_comment_is_reported(meta: str) -> None:
    with pytest.raises(StallscopeError, match="damaged"):
        loaded(with_comment(meta))


def test_answers_of_files_from_before_values_were_counted() -> None:
    original = profile()
    original.answers = [AskedValues("sum", "n", "f", "lib", 3, -6)]
    data = gzip.decompress(saved(original))
    (meta,) = fields(data)[STALLSCOPE]
    older = meta.replace(b',"values":[],"others":0', b"")
    assert len(older) < len(meta)
    changed = data.replace(varint(len(meta)) + meta, varint(len(older)) + older)
    assert loaded(changed).answers == original.answers


def test_threads_of_files_from_before_creators_were_known() -> None:
    original = profile()
    assert original.threads
    data = gzip.decompress(saved(original))
    (meta,) = fields(data)[STALLSCOPE]
    older = meta.replace(b',"creator":0', b"")
    assert len(older) < len(meta)
    assert data.count(varint(len(meta)) + meta) == 1
    changed = data.replace(varint(len(meta)) + meta, varint(len(older)) + older)
    assert loaded(changed).threads == original.threads


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


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


def test_what_version_0_1_wrote_is_read() -> None:
    meta = '{"version":1,"title":"t","value_types":[["cpu","nanoseconds","sum",""]],"generated":["t"]}'
    comment = b"stallscope:" + meta.encode()
    head = text(1, number(1, 1) + number(2, 2)) + number(13, 3) + number(13, 4) + number(13, 5)
    strings = text(6, "") + text(6, "cpu") + text(6, "nanoseconds") + text(6, "t") + text(6, "said")
    profile = loaded(head + strings + number(6, len(comment)).replace(b"\x30", b"\x32", 1) + comment)
    assert (profile.title, profile.comments, profile.details) == ("t", ["said"], None)


# What goes through our hands


def everything() -> bytes:
    """Two mappings, inlined functions, an address alone, units, periods and so on."""
    strings = [
        "", "alloc_space", "bytes", "inuse_space", "/bin/x", "/lib/libx.so", "f<T>(int)", "_Z1fv", "f.cc", "g", "space",
        "drop", "keep", "https://x.org/", "said", "tag", "text", "kilobytes", "objects", "count",
    ]  # fmt: skip
    head = (
        text(1, number(1, 18) + number(2, 19))
        + text(1, number(1, 1) + number(2, 2))
        + text(1, number(1, 3) + number(2, 2))
    )
    head += number(14, 3) + number(7, 11) + number(8, 12) + number(9, 77) + number(10, 88) + number(12, 524288)
    head += text(11, number(1, 10) + number(2, 2)) + number(13, 14) + number(15, 13)
    mappings = text(
        3, number(1, 4) + number(2, 0x400000) + number(3, 0x500000) + number(5, 4) + number(7, 1) + number(10, 1)
    )
    mappings += text(3, number(1, 9) + number(2, 0x7000) + number(3, 0x9000) + number(4, 0x1000) + number(5, 5))
    functions = text(5, number(1, 21) + number(2, 6) + number(3, 7) + number(4, 8) + number(5, 30))
    functions += text(5, number(1, 22) + number(2, 9) + number(3, 9) + number(4, 8))
    inlined = text(4, number(1, 22) + number(2, 12) + number(3, 5)) + text(4, number(1, 21) + number(2, 40))
    locations = text(4, number(1, 31) + number(2, 4) + number(3, 0x401234) + inlined)
    locations += text(4, number(1, 32) + number(2, 9) + number(3, 0x7010))
    locations += text(4, number(1, 33) + number(2, 4) + number(3, 0x401000) + text(4, number(1, 21)))
    labels = text(3, number(1, 2) + number(3, 64) + number(4, 17)) + text(3, number(1, 15) + number(2, 16))
    samples = text(2, text(1, bytes([31, 33, 32])) + text(2, b"\x01\x02\x03") + labels)
    samples += text(2, text(1, bytes([33])) + text(2, b"\x04\x05\x06"))
    return head + mappings + functions + locations + samples + b"".join(text(6, each) for each in strings)


def meaning(data: bytes) -> dict[str, Any]:
    """Meaning of a file, without the ids of its parts and the order of its strings."""
    wire = fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    strings = [each.decode() for each in wire[6]]

    def values(message: bytes, texts: tuple[int, ...]) -> dict[int, Any]:
        return {
            i: [strings[value] if i in texts else value for value in found]
            for i, found in fields(message).items()
            if found != [0]
        }

    mappings = {fields(each)[1][0]: {**values(each, (5, 6)), 1: []} for each in wire[3]}
    functions = {fields(each)[1][0]: {**values(each, (2, 3, 4)), 1: []} for each in wire[5]}
    locations = {}
    for each in map(fields, wire[4]):
        lines = [{i: found for i, found in fields(line).items() if i != 1} for line in each[4]]
        names = [functions[fields(line)[1][0]] for line in each[4]]
        locations[each[1][0]] = (mappings.get(each[2][0]) if each[2] else None, each[3], lines, names)
    samples = []
    for each in map(fields, wire[2]):
        ids = [locations[i] for i in (packed(each[1][0]) if each[1] else [])]
        samples.append((ids, [packed(found) for found in each[2]], [values(label, (1, 2, 4)) for label in each[3]]))
    return {
        "types": [values(each, (1, 2)) for each in wire[1]],
        "samples": samples,
        "mappings": list(mappings.values()),
        "texts": [[strings[i] for i in wire[number]] for number in (7, 8, 14, 15)],
        "comments": [
            strings[i] for i in (packed(wire[13][0]) if wire[13] and isinstance(wire[13][0], bytes) else wire[13])
        ],
        "period": ([values(each, (1, 2)) for each in wire[11]], wire[12]),
        "times": (wire[9], wire[10]),
    }


def test_another_programs_file_comes_out_as_it_went_in() -> None:
    first = saved(loaded(everything()))
    assert meaning(first) == meaning(everything())
    assert meaning(saved(loaded(first))) == meaning(everything())
    assert loaded(first) == loaded(everything())


def test_the_title_of_another_programs_file_is_no_comment() -> None:
    """pprof prints comments before anything else."""
    profile = loaded(everything())
    profile.title = "heap.pb.gz"
    again = saved(profile)
    assert meaning(again) == meaning(everything())
    assert loaded(again).title == "heap.pb.gz"


def test_what_the_model_has_no_place_for() -> None:
    profile = loaded(everything())
    assert profile.default_value == "inuse_space"
    details = profile.details
    assert details is not None
    x, libx = Module("/bin/x", "", 0x100000), Module("/lib/libx.so", "", 0x3000)
    outer, inlined = Frame("f<T>(int)", "native", x, 0x1234, "f.cc", 40), Frame("g", "native", x, 0x1234, "f.cc", 12)
    caller, nameless = (
        Frame("f<T>(int)", "native", x, 0x1000, "f.cc", 30),
        Frame("[libx.so+0x1010]", "native", libx, 0x1010),
    )
    assert profile.samples[0].stack == (nameless, caller, outer, inlined)
    assert details.groups == {inlined: [(inlined, outer)]}
    assert details.nameless == {nameless}
    assert details.functions == {
        outer: Function("_Z1fv", 30, 40),
        inlined: Function("g", 0, 12, 5),
        caller: Function("_Z1fv", 30, 0),
    }
    assert list(details.mappings) == [x, libx]
    assert details.mappings[libx] == Mapping(0x7000, 0x9000, 0x1000)
    assert details.units == {"bytes": "kilobytes"}
    assert (details.period, details.period_type) == (524288, ValueType("space", "bytes"))


def test_names_that_were_made_readable_are_the_files_own_again() -> None:
    profile = loaded(everything())
    assert profile.details is not None
    changed = {
        frame: frame._replace(name=f"readable {frame.name}")
        for sample in profile.samples
        for frame in sample.stack
        if frame not in profile.details.nameless
    }
    profile.details = renamed(profile.details, changed)
    profile.samples = [
        sample._replace(stack=tuple(changed.get(frame, frame) for frame in sample.stack)) for sample in profile.samples
    ]
    assert meaning(saved(profile)) == meaning(everything())


def test_recursion_at_one_address_is_not_inlined() -> None:
    profile = loaded(everything())
    stack = profile.samples[1].stack
    profile.samples = [Sample(stack * 3, (1, 1, 1)), profile.samples[0]]
    ids = [len(packed(fields(sample)[1][0])) for sample in fields(gzip.decompress(saved(profile)))[2]]
    assert ids == [3, 3]


@pytest.mark.parametrize(
    ("named", "shown"), [(0, "inuse_space"), (1, "alloc_space"), (3, "inuse_space"), (18, ""), (2, "inuse_space")]
)
def test_the_default_value_is_the_one_that_pprof_shows(named: int, shown: str) -> None:
    data = everything() + number(14, named)
    assert loaded(data).default_value == shown
