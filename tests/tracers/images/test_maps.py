from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.tracers.images import maps
from stallscope.tracers.images.maps import REMAPPED, AddressSpace, Mapping, parse_maps, read_maps, same_code

LIBC = Mapping(0x1000, 0x5000, 0x2000, "/lib/libc.so.6", os.makedev(8, 1), 77)
OTHER = Mapping(0x2000, 0x3000, 0, "/lib/libz.so", os.makedev(8, 1), 78)


def test_executable_lines_only() -> None:
    text = (
        b"55d0c0000000-55d0c0001000 r--p 00000000 fe:00 42                         /usr/bin/cat\n"
        b"55d0c0001000-55d0c0005000 r-xp 00001000 fe:00 42                         /usr/bin/cat\n"
        b"7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
        b"7fff00000000-7fff00002000 r-xp 00000000 00:00 0                          [vdso]\n"
        b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
    )
    cat, anonymous, vdso, vsyscall = parse_maps(text)
    assert cat == Mapping(0x55D0C0001000, 0x55D0C0005000, 0x1000, "/usr/bin/cat", os.makedev(0xFE, 0), 42)
    assert (anonymous.path, anonymous.is_file) == ("", False)
    assert (vdso.path, vdso.is_file) == ("[vdso]", False)
    assert vsyscall.start == 0xFFFFFFFFFF600000


@pytest.mark.parametrize(
    ("raw", "path", "file_path"),
    [
        (b"/tmp/a b  c", "/tmp/a b  c", "/tmp/a b  c"),
        (b"/tmp/two\\012lines", "/tmp/two\nlines", "/tmp/two\nlines"),
        (b"/tmp/gone (deleted)", "/tmp/gone (deleted)", "/tmp/gone"),
        (b"/tmp/\xff\xfe", "/tmp/\udcff\udcfe", "/tmp/\udcff\udcfe"),
        (b"/tmp/r-xp 00000000 00:00 0 /x", "/tmp/r-xp 00000000 00:00 0 /x", "/tmp/r-xp 00000000 00:00 0 /x"),
        (b"/tmp/\x1b[31m<script>;", "/tmp/\x1b[31m<script>;", "/tmp/\x1b[31m<script>;"),
    ],
)
def test_hostile_paths(raw: bytes, path: str, file_path: str) -> None:
    (mapping,) = parse_maps(b"1000-2000 r-xp 00000000 08:01 5    " + raw + b"\n")
    assert (mapping.path, mapping.file_path) == (path, file_path)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nonsense",
        b"2000-1000 r-xp 00000000 08:01 5 /x",
        b"1000-1000 r-xp 00000000 08:01 5 /x",
        b"11111111111111111-2000 r-xp 00000000 08:01 5 /x",
        b"1000-2000 r-xp zz 08:01 5 /x",
        b"1000-2000 r-x 00000000 08:01 5 /x",
        b"1000-2000 r-xp 00000000 0801 5 /x",
    ],
)
def test_malformed_lines_are_left_out(line: bytes) -> None:
    good = b"5000-6000 r-xp 00000000 08:01 5 /y\n"
    assert [m.path for m in parse_maps(line + b"\n" + good)] == ["/y"]


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(text: bytes) -> None:
    for mapping in parse_maps(text):
        assert mapping.start < mapping.end


def test_own_maps() -> None:
    space = AddressSpace(read_maps(os.getpid()))
    assert any(m.path == "[vdso]" for m in space)
    assert any(m.is_file and m.inode == os.stat(m.path).st_ino for m in space if os.path.exists(m.path))


def test_a_later_mapping_cuts_the_earlier() -> None:
    space = AddressSpace([LIBC, OTHER])
    left, middle, right = space
    assert left == LIBC._replace(end=0x2000)
    assert middle == OTHER
    assert right == LIBC._replace(start=0x3000, offset=0x4000)
    space.map(Mapping(0x0, 0x10000, 0, "/all", 1, 1))
    assert [m.path for m in space] == ["/all"]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12))
def test_overlay_is_what_mmap_does(ranges: list[tuple[int, int]]) -> None:
    space = AddressSpace()
    truth: dict[int, tuple[int, int]] = {}
    for number, (start, length) in enumerate(ranges, 1):
        space.map(Mapping(start, start + length, 1000 * number, f"/{number}", 1, number))
        truth.update({a: (number, 1000 * number + a - start) for a in range(start, start + length)})
    addresses = np.arange(60, dtype=np.uint64)
    mappings = list(space)
    assert all(a.end <= b.start for a, b in zip(mappings, mappings[1:], strict=False))
    for address, index in zip(range(60), space.bulk_find(addresses).tolist(), strict=True):
        found = space.find(address)
        assert found == (mappings[index] if index >= 0 else None)
        assert (found and (found.inode, found.offset + address - found.start)) == truth.get(address)


def test_copy_is_independent() -> None:
    space = AddressSpace([LIBC])
    copy = space.copy()
    copy.map(OTHER)
    assert len(space) == 1
    assert len(copy) == 3


def test_what_two_files_had_in_turn_is_neithers() -> None:
    space = AddressSpace([LIBC])
    space.map_unless_other(Mapping(0x4000, 0x8000, 0, "/new", 1, 9))
    assert [(m.start, m.end, m.path) for m in space] == [
        (0x1000, 0x4000, "/lib/libc.so.6"),
        (0x4000, 0x5000, REMAPPED),
        (0x5000, 0x8000, "/new"),
    ]
    space.map_unless_other(LIBC)  # once in doubt, always in doubt
    assert space.find(0x4800) == Mapping(0x4000, 0x5000, 0, REMAPPED)
    assert space.find(0x2000) is not None


def test_the_same_file_again_is_no_conflict() -> None:
    part = LIBC._replace(start=0x3000, offset=0x4000, end=0x9000)
    space = AddressSpace([LIBC])
    space.map_unless_other(part)
    assert [m.path for m in space] == [LIBC.path] * 2
    moved = LIBC._replace(offset=0x3000)
    assert not same_code(LIBC, moved)
    by_build_id = LIBC._replace(dev=0, inode=0, build_id="ab" * 20)
    assert same_code(LIBC, by_build_id)
    assert not same_code(by_build_id, by_build_id._replace(build_id="cd" * 20))


def test_gaps_are_filled_and_nothing_else() -> None:
    space = AddressSpace([OTHER])
    space.map_in_gaps(LIBC)
    assert [(m.start, m.end, m.offset, m.path) for m in space] == [
        (0x1000, 0x2000, 0x2000, LIBC.path),
        (0x2000, 0x3000, 0, OTHER.path),
        (0x3000, 0x5000, 0x4000, LIBC.path),
    ]


def test_a_process_whose_main_thread_has_ended_still_has_mappings() -> None:
    sleeper = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); print(flush=True)"
    )
    source = f"{sleeper}; ctypes.CDLL(None).pthread_exit(None)"
    child = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    try:
        assert child.stdout
        child.stdout.readline()
        end = time.monotonic() + 60
        while Path(f"/proc/{child.pid}/maps").read_bytes() and time.monotonic() < end:
            time.sleep(0.01)
        assert Path(f"/proc/{child.pid}/maps").read_bytes() == b""
        assert any("libc.so" in mapping.path for mapping in read_maps(child.pid))
    finally:
        child.kill()
        child.communicate()


def test_any_number_of_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST", 10)
    space = AddressSpace(Mapping(i * 0x2000, i * 0x2000 + 0x1000) for i in range(14))
    assert (len(space), space.left_out) == (10, 4)
    space.map(Mapping(0, 0x1000, path="/new", inode=1))
    assert [m.path for m in space][:2] == ["/new", ""], "those that are there can be replaced"
    space.map(Mapping(0x2400, 0x2800))
    assert (len(space), space.left_out) == (10, 5)
    space.map(Mapping(0, 1 << 20, path="/all", inode=1))
    assert [m.path for m in space] == ["/all"]


def test_copies_share_their_lists_until_they_change() -> None:
    """A process with thousands of mappings may fork thousands of times."""
    space = AddressSpace([Mapping(0, 0x1000), Mapping(0x2000, 0x3000)])
    copies = [space.copy() for _ in range(3)]
    assert all(each._mappings is space._mappings for each in copies)
    copies[0].map(Mapping(0x4000, 0x5000))
    space.map(Mapping(0x6000, 0x7000))
    assert [len(each) for each in (space, *copies)] == [3, 3, 2, 2]
    assert space.find(0x6000)
    assert not copies[0].find(0x6000)
    assert copies[1].copy().find(0x2000)
