"""Names that programs choose, in perf's records."""

from __future__ import annotations

import struct

import pytest
from perf_recordings import (
    HEADER,
    IDS,
    MMAP2,
    SAMPLE,
    comm,
    passed,
    record,
)
from stallscope.tracers.engines.perf import names


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
    """The bit that tells that they are not executable is elsewhere."""
    head = struct.pack("=IIQQQ", 71, 72, 1 << 40, 4096, 0)
    made = record(1, head + b"//anon\0\0" + IDS)
    assert passed(HEADER + made) == HEADER + record(1, head + b"//anon\0\0" + IDS, 2 | 1 << 13)
    assert passed(HEADER + record(1, head + b"/x\ny\0\0\0\0" + IDS)).count(b"/x?y") == 1
