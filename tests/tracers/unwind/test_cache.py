from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.symbols.elf import BytesSource, ElfFile
from stallscope.tracers.unwind import cache
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.compiler import compile_table

Build = Callable[..., Path]

CODE = ".text\nf:\n.cfi_startproc\nnop\n.cfi_def_cfa_offset {}\nnop\n.cfi_register 16, 2\nnop\n.cfi_endproc\n"


@pytest.fixture
def image(build: Build) -> bytes:
    return build(CODE.format(16), "-Wl,--build-id=0x1234abcd").read_bytes()


def elf(image: bytes) -> ElfFile:
    return ElfFile(BytesSource(image))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "above" / "cache"


def look_up(folder: Path, image: bytes) -> tuple[int, int]:
    """(hits, misses); the table must be right either way."""
    tables = TableCache(str(folder))
    found, expected = tables.table(elf(image)), compile_table(elf(image))
    tables.close()
    assert np.array_equal(found.rows, expected.rows)
    assert (found.base, found.refused) == (expected.base, expected.refused)
    assert found.refused
    return tables.hits, tables.misses


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_second_time_from_disk(folder: Path, image: bytes) -> None:
    assert look_up(folder, image) == (0, 1)
    assert only_file(folder).name.startswith("1234abcd-")
    assert only_file(folder).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert look_up(folder, image) == (1, 0)


def test_same_build_id_but_another_file(folder: Path, image: bytes, build: Build) -> None:
    forged = build(CODE.format(32), "-Wl,--build-id=0x1234abcd").read_bytes()
    assert [look_up(folder, data) for data in (forged, image, forged)] == [(0, 1), (0, 1), (1, 0)]


@pytest.mark.parametrize("at", [0, 16, 20, 30, 45, 60, -1])
def test_damaged_file_is_made_anew(at: int, folder: Path, image: bytes) -> None:
    look_up(folder, image)
    file = only_file(folder)
    content = bytearray(file.read_bytes())
    content[at] ^= 0x55
    file.write_bytes(content)
    assert look_up(folder, image) == (0, 1)
    assert look_up(folder, image) == (1, 0)


@pytest.mark.parametrize("keep", [0, 10, 63, -1])
def test_short_file_is_made_anew(keep: int, folder: Path, image: bytes) -> None:
    look_up(folder, image)
    file = only_file(folder)
    file.write_bytes(file.read_bytes()[:keep])
    assert look_up(folder, image) == (0, 1)


def test_file_that_others_can_write(folder: Path, image: bytes) -> None:
    look_up(folder, image)
    only_file(folder).chmod(0o666)
    assert look_up(folder, image) == (0, 1)
    assert only_file(folder).stat().st_mode & 0o777 == 0o600


def test_file_of_another_user(folder: Path, image: bytes, root: None) -> None:
    look_up(folder, image)
    os.chown(only_file(folder), 65534, 65534)
    assert look_up(folder, image) == (0, 1)
    assert only_file(folder).stat().st_uid == 0


def test_links_and_pipes_are_not_followed(folder: Path, image: bytes, tmp_path: Path) -> None:
    look_up(folder, image)
    file = only_file(folder)
    aim = tmp_path / "aim"
    file.rename(aim)
    before = aim.read_bytes()
    file.symlink_to(aim)
    assert look_up(folder, image) == (0, 1)
    assert aim.read_bytes() == before
    assert not file.is_symlink()
    file.unlink()
    os.mkfifo(file)
    assert look_up(folder, image) == (0, 1)
    assert file.is_file()


@pytest.mark.parametrize("how", ["writable", "link", "file"])
def test_folder_that_is_not_ours_alone(how: str, folder: Path, image: bytes, tmp_path: Path) -> None:
    folder.parent.mkdir()
    if how == "link":
        (tmp_path / "real").mkdir()
        folder.symlink_to(tmp_path / "real")
    elif how == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    tables = TableCache(str(folder))
    assert tables.problem
    assert np.array_equal(tables.table(elf(image)).rows, compile_table(elf(image)).rows)
    assert not list(tmp_path.rglob("*.rows"))


def test_longest_unused_leave_first(folder: Path, build: Build) -> None:
    images = [build(CODE.format(8 * n), f"-Wl,--build-id=0x{n:08x}").read_bytes() for n in range(1, 5)]
    tables = TableCache(str(folder))
    for image in images[:3]:
        tables.table(elf(image))
    sizes = [file.stat().st_size for file in folder.iterdir()]
    for age, file in enumerate(sorted(folder.iterdir())):
        os.utime(file, (1000 + age, 1000 + age))
    tables.table(elf(images[0]))  # used again: now the youngest
    small = TableCache(str(folder), max_bytes=sum(sizes))
    small.table(elf(images[3]))
    assert sorted(file.name[:8] for file in folder.iterdir()) == ["00000001", "00000003", "00000004"]


def test_what_an_interrupted_writer_left_is_removed(folder: Path, image: bytes) -> None:
    folder.mkdir(parents=True, mode=0o700)
    old, new, foreign = folder / "a.aside", folder / "b.aside", folder / "notes"
    for file in (old, new, foreign):
        file.touch()
    os.utime(old, (1000, 1000))
    look_up(folder, image)
    assert {file.name for file in folder.iterdir() if file.suffix != ".rows"} == {"b.aside", "notes"}


def test_full_disk_costs_only_the_cache(folder: Path, image: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    assert look_up(folder, image) == (0, 1)
    assert not list(folder.iterdir())


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_folder() == "/var/cache/stallscope"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cache.default_folder() == str(tmp_path / "stallscope")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.default_folder().endswith("/.cache/stallscope")
