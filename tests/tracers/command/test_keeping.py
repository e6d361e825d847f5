from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.scan.folder import FILES
from stallscope.tracers.command import keeping
from stallscope.tracers.command.keeping import Bounds, Capture, Memory, State, Written, keep

MANY = Bounds(3, 1 << 40)


def writer(path: Path, size: int = 5_000, *, is_folder: bool = False) -> Callable[[], None]:
    def write() -> None:
        files = [path]
        if is_folder:
            path.mkdir(exist_ok=True)
            files = [path / name for name in FILES]
        for file in files:
            file.write_bytes(os.urandom(size))

    return write


def keep_file(
    state: State, path: Path, bounds: Bounds = MANY, size: int = 5_000
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return keep(state, bounds, (str(path),), writer(path, size))


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    state = State()
    for number in range(6):
        path = tmp_path / f"{number}.svg"
        assert keep_file(state, path) == ((str(path),), ())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["3.svg", "4.svg", "5.svg"]


def test_the_oldest_go_when_they_are_too_large(tmp_path: Path) -> None:
    state = State()
    bounds = Bounds(100, 50_000)
    for number in range(9):
        keep_file(state, tmp_path / f"{number}.svg", bounds, 16_384)
        assert sum(each.stat().st_blocks * 512 for each in tmp_path.iterdir()) <= bounds.size
    assert [Path(each.files[0].path).name for each in state.captures] == ["6.svg", "7.svg", "8.svg"]


def test_one_that_is_too_large_alone_is_not_kept(tmp_path: Path) -> None:
    state = State()
    kept, notes = keep_file(state, tmp_path / "x.svg", Bounds(3, 4_096), 100_000)
    assert kept == ()
    assert "more than --keep-bytes" in notes[0]
    assert list(tmp_path.iterdir()) == []
    assert state.captures == []


def test_folders_go_with_their_files(tmp_path: Path) -> None:
    state = State()
    for number in range(2):
        path = tmp_path / f"{number}.d"
        keep(state, Bounds(1, 1 << 40), (str(path),), writer(path, is_folder=True))
    assert [each.name for each in tmp_path.iterdir()] == ["1.d"]
    assert sorted(each.name for each in (tmp_path / "1.d").iterdir()) == sorted(FILES)


def test_files_of_others_stay(tmp_path: Path) -> None:
    """A file that was put beside ours, one that replaced ours, one that was changed, and a folder that was there."""
    state = State()
    one = Bounds(1, 1 << 40)
    (tmp_path / "0.d").mkdir()
    names = ("0.d", "1.d", "2.d", "3.d")
    for number, name in enumerate(names):
        keep(state, one, (str(tmp_path / name),), writer(tmp_path / name, is_folder=True))
        if number == 1:
            (tmp_path / name / "notes.txt").write_text("mine")
        if number == 2:
            (tmp_path / name / FILES[0]).unlink()
            (tmp_path / name / FILES[0]).write_text("mine")
            os.utime(tmp_path / name / FILES[1], ns=(1, 1))
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {
        *("0.d", "1.d", "1.d/notes.txt", "2.d", f"2.d/{FILES[0]}", f"2.d/{FILES[1]}", "3.d"),
        *(f"3.d/{name}" for name in FILES),
    }


def test_files_that_were_there_before_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    path.write_text("there")
    state = State()
    with pytest.raises(StallscopeError):
        keep(state, MANY, (str(path),), fail)
    assert state.captures == []


def fail() -> None:
    raise StallscopeError("no space is left", "free some")


def test_links_are_not_followed(tmp_path: Path) -> None:
    state = State()
    target = tmp_path / "target"
    target.mkdir()
    (target / FILES[0]).write_text("mine")
    keep_file(state, tmp_path / "a.d")
    (tmp_path / "a.d").unlink()
    (tmp_path / "a.d").symlink_to(target)
    for name in "bcd":
        keep_file(state, tmp_path / f"{name}.svg", Bounds(1, 1 << 40))
    assert (target / FILES[0]).read_text() == "mine"
    assert (tmp_path / "a.d").is_symlink()


def test_what_was_written_before_an_error_is_counted(tmp_path: Path) -> None:
    state = State()
    path = tmp_path / "x.d"

    def write() -> None:
        path.mkdir()
        (path / FILES[0]).write_text("half")
        fail()

    with pytest.raises(StallscopeError):
        keep(state, MANY, (str(path),), write)
    assert [each.path for each in state.captures[0].files] == [str(path / FILES[0])]
    for number in range(3):
        keep_file(state, tmp_path / f"{number}.svg")
    assert not path.exists()


def test_a_full_disk_gets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State([Capture([], [], 3 << 20)])
    disk = os.statvfs(tmp_path)

    def statvfs(free: int) -> Callable[[object], os.statvfs_result]:
        return lambda _: os.statvfs_result((*disk[:1], 1, *disk[2:4], free, *disk[5:]))

    monkeypatch.setattr(keeping.os, "statvfs", statvfs((64 << 20) + (6 << 20) - 1))
    kept, notes = keep_file(state, tmp_path / "x.svg")
    assert kept == ()
    assert notes[0].startswith("not kept: only 69 MB are left on the file system of ")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(keeping.os, "statvfs", statvfs((64 << 20) + (6 << 20)))
    assert keep_file(state, tmp_path / "x.svg")[0]


def test_the_memory_is_shared_by_processes() -> None:
    memory = Memory()
    assert memory.load() == State()
    state = State([Capture([Written("/x\udcff", 1, 2, 3)], ["/y"], 4)], [5], [6], 7)
    pid = os.fork()
    if not pid:
        memory.store(state)
        os._exit(0)
    os.waitpid(pid, 0)
    assert memory.load() == state
    memory.store(State())
    assert memory.load() == State()
