from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

import pytest
from stallscope.tracers.engines.perf import names, passing
from stallscope.tracers.engines.perf.passing import Passing

HEADER = b"PERFILE2" + struct.pack("=Q", 16)
SAMPLE, COMM, MMAP2, TRACING_DATA = 9, 3, 10, 66
EXEC = 1 << 13
IDS = bytes(range(1, 33))
"""What follows each record: thread, time, id, core."""


def record(kind: int, body: bytes, misc: int = 2) -> bytes:
    return struct.pack("=IHH", kind, misc, 8 + len(body)) + body


def comm(name: bytes, misc: int = EXEC | 2) -> bytes:
    padded = name + b"\0" * (8 - len(name) % 8)
    return record(COMM, struct.pack("=II", 71, 72) + padded + IDS, misc)


def passed(data: bytes, cuts: list[int] | None = None) -> bytes:
    made, out = Passing(), b""
    places = [0, *sorted(cuts or []), len(data)]
    for begin, end in zip(places, places[1:], strict=False):
        if begin < end:
            out += b"".join(made.feed(data[begin:end]))
    return out + b"".join(made.feed(b""))


@pytest.mark.parametrize("name", [b"x", b"seven_b", b"eight_by", b"fifteen_letters", b""])
def test_an_exec_is_followed_by_a_mapping_that_covers_all(name: bytes) -> None:
    before, after = record(SAMPLE, b"s" * 40), record(SAMPLE, b"t" * 48)
    out = passed(HEADER + before + comm(name) + after)
    start = HEADER + before + comm(name)
    assert out.startswith(start)
    assert out.endswith(after)
    kind, misc, size = struct.unpack_from("=IHH", out, len(start))
    assert (kind, misc, size) == (MMAP2, 2, len(out) - len(start) - len(after))
    body = out[len(start) + 8 : -len(after)]
    assert struct.unpack_from("=IIQQQ", body) == (71, 72, 0, 1 << 47, 0)
    assert body[-32:] == IDS
    assert b"[stack]\0" in body


def test_all_else_is_passed_on_as_it_is() -> None:
    data = HEADER + comm(b"renamed", 2) + record(SAMPLE, b"") + record(68, b"") + record(SAMPLE, bytes(65000))
    assert passed(data) == data


def test_data_after_a_record_are_no_records() -> None:
    """The description of the tracepoints looks like anything."""
    inside = comm(b"not_one")
    data = HEADER + record(TRACING_DATA, struct.pack("=I", len(inside))) + inside
    assert passed(data) == data
    assert len(passed(data + comm(b"one"))) > len(data + comm(b"one"))


@pytest.mark.parametrize(
    "data",
    [b"", b"PERF", b"not of perf" + comm(b"x"), HEADER, HEADER + comm(b"x")[:9], HEADER + bytes(30) + comm(b"x")],
)
def test_what_is_not_understood_is_passed_on(data: bytes) -> None:
    assert passed(data) == data


@pytest.mark.parametrize("seed", range(20))
def test_it_comes_in_any_pieces(seed: int) -> None:
    choose = random.Random(seed)
    inside = bytes(choose.randrange(256) for _ in range(64))
    parts = [comm(b"a" * choose.randrange(1, 16)), record(TRACING_DATA, struct.pack("=I", 64)) + inside]
    parts += [record(SAMPLE, bytes(choose.randrange(200))) for _ in range(6)]
    choose.shuffle(parts)
    data = HEADER + b"".join(parts)
    assert passed(data, [choose.randrange(len(data)) for _ in range(choose.randrange(40))]) == passed(data)


IP, TID, TIME, ID, CPU, STREAM_ID, IDENTIFIER = 1, 2, 4, 1 << 6, 1 << 7, 1 << 9, 1 << 16
WHO = struct.pack("=iiQ", -1, 72, 1 << 60)


def attr(sample_type: int, *ids: int) -> bytes:
    return record(64, struct.pack("=IIQQQ32x", 1, 64, 0, 0, sample_type) + struct.pack(f"={len(ids)}Q", *ids))


def noticed(*records: bytes) -> list[tuple[int, bytes]]:
    """Kind, and pid, tid and time as they are in the record."""
    made = Passing()
    for _ in made.feed(HEADER + b"".join(records)):
        pass
    return [(made.notices[at], bytes(made.notices[at + 1 : at + 17])) for at in range(0, len(made.notices), 17)]


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


def test_notices_are_not_later_than_what_they_are_of() -> None:
    made = Passing()
    data = HEADER + attr(TID | TIME) + record(SAMPLE, WHO) + comm(b"x") + record(SAMPLE, WHO)
    told = [len(made.notices) // 17 for _ in made.feed(data)]
    assert told == [2, 2, 3]


@pytest.mark.parametrize("name", [b"a\nb", b"\n", b"\n\n\n", b"fifteen\nletters"])
def test_ends_of_lines_in_names_of_threads(name: bytes) -> None:
    out = passed(HEADER + comm(name, 2) + record(SAMPLE, b""))
    assert b"\n" not in out[32 : 32 + len(name)]
    assert names.comm(out[32 : 32 + len(name)]) == name.decode()
    assert len(out) == len(HEADER + comm(name, 2) + record(SAMPLE, b""))


EXECUTABLE, HUGE = 5, 0x40000


def mapped(name: bytes, protection: int = EXECUTABLE, flags: int = 2, misc: int = 2) -> bytes:
    head = struct.pack("=IIQQQIIQQII", 71, 72, 1 << 40, 4096, 0, 8, 1, 77, 0, protection, flags)
    return record(MMAP2, head + name + b"\0" * (8 - len(name) % 8) + IDS, misc)


@pytest.mark.parametrize(
    "name",
    [
        b"//anon", b"/dev/zero (deleted)", b"/anon_hugepage (deleted)", b"[stack]", b"[stack:72]", b"/SYSV00000000",
        b"[heap]", b"[anon:v8]", b"/tmp/perf-72.map", b"/tmp/perf-1.map (deleted)",
    ],
)  # fmt: skip
def test_perf_script_looks_for_no_map_of_memory_without_a_file(name: bytes) -> None:
    made = mapped(name)
    out = passed(HEADER + made)[len(HEADER) :]
    expected = mapped(b"//anon".ljust(len(name), b"\0"), EXECUTABLE & ~4)
    assert (len(out), out) == (len(made), expected[: len(made)])
    assert len(expected) == len(made)


def test_huge_pages_are_such_memory() -> None:
    out = passed(HEADER + mapped(b"/x", flags=2 | HUGE))[len(HEADER) :]
    assert out == mapped(b"//anon", 1)


@pytest.mark.parametrize("name", [b"/usr/lib/libc.so.6", b"[vdso]", b"[vsyscall]", b"/home/x/a b", b"/tmp/x.map"])
def test_other_mappings_stay(name: bytes) -> None:
    assert passed(HEADER + mapped(name)) == HEADER + mapped(name)


def test_ends_of_lines_in_names_of_files() -> None:
    assert passed(HEADER + mapped(b"/x\ny 1/1\n")) == HEADER + mapped(b"/x?y 1/1?")


def test_mappings_of_the_kernel_stay() -> None:
    assert passed(HEADER + mapped(b"[heap]", misc=1)) == HEADER + mapped(b"[heap]", misc=1)


def test_mappings_without_protection() -> None:
    """What tells that they are not executable is elsewhere."""
    head = struct.pack("=IIQQQ", 71, 72, 1 << 40, 4096, 0)
    made = record(1, head + b"//anon\0\0" + IDS)
    assert passed(HEADER + made) == HEADER + record(1, head + b"//anon\0\0" + IDS, 2 | 1 << 13)
    assert passed(HEADER + record(1, head + b"/x\ny\0\0\0\0" + IDS)).count(b"/x?y") == 1


@pytest.mark.parametrize("kind", [1, COMM, MMAP2, SAMPLE, 14, 64])
@pytest.mark.parametrize("size", [0, 3, 8, 60, 66, 70])
def test_records_that_are_too_short(kind: int, size: int) -> None:
    data = HEADER + attr(TID | TIME) + record(kind, b"x" * size)
    assert len(passed(data)) >= len(data)


def test_its_process(tmp_path: Path) -> None:
    data = HEADER + attr(TID | TIME) + comm(b"x") + record(SAMPLE, bytes(60_000)) * 50
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(data)
    with source.open("rb") as read, target.open("wb") as write:
        told, notices = os.pipe()
        pid = passing.start(read.fileno(), write.fileno(), notices, lambda: None)
        os.close(notices)
        assert os.waitpid(pid, 0) == (pid, 0)
    assert target.read_bytes() == passed(data)
    assert len(os.read(told, 1 << 16)) == 51 * 17
    os.close(told)


def test_it_keeps_no_other_descriptor(tmp_path: Path) -> None:
    """Else the end of a pipe would not be seen."""
    (tmp_path / "in").write_bytes(HEADER)
    read, write = os.pipe()
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        pid = passing.start(source.fileno(), target.fileno(), target.fileno(), lambda: time.sleep(0.1))
        os.close(write)
        assert os.read(read, 1) == b""
        os.close(read)
        assert os.waitpid(pid, 0) == (pid, 0)


def test_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HEADER + record(SAMPLE, bytes(60_000)) * 50)
    read, write = os.pipe()
    os.close(read)
    with (tmp_path / "in").open("rb") as source:
        pid = passing.start(source.fileno(), write, write, lambda: None)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
