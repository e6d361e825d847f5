from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images import debugfile
from stallscope.tracers.images.debugfile import find_debug_file, has_lines, verified
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.files import HOST, Root
from stallscope.tracers.images.symtab import Bounds, SymbolTable


def opened(path: Path) -> ElfFile:
    return ElfFile(FileSource(os.open(path, os.O_RDONLY)))


def split(program: Path, folder: Path, link: str | None = "program.debug") -> tuple[Path, Path]:
    """(stripped program, its debug file), the link made but the file not yet where it belongs."""
    debug, stripped = folder / (link or "program.debug"), folder / "stripped"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    options = [f"--add-gnu-debuglink={debug}"] if link else []
    subprocess.run(["objcopy", "--strip-all", *options, program, stripped], check=True)
    return stripped, debug


def found_names(stripped: Path, path: str, root: Root) -> set[str] | None:
    program = os.open(stripped, os.O_RDONLY)
    elf = ElfFile(FileSource(program))
    found = find_debug_file(elf, program, path, root)
    if found is None:
        return None
    debug, fd = found
    table = SymbolTable([elf, debug], Bounds.none)
    names = {name for name in table.find(np.arange(elf.code_end, dtype=np.uint64)) if name}
    os.close(fd)
    return names


@pytest.mark.parametrize("place", ["{here}", "{here}/.debug"])
def test_by_link_beside_the_program(program: Path, tmp_path: Path, place: str) -> None:
    stripped, debug = split(program, tmp_path)
    target = Path(place.format(here=tmp_path))
    target.mkdir(exist_ok=True)
    debug.rename(target / debug.name)
    names = found_names(stripped, str(stripped), HOST)
    assert names is not None
    assert {"main", "inner", "outer_local"} <= names


@pytest.fixture
def root(tmp_path: Path) -> Root:
    folder = tmp_path / "root"
    folder.mkdir()
    return Root(os.open(folder, os.O_PATH))


def test_inside_another_root(program: Path, tmp_path: Path, root: Root) -> None:
    stripped, debug = split(program, tmp_path)
    target = tmp_path / "root" / "usr/lib/debug/opt/app"
    target.mkdir(parents=True)
    debug.rename(target / debug.name)
    assert found_names(stripped, "/opt/app/stripped", root) is not None
    assert found_names(stripped, "/opt/elsewhere/stripped", root) is None


def test_by_build_id_inside_another_root(program: Path, tmp_path: Path, root: Root) -> None:
    stripped, debug = split(program, tmp_path, link=None)
    build_id = opened(stripped).build_id()
    target = tmp_path / "root" / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    target.parent.mkdir(parents=True)
    # As distributions have it: a link, absolute, to be followed inside that root.
    debug.rename(tmp_path / "root" / "real.debug")
    target.symlink_to("/real.debug")
    assert found_names(stripped, "/anywhere", root) is not None
    assert found_names(stripped, "/anywhere", HOST) is None


def test_link_out_of_the_root_is_not_followed(program: Path, tmp_path: Path, root: Root) -> None:
    stripped, debug = split(program, tmp_path)
    (tmp_path / "root" / debug.name).symlink_to(debug)
    assert found_names(stripped, "/stripped", root) is None


def test_another_builds_debug_file_is_refused(
    program: Path, compile_program: Callable[..., Path], program_source: str, tmp_path: Path
) -> None:
    stripped, debug = split(program, tmp_path)
    other = compile_program(program_source.replace("return 0", "return 7"))
    subprocess.run(["objcopy", "--only-keep-debug", other, debug], check=True)
    assert found_names(stripped, str(stripped), HOST) is None


def test_without_build_id_the_crc_decides(
    compile_program: Callable[..., Path], program_source: str, tmp_path: Path
) -> None:
    program = compile_program(program_source, "-Wl,--build-id=none")
    stripped, debug = split(program, tmp_path)
    assert found_names(stripped, str(stripped), HOST) is not None
    with debug.open("ab") as file:
        file.write(b"\0")
    assert found_names(stripped, str(stripped), HOST) is None


def test_one_with_lines_alone_is_of_use(
    compile_program: Callable[..., Path], program_source: str, tmp_path: Path
) -> None:
    stripped, debug = split(compile_program(program_source, "-g"), tmp_path)
    subprocess.run(["objcopy", "--strip-all", "--keep-section=.debug_*", debug], check=True)
    assert "Symbol table" not in subprocess.run(["readelf", "-s", debug], capture_output=True, text=True).stdout
    assert found_names(stripped, str(stripped), HOST) is not None
    assert has_lines(opened(debug))
    assert not has_lines(opened(stripped))


def test_verified(program: Path, tmp_path: Path) -> None:
    stripped, debug = split(program, tmp_path)
    build_id = opened(stripped).build_id()
    for path, wanted, good in ((debug, build_id, True), (debug, "ab" * 20, False), (debug, "", False),
                               (stripped, build_id, False)):  # fmt: skip
        fd = os.open(path, os.O_RDONLY)
        found = verified(fd, wanted)
        assert (found is not None) == good
        if found is None:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(fd)
        else:
            os.close(found[1])


@pytest.mark.parametrize("content", [None, b"", b"garbage", b"\x7fELF\x02\x01\x01" + bytes(100)])
def test_useless_debug_files_are_refused(program: Path, tmp_path: Path, content: bytes | None) -> None:
    stripped, debug = split(program, tmp_path)
    debug.unlink()
    if content is None:
        os.mkfifo(debug)  # opening it for reading would hang
    else:
        debug.write_bytes(content)
    assert found_names(stripped, str(stripped), HOST) is None


@pytest.fixture
def as_root(require: Callable[[bool, str], None]) -> None:
    require(os.geteuid() == 0, "this needs root")


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("owners", "mode", "counts"),
    [
        ((0, 0), 0o644, True),
        ((0, 1234), 0o644, False),
        ((1234, 1234), 0o644, True),
        ((1234, 0), 0o644, True),
        ((1234, 1235), 0o644, False),
        ((0, 0), 0o666, False),
        ((1234, 0), 0o666, False),
    ],
)
def test_who_may_name_functions(
    program: Path, tmp_path: Path, owners: tuple[int, int], mode: int, counts: bool
) -> None:
    """Anybody can write a file with another one's build-id. ``owners``: of the program and of its debug file."""
    stripped, debug = split(program, tmp_path)
    for path, owner in zip((stripped, debug), owners, strict=True):
        os.chown(path, owner, owner)
    debug.chmod(mode)
    assert (found_names(stripped, str(stripped), HOST) is not None) is counts


def test_a_copy_is_nobodys(program: Path, tmp_path: Path) -> None:
    """A copy is of a file on a user's file system, which says of each of its files whose it is."""
    stripped, debug = split(program, tmp_path)
    copies = []
    for path in (stripped, debug):
        copies.append(os.memfd_create("copy", os.MFD_ALLOW_SEALING))
        os.write(copies[-1], path.read_bytes())
        fcntl.fcntl(copies[-1], fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    program_fd = os.open(stripped, os.O_RDONLY)
    assert not debugfile._may_name(copies[1], program_fd)
    assert debugfile._may_name(copies[1], copies[0])
