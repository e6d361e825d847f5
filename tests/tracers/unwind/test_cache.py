from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.elf import BytesSource, ElfFile
from stallscope.tracers.unwind import cache
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.compiler import compile_table
from stallscope.tracers.unwind.sections import find_sections

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


@pytest.mark.parametrize("what", ["replace", "open", "fstatvfs"])
def test_full_disk_costs_only_the_cache(what: str, folder: Path, image: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    look_up(folder, image)
    tables = TableCache(str(folder), 1 << 20)
    for file in folder.iterdir():
        file.unlink()

    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(cache.os, what, full)
        assert np.array_equal(tables.table(elf(image)).rows, compile_table(elf(image)).rows)
    assert tables.problem == "not cached: No space left on device"
    assert not list(folder.iterdir())


def test_the_last_of_the_disk_is_left_to_others(folder: Path, image: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_FREE", 1 << 60)
    tables = TableCache(str(folder))
    tables.table(elf(image))
    assert tables.problem == tables.check() == "not cached: No space left on device"
    assert not list(folder.iterdir())


def test_disk_that_is_full_for_real(tmp_path: Path, root: None) -> None:
    """A file system of 64 KB, in a mount namespace of its own; then one that cannot be written to."""
    code = (
        "import sys; from stallscope.tracers.unwind import cache; from stallscope.tracers.images.elf import *;"
        "cache._FREE = 0; made = cache.TableCache(sys.argv[1]);"
        "made.table(ElfFile(BytesSource(open('/lib/x86_64-linux-gnu/libc.so.6', 'rb').read())));"
        "print(made.problem, '|', made.check())"
    )
    mount = (
        'mount -t tmpfs -o size=64k none "$1" && chmod 700 "$1" && "$2" -c "$3" "$1" && mount -o remount,ro "$1" && '
    )
    script = mount + '"$2" -c "$3" "$1"; ls -A "$1"'
    command = ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "not cached: No space left on device | ",
        "not cached: No space left on device | not cached: Read-only file system",
    ]


def test_who_compiles_the_same_waits_for_the_first(folder: Path, image: bytes) -> None:
    """A claim ends with its process, by kill -9 too, and leaves nothing behind."""
    first, second = TableCache(str(folder)), TableCache(str(folder))
    entry = first.entry(elf(image), find_sections(elf(image)))
    code = (
        "import sys, time; from stallscope.tracers.unwind.cache import *;"
        "claim = TableCache(sys.argv[1]).claim(Entry(sys.argv[2], b'')); claim.__enter__(); print('held', flush=True);"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(folder), entry.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        timer = threading.Timer(0.2, holder.kill)
        timer.start()
        with second.claim(entry):
            assert holder.wait() == -9
        timer.join()
    assert list(folder.iterdir()) == []


def test_a_claim_is_not_waited_for_for_ever(folder: Path, image: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = TableCache(str(folder))
    entry = tables.entry(elf(image), find_sections(elf(image)))
    monkeypatch.setattr(cache, "_CLAIM_S", 0.05)
    with tables.claim(entry), tables.claim(entry):
        tables.keep(entry, compile_table(elf(image)))
    assert only_file(folder).name == entry.name


def test_without_a_folder_nothing_is_claimed(tmp_path: Path, image: bytes) -> None:
    (tmp_path / "file").write_text("")
    tables = TableCache(str(tmp_path / "file" / "x"))
    with tables.claim(tables.entry(elf(image), find_sections(elf(image)))):
        assert tables.problem
    assert tables.check() == tables.problem


def test_reasons_that_are_no_json(folder: Path, image: bytes) -> None:
    """Damage that the checksum does not tell, because it was made with it."""
    look_up(folder, image)
    tables = TableCache(str(folder))
    entry = tables.entry(elf(image), find_sections(elf(image)))
    table = compile_table(elf(image))
    good = cache.encode(entry.digest, table)
    assert cache.decode(good, entry.digest) is not None
    reasons = json.dumps(dict(table.refused)).encode()
    at = good.index(reasons)
    broken = bytearray(good)
    broken[at : at + 1] = b"x"
    head = bytes(broken[: cache._HEADER.size])
    struct.pack_into("<I", broken, len(head), zlib.crc32(broken[len(head) + 4 :], zlib.crc32(head)))
    assert cache.decode(bytes(broken), entry.digest) is None


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("STALLSCOPE_CACHE", raising=False)
    assert cache.default_folder() == "/var/cache/stallscope"
    monkeypatch.setenv("STALLSCOPE_CACHE", "relative")
    assert cache.default_folder() == "/var/cache/stallscope"
    monkeypatch.setenv("STALLSCOPE_CACHE", "/elsewhere")
    assert cache.default_folder() == "/elsewhere"
    monkeypatch.delenv("STALLSCOPE_CACHE")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cache.default_folder() == str(tmp_path / "stallscope")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.default_folder().endswith("/.cache/stallscope")
