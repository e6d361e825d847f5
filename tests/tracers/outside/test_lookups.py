"""Reads of a process, and how its files are found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from stallscope.tracers.outside import lookups
from stallscope.tracers.outside.lookups import Place, head_of, linked, maps_of, open_in, open_place, places_of


def own_program() -> Place:
    """The code of this very program."""
    status = os.stat(sys.executable)
    for line in maps_of(os.getpid(), only_code=True)[0].splitlines():
        words = line.split(None, 5)
        if int(words[4]) == status.st_ino:
            start, end = (int(word, 16) for word in words[0].split(b"-"))
            return Place(start, end, int(words[2], 16), status.st_dev, status.st_ino, words[5])
    raise AssertionError


def test_maps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert maps_of(os.getpid(), only_code=True)[1]
    monkeypatch.setattr(lookups, "SHARED", 200)
    text, is_all = maps_of(os.getpid(), only_code=False)
    assert not is_all
    assert 0 < len(text) <= 200
    assert text.endswith(b"\n")
    monkeypatch.undo()
    monkeypatch.setattr(lookups, "MOST_TEXT", 1)
    assert not maps_of(os.getpid(), only_code=False)[1]


def test_a_mapping_that_was_split(root: None) -> None:
    place = own_program()
    larger = place._replace(end=place.end + 4096)
    assert linked(os.getpid(), larger) is None
    assert places_of(os.getpid(), larger) == [place]
    fd = open_place(os.getpid(), larger, [])
    assert os.fstat(fd).st_ino == place.inode
    os.close(fd)
    assert places_of(os.getpid(), place._replace(inode=1)) == []
    assert places_of(1 << 22, place) == []


def test_a_path_with_another_file() -> None:
    place = own_program()._replace(inode=1)
    with pytest.raises(OSError, match="replaced"):
        open_place(1 << 22, place, [])


def test_heads(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"y" * 3_000_000)
    assert head_of(str(tmp_path / "x"), 2_500_000) == b"y" * 2_500_000
    assert head_of(str(tmp_path / "absent"), 9) is None
    with pytest.raises(OSError, match="NUL"):
        open_in([], b"a\0b", 0)


def test_paths_with_other_ends_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel escapes newlines only."""
    place = Place(0x1000, 0x2000, 0, 1, 7, b"/tmp/a\r1-2 x")
    row = b"%x-%x r-xp 00000000 00:01 7 %b\n"
    text = row % (0x1000, 0x1800, place.name) + row % (0x1800, 0x2000, b"/tmp/a\r0-9 r-xp 0 0:1 7 /etc/x")
    monkeypatch.setattr(lookups, "maps_of", lambda pid, only_code: (text, True))
    assert [(found.start, found.end) for found in places_of(1, place._replace(dev=os.makedev(0, 1)))] == [
        (0x1000, 0x1800)
    ]
