"""Tables that are loaded before anybody maps their files, and those that come too late."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stallscope.tracers.images.elf import BytesSource, ElfFile, FileSource
from stallscope.tracers.images.maps import read_maps
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.unwind import loader as module
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.chunks import TABLE_FIRST
from stallscope.tracers.unwind.compiling import Compiling
from stallscope.tracers.unwind.loader import Loader

Build = Callable[..., Path]
PATIENCE = 60.0


@pytest.fixture
def opened() -> Iterator[Callable[[Path], ElfFile]]:
    """Open files, as those of a real trace."""
    fds: list[int] = []

    def made(path: Path) -> ElfFile:
        fds.append(os.open(path, os.O_RDONLY))
        return ElfFile(FileSource(fds[-1]))

    yield made
    for fd in fds:
        os.close(fd)


def test_what_is_expected_is_in_memory_before_anybody_maps_it(
    make_loader: Callable[..., Loader],
    loaded: Object,
    sleeper: subprocess.Popen[bytes],
    opened: Callable[[Path], ElfFile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file is known whatever it is called later: mappings tell device and inode, or a build-id."""
    mappings = [mapping for mapping in read_maps(sleeper.pid) if mapping.is_file]
    loader = make_loader()
    for mapping in mappings:
        loader.expect_file(opened(Path(mapping.path)), mapping.path)
    loader.wait(PATIENCE)
    there = loader._store.tables_in_memory
    assert there >= len(mappings)
    monkeypatch.setattr(loader, "_find", lambda pid, mapping: opened(Path(mapping.path)))
    monkeypatch.setattr(Compiling, "put", None)
    named = [mapping._replace(inode=0, build_id="ab" * 20) for mapping in mappings[:1]]
    for mapping in (*mappings, *named):
        tables = {table for _, _, table in loader._entries(sleeper.pid, mapping)}
        assert min(tables) >= TABLE_FIRST
        assert all(loader._store.is_filled(table) for table in tables)
    assert loader._store.tables_in_memory == there
    assert len(loader._same) == len({mapping.path for mapping in mappings})


def test_a_file_beyond_all_measure_is_expected_in_part(make_loader: Callable[..., Loader]) -> None:
    elf = ElfFile(BytesSource(Path("/bin/true").read_bytes()))
    elf.segments[:] = [segment._replace(flags=5, memsz=1 << 50) for segment in elf.segments]
    loader = make_loader()
    loader.expect_file(elf, "/bin/true")
    assert len(loader._owner) == module._MAX_CHUNKS
    assert loader.counts.no_room == 0


def test_what_comes_after_the_beginning_is_late_if_it_had_to_be_compiled(
    make_loader: Callable[..., Loader], opened: Callable[[Path], ElfFile], build: Build, tmp_path: Path
) -> None:
    libraries = Path("/lib/x86_64-linux-gnu")
    cached, early, late, never = (
        opened(libraries / f"lib{name}") for name in ("z.so.1", "c.so.6", "m.so.6", "dl.so.2")
    )
    cache = TableCache(str(tmp_path / "cache"))
    cache.table(cached)
    cache.close()
    loader = make_loader()
    loader.expect_file(early, "/early")
    loader.wait(PATIENCE)
    loader.begin()
    loader.expect_file(cached, "/cached")
    loader.expect_file(late, "/late")
    loader.wait(PATIENCE)
    loader._compiler._pool.most = 0
    loader.expect_file(never, "/never")
    while not loader._same[os.fstat(never.source.fd).st_dev, os.fstat(never.source.fd).st_ino].was_compiled:  # type: ignore[attr-defined]
        time.sleep(0.001)
    loader.close()
    assert loader.counts.late == {"/late", "/never"}
    assert not loader.counts.only_loaded
    assert (loader.counts.unfinished, loader.counts.compiled) == (1, 3)


def test_what_was_only_loaded_late_is_said_to_be(
    make_loader: Callable[..., Loader], opened: Callable[[Path], ElfFile], tmp_path: Path
) -> None:
    cached = opened(Path("/lib/x86_64-linux-gnu/libz.so.1"))
    cache = TableCache(str(tmp_path / "cache"))
    cache.table(cached)
    cache.close()
    loader = make_loader()
    loader.begin()
    loader.expect_file(cached, "/cached")
    loader.wait(PATIENCE)
    loader.close()
    assert (loader.counts.late, loader.counts.only_loaded) == ({"/cached"}, True)
    (note,) = loader.counts.notes(40, 1000)
    assert note == "4.0 % of the time in user code is in stacks cut short: unwind tables were still being loaded"
    assert loader.counts.notes(9, 1000) == []
