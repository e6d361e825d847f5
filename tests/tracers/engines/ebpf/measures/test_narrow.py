"""32-bit programs among mapped files. With a real one: tests/live/test_ioctl.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.tracers.engines.ebpf.measures import narrow
from stallscope.tracers.engines.ebpf.measures.narrow import NarrowPrograms
from stallscope.tracers.images.maps import Mapping

GONE = (1 << 22) + 1
"""No process has this pid."""


def mapped(path: Path, *, elf_class: int = 1, start: int = 0x8048000) -> Mapping:
    path.write_bytes(b"\x7fELF" + bytes([elf_class]) + bytes(20))
    return Mapping(start, start + 4096, 0, str(path), path.stat().st_dev, path.stat().st_ino)


def told(*looks: tuple[int, Mapping]) -> list[str]:
    programs = NarrowPrograms()
    for pid, mapping in looks:
        programs.look(pid, mapping)
    return list(programs.remarks())


def test_programs_that_have_ended_are_told_once(tmp_path: Path) -> None:
    mapping = mapped(tmp_path / "old\x1bgame")
    (remark,) = told((GONE, mapping), (GONE + 1, mapping))
    assert remark.startswith("the kernel does not report ioctls of 32-bit programs: those of old")
    assert remark.endswith("game are missing") and "\x1b" not in remark


def test_others_are_not(tmp_path: Path) -> None:
    assert not told((GONE, mapped(tmp_path / "not_pie", elf_class=2)))
    assert not told((GONE, mapped(tmp_path / "high", start=1 << 40)))
    assert not told((GONE, mapped(tmp_path / "libc.so.6")))
    assert not told((os.getpid(), mapped(tmp_path / "library_of_a_process_that_lives")))
    missing = mapped(tmp_path / "removed")
    (tmp_path / "removed").unlink()
    assert not told((GONE, missing))


def test_files_that_are_remembered_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow, "_MOST", 2)
    (remark,) = told(*((GONE, mapped(tmp_path / f"p{i}")) for i in range(3)))
    assert "those of p0, p1 are missing" in remark
