"""Frames as SystemTap tells them, named by the symbols of real files."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.readers.stap.stacks import UserPlace
from stallscope.tracers.engines.stap import user_names
from stallscope.tracers.engines.stap.user_names import FileNames
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.maps import Mapping

Nm = Callable[..., list[tuple[int, int, str, str]]]
CODE = r"""
__attribute__((noinline)) int shown(int a) { return a * 3; }
__attribute__((noinline)) static int hidden(int a) { for (int i = 0; i < a; i++) __asm__ volatile("nop"); return a; }
int (*keep)(int) = hidden;
__attribute__((noinline)) int _ZN5space4nameEv(int a) { return shown(a) + hidden(a); }
int next_one(int a) { return a - 1; }
__asm__(".text\n.globl by_hand\n.type by_hand, @function\nby_hand: nop\nnop\nnop\nnop\nret\n");
"""


class Library:
    """A file, and what SystemTap says of places in it."""

    def __init__(self, path: Path, symbols: Sequence[tuple[int, int, str, str]]) -> None:
        self.path = path
        self.at = {name: (value, size) for value, size, _, name in symbols}

    def told(self, nearest: str, name: str, offset: int, size: int = 0x5000) -> UserPlace:
        """Place that is ``offset`` bytes behind ``name``, by the symbol ``nearest``."""
        return UserPlace(nearest, self.at[name][0] + offset - self.at[nearest][0], size, str(self.path))

    def frames(self, *stack: UserPlace, began: int | None = None, **more: Sequence[str]) -> list[Frame | None]:
        (found,) = FileNames((os.getpid(),), began or time.time_ns(), **more).frames([stack])
        return found

    def names(self, *stack: UserPlace) -> list[str | None]:
        return [frame.name if frame else None for frame in self.frames(*stack)]


@pytest.fixture(scope="module")
def whole(compile_program: Callable[..., Path], nm: Nm) -> Library:
    path = compile_program(CODE, "-shared", "-fPIC", "-O2", "-fno-toplevel-reorder")
    return Library(path, nm(path))


@pytest.fixture
def stripped(whole: Library, tmp_path: Path) -> Library:
    path = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", path, whole.path], check=True)
    library = Library(path, ())
    library.at = whole.at
    return library


def test_the_nearest_symbol_is_not_the_function(whole: Library, stripped: Library) -> None:
    begin = whole.at["hidden"][0]
    assert whole.names(whole.told("shown", "hidden", 2)) == ["hidden"]
    assert stripped.names(stripped.told("shown", "hidden", 2)) == [f"[stripped.so!fn_{begin:#x}]"]


def test_names_that_are_right(stripped: Library) -> None:
    (frame,) = stripped.frames(stripped.told("shown", "shown", 1))
    assert frame is not None
    assert (frame.name, frame.kind, frame.address) == ("shown", "native", stripped.at["shown"][0] + 1)
    assert frame.module is not None
    assert frame.module.path == str(stripped.path)
    assert frame.module.build_id
    assert stripped.names(stripped.told("_ZN5space4nameEv", "_ZN5space4nameEv", 1)) == ["space::name()"]


def test_a_return_address_belongs_to_what_is_before(whole: Library) -> None:
    place = whole.told("next_one", "next_one", 0)
    assert whole.names(place) == ["next_one"]
    behind = whole.told("hidden", "hidden", whole.at["hidden"][1])
    assert whole.names(place, behind, place)[1] == "hidden"


def test_a_symbol_without_size_keeps_its_name(stripped: Library) -> None:
    assert stripped.names(stripped.told("by_hand", "by_hand", 2)) == [None]


def test_functions_that_are_timed_keep_the_name_that_the_user_gave(stripped: Library) -> None:
    assert stripped.frames(stripped.told("shown", "shown", 1), keep=("shown",)) == [None]


def test_equal_names_are_told_apart_by_the_distance_to_the_next_symbol(
    compile_program: Callable[..., Path], tmp_path: Path, nm: Nm
) -> None:
    twin = "__attribute__((noinline, used)) static int twin(int a) { return a %s; }\n"
    other = tmp_path / "other.c"
    other.write_text(twin % "* 5" + "int second(int a) { return twin(a); }\n")
    code = twin % "* a * a * a * a * a * a * a * a * a * a * a * a" + "int first(int a) { return twin(a); }\n"
    path = compile_program(code, str(other), "-shared", "-fPIC", "-fno-ipa-icf")
    symbols = nm(path)
    starts = sorted({value for value, *_ in symbols})
    twins = [value for value, _, _, name in symbols if name == "twin"]
    sizes = [next(each for each in starts if each > value) - value for value in twins]
    assert len(set(sizes)) == 2
    library = Library(path, ())
    for value, size in zip(twins, sizes, strict=True):
        (frame,) = library.frames(UserPlace("twin", 1, size, str(path)))
        assert frame is not None
        assert frame.address == value + 1
    assert library.names(UserPlace("twin", 1, 0x7777, str(path))) == [None]


def test_a_place_without_a_symbol(whole: Library) -> None:
    elf = ElfFile(FileSource(os.open(whole.path, os.O_RDONLY)))
    (code,) = [each for each in elf.segments if each.type == 1 and each.flags & 1]
    size = (code.vaddr % 4096 + code.filesz + 4095) & -4096
    offset = whole.at["hidden"][0] + 1 - (code.vaddr & -4096)
    assert whole.names(UserPlace("", offset, size, str(whole.path))) == ["hidden"]
    assert whole.names(UserPlace("", offset, size - 4096, str(whole.path))) == [None]
    far = whole.at["hidden"][0] + 1, size + code.vaddr  # from the file's beginning
    assert whole.names(UserPlace("", *far, str(whole.path))) == ["hidden"]
    assert whole.names(UserPlace("", offset, size, str(whole.path) + " (deleted)")) == [None]


def test_what_cannot_be_known(whole: Library, tmp_path: Path) -> None:
    no_elf = tmp_path / "no elf\n"
    no_elf.write_text("text")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    places = [
        UserPlace("", 0, 0, ""),
        UserPlace("main", 1, 2, ""),
        UserPlace("main", 1, 2, "[vdso]"),
        UserPlace("main", 1, 2, "/nowhere\0"),
        UserPlace("main", 1, 2, str(no_elf)),
        UserPlace("main", 1, 2, str(pipe)),
        UserPlace("none_such", 1, 2, str(whole.path)),
        UserPlace("\udcff\n", 1, 2, str(whole.path)),
        UserPlace("shown", (1 << 64) - 1, 2, str(whole.path)),
        UserPlace("", 1 << 70, 1 << 70, str(whole.path)),
    ]
    assert whole.frames(*places) == [None] * len(places)
    assert whole.frames() == []


def test_a_file_that_was_changed_during_the_trace(whole: Library) -> None:
    place = whole.told("shown", "shown", 1)
    began = whole.path.stat().st_ctime_ns
    assert whole.frames(place, began=began - 1) == [None]
    assert whole.names(place) == ["shown"]


def test_processes_that_have_different_files_at_a_path(whole: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    status = whole.path.stat()
    own = Mapping(0x1000, 0x2000, 0, str(whole.path), status.st_dev, status.st_ino)
    place = whole.told("shown", "shown", 1)
    for inodes, known in (([0, 0], True), ([0, 7], False)):
        maps = {
            pid: [own._replace(inode=own.inode + more)]
            for pid, more in zip((1 << 29, 1 << 29 | 1), inodes, strict=True)
        }
        monkeypatch.setattr(user_names, "read_maps", maps.__getitem__)
        ((frame,),) = FileNames(maps, time.time_ns()).frames([[place]])
        assert bool(frame) == known


def test_the_file_of_a_living_process_is_read_after_it_was_replaced(
    static_program: Path, tmp_path: Path, nm: Nm
) -> None:
    path = tmp_path / "program"
    path.write_bytes(Path("/bin/sleep").read_bytes())
    path.chmod(0o755)
    with subprocess.Popen([path, "60"]) as process:
        elf = ElfFile(FileSource(os.open(path, os.O_RDONLY)))
        (code,) = [each for each in elf.segments if each.type == 1 and each.flags & 1]
        place = UserPlace("", 64, (code.vaddr % 4096 + code.filesz + 4095) & -4096, str(path))
        until = time.monotonic() + 10
        while os.readlink(f"/proc/{process.pid}/exe") != str(path) and time.monotonic() < until:
            time.sleep(0.01)
        path.unlink()
        path.write_bytes(static_program.read_bytes())
        ((frame,),) = FileNames((process.pid,), time.time_ns()).frames([[place]])
        process.kill()
    assert frame is not None
    assert frame.module is not None
    assert frame.module.build_id == elf.build_id()
