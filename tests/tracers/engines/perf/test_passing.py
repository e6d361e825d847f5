from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

import pytest
from perf_recordings import (
    COMM,
    HEADER,
    IDS,
    MMAP2,
    SAMPLE,
    TID,
    TIME,
    TRACING_DATA,
    WHO,
    attr,
    comm,
    passed,
    record,
)
from stallscope.tracers.engines.perf import passing
from stallscope.tracers.engines.perf.passing import Passing


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


def test_notices_are_not_later_than_what_they_are_of() -> None:
    made = Passing()
    data = HEADER + attr(TID | TIME) + record(SAMPLE, WHO) + comm(b"x") + record(SAMPLE, WHO)
    told = [len(made.notices) // 17 for _ in made.feed(data)]
    assert told == [2, 2, 3]


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
    """The end of a pipe would not be seen otherwise."""
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


def test_no_mapping_has_a_build_id_that_was_not_asked_for() -> None:
    """Another tracer's request marks the mappings of all."""
    body = struct.pack("=IIQQQIIQQII", 71, 72, 4096, 4096, 0, 8, 1, 77, 0, 5, 2) + b"/lib/x\0\0" + IDS
    marked, plain = (record(MMAP2, body, misc) for misc in (2 | 1 << 14, 2))
    assert passed(HEADER + marked) == HEADER + plain
    other = record(SAMPLE, bytes(8), 2 | 1 << 14)
    assert passed(HEADER + other) == HEADER + other
