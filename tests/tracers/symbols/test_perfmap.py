from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.model import Frame
from stallscope.tracers.base.budget import Limit, Seconds
from stallscope.tracers.images.files import Root
from stallscope.tracers.symbols import perfmap
from stallscope.tracers.symbols.perfmap import JitMaps, PerfMap, jit_frame, read_perf_map


def find(text: bytes, *addresses: int) -> list[str | None]:
    return PerfMap(text).find(np.array(addresses, np.uint64))


def test_entries() -> None:
    text = b"1000 10 first function\n0x2000 0x20 LazyCompile:*f /a b.js:1\n"
    assert find(text, 0xFFF, 0x1000, 0x100F, 0x1010, 0x2010) == [
        None,
        "first function",
        "first function",
        None,
        "LazyCompile:*f /a b.js:1",
    ]


def test_later_entries_override() -> None:
    text = b"1000 100 old\n1040 20 new\n1000 10 newest\n"
    assert find(text, 0x1000, 0x1010, 0x1040, 0x105F, 0x1060, 0x10FF, 0x1100) == [
        "newest", "old", "new", "new", "old", "old", None,
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=20))
def test_the_last_writer_holds(entries: list[tuple[int, int]]) -> None:
    text = b"".join(b"%x %x n%d\n" % (start, size, i) for i, (start, size) in enumerate(entries))
    truth: dict[int, str] = {}
    for i, (start, size) in enumerate(entries):
        truth.update(dict.fromkeys(range(start, start + size), f"n{i}"))
    assert find(text, *range(80)) == [truth.get(a) for a in range(80)]
    assert [PerfMap(text).name_at(a) for a in range(80)] == [truth.get(a) for a in range(80)]


def test_malformed_lines_are_counted() -> None:
    text = (
        b"1000 10 good\n\nnonsense\n1000\n1000 10\n1000 10 \nzz 10 f\n-1 10 f\n3000 0 empty\n"
        b"ffffffffffffffff 10 beyond\n4000 ffffffffff huge\n"
        + b"5000 10 "
        + b"x" * 10_000
        + b"\n6000 10 \xff<b>;\x1b\n"
    )
    table = PerfMap(text)
    assert table.malformed == 10
    assert table.find(np.array([0x1000, 0x3000, 0x5000, 0x6000], np.uint64)) == ["good", None, None, "\\xff<b>;\x1b"]


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(text: bytes) -> None:
    find(text, 0, 0x1000, 2**64 - 1)


def test_frames() -> None:
    assert jit_frame("py::Model.forward:/app/m.py", 5) == Frame("Model.forward", "python", None, 5, "/app/m.py")
    assert jit_frame("py::<lambda>:<string>", 5) == Frame("<lambda>", "python", None, 5, "<string>")
    assert jit_frame("py::", 5) == Frame("py::", "jit", None, 5)
    assert jit_frame("Builtin:Call", 5) == Frame("Builtin:Call", "jit", None, 5)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "tmp").mkdir()
    return Root(os.open(tmp_path, os.O_PATH))


@pytest.fixture
def file(tmp_path: Path, root: Root) -> Path:
    path = tmp_path / "tmp" / "perf-7.map"
    path.write_bytes(b"1000 10 f\n2000 10 g\n3000 10 unfin")
    return path


def started() -> int:
    return time.time_ns() - 60_000_000_000


def test_own_file_is_read_up_to_the_last_whole_line(root: Root, file: Path) -> None:
    table = read_perf_map(root, 7, os.getuid(), started())
    assert table is not None
    assert table.find(np.array([0x1000, 0x2000, 0x3000], np.uint64)) == ["f", "g", None]
    assert read_perf_map(root, 8, os.getuid(), started()) is None


def test_anothers_file_is_refused(root: Root, file: Path, as_root: None) -> None:
    os.chown(file, 12345, 12345)
    assert read_perf_map(root, 7, 54321, started()) is None
    assert read_perf_map(root, 7, -1, started()) is None
    assert read_perf_map(root, 7, 12345, started()) is not None
    os.chown(file, 0, 0)
    assert read_perf_map(root, 7, 54321, started()) is not None


def test_links_and_pipes_are_refused(root: Root, file: Path) -> None:
    elsewhere = file.with_name("elsewhere")
    file.rename(elsewhere)
    file.symlink_to("elsewhere")
    assert read_perf_map(root, 7, os.getuid(), started()) is None
    file.unlink()
    os.mkfifo(file)
    assert read_perf_map(root, 7, os.getuid(), started()) is None
    file.unlink()
    file.mkdir()
    assert read_perf_map(root, 7, os.getuid(), started()) is None


def test_a_file_older_than_the_process_is_refused(root: Root, file: Path) -> None:
    os.utime(file, (1_000_000, 1_000_000))
    assert read_perf_map(root, 7, os.getuid(), started()) is None


def test_of_a_large_file_the_end_is_read(root: Root, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfmap, "_MAX_BYTES", 100)
    file.write_bytes(b"1000 10 old\n" * 50 + b"1000 10 new\n")
    table = read_perf_map(root, 7, os.getuid(), started())
    assert table is not None
    assert table.find(np.array([0x1000], np.uint64)) == ["new"]
    assert table.malformed == 0


def test_only_the_last_lines_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfmap, "MAX_ENTRIES", 10)
    text = b"".join(b"%x 10 n%d\n" % (0x1000 + 16 * i, i) for i in range(25))
    table = PerfMap(text)
    assert (len(table), table.left_out) == (10, 15)
    assert table.find(np.array([0x1000 + 16 * 14, 0x1000 + 16 * 15, 0x1000 + 16 * 24], np.uint64)) == [
        None,
        "n15",
        "n24",
    ]
    assert PerfMap(text[: text.index(b"n9")]).left_out == 0


def test_an_unchanged_map_is_not_read_again(root: Root, file: Path) -> None:
    file.write_bytes(b"1000 10 first\n")
    maps = JitMaps()
    first = maps.read(root, 7, os.getuid(), started())
    assert first
    assert maps.read(root, 7, os.getuid(), started(), first) is first
    file.write_bytes(b"1000 10 first\n2000 10 second\n")
    second = maps.read(root, 7, os.getuid(), started(), first)
    assert second
    assert second is not first
    assert len(second) == 2


def test_memory_of_all_maps_is_limited(root: Root, file: Path) -> None:
    file.write_bytes(b"".join(b"%x 10 name\n" % (0x1000 + 16 * i) for i in range(100)))
    maps = JitMaps(Limit(25_000))
    kept = [maps.read(root, 7, os.getuid(), started()) for _ in range(2)]
    assert all(kept)
    assert not maps.was_refused
    assert maps.read(root, 7, os.getuid(), started()) is None
    assert maps.was_refused
    kept.pop()
    assert maps.read(root, 7, os.getuid(), started())
    assert not maps.was_refused


def test_time_of_all_maps_is_limited(root: Root, file: Path) -> None:
    file.write_bytes(b"1000 10 first\n")
    maps = JitMaps(seconds=Seconds(-1, 0))
    assert maps.read(root, 7, os.getuid(), started()) is None
    assert maps.was_refused
