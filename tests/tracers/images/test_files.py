from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.files import HOST, NotThisFile, Root, open_left, open_mapped, wall_from_monotonic
from stallscope.tracers.images.maps import Mapping, read_maps
from stallscope.tracers.outside import lookups
from stallscope.tracers.outside.client import CLIENT


def program_mapping(pid: int, name: str) -> Mapping:
    return next(m for m in read_maps(pid) if name in m.path)


def build_id(fd: int) -> str:
    try:
        return ElfFile(FileSource(fd)).build_id()
    finally:
        os.close(fd)


@pytest.fixture
def copy(program: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(program, tmp_path / "the program"))


@pytest.fixture
def wanted(program: Path) -> str:
    return build_id(os.open(program, os.O_RDONLY))


def test_mapped_file_of_a_live_process(copy: Path, start: Callable, wanted: str) -> None:
    pid = start(copy).pid
    assert build_id(open_mapped(pid, program_mapping(pid, "the program"), HOST)) == wanted


def test_deleted_file(copy: Path, start: Callable, wanted: str, as_root: None) -> None:
    pid = start(copy).pid
    copy.unlink()
    mapping = program_mapping(pid, "the program")
    assert mapping.path.endswith(" (deleted)")
    assert build_id(open_mapped(pid, mapping, HOST)) == wanted


def test_replaced_file(copy: Path, start: Callable, wanted: str, static_program: Path, as_root: None) -> None:
    pid = start(copy).pid
    mapping = program_mapping(pid, "the program")
    copy.unlink()
    shutil.copy(static_program, copy)
    assert build_id(open_mapped(pid, mapping, HOST)) == wanted


def test_a_replaced_file_is_never_opened_by_path(copy: Path, static_program: Path, monkeypatch: object) -> None:
    status = copy.stat()
    mapping = Mapping(0x1000, 0x2000, 0, str(copy), status.st_dev, status.st_ino)
    copy.rename(copy.with_name("kept"))
    shutil.copy(static_program, copy)
    # No such process: only the path is left.
    with pytest.raises(NotThisFile):
        open_mapped(2**22 + 1, mapping, HOST)
    with pytest.raises(NotThisFile):
        open_left([HOST], mapping, time.time_ns() + 10**9)


def test_the_same_inode_with_other_content_is_refused(copy: Path) -> None:
    """An inode number is used again as soon as its file is gone; so is a file that was written over."""
    status = copy.stat()
    mapping = Mapping(0x1000, 0x2000, 0, str(copy), status.st_dev, status.st_ino)
    os.close(open_left([HOST], mapping, status.st_ctime_ns + 10**9))
    with pytest.raises(NotThisFile):
        open_left([HOST], mapping, status.st_ctime_ns - 10**9)


def test_by_build_id(copy: Path, wanted: str, static_program: Path) -> None:
    mapping = Mapping(0x1000, 0x2000, 0, str(copy), build_id=wanted)
    assert build_id(open_left([HOST], mapping, 0)) == wanted
    with pytest.raises(NotThisFile):
        open_left([HOST], mapping._replace(path=str(static_program)), 0)
    with pytest.raises(OSError, match="No such file"):
        open_left([HOST], mapping._replace(path="/nonexistent/x"), 0)


def test_by_build_id_in_a_live_process(copy: Path, start: Callable, wanted: str, as_root: None) -> None:
    pid = start(copy).pid
    known = program_mapping(pid, "the program")
    copy.unlink()
    mapping = known._replace(dev=0, inode=0, build_id=wanted)
    assert build_id(open_mapped(pid, mapping, HOST)) == wanted
    with pytest.raises(OSError):
        open_mapped(pid, mapping._replace(build_id="00" * 20), HOST)


def test_only_regular_files(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero"), Path("/proc/self/fd")):
        with pytest.raises(OSError):
            HOST.open_regular(str(path))


def test_descriptors_are_not_inherited_and_not_leaked(copy: Path, tmp_path: Path) -> None:
    CLIENT.begin()
    before = set(os.listdir("/proc/self/fd"))
    fd = HOST.open_regular(str(copy))
    assert not os.get_inheritable(fd)
    os.close(fd)
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(OSError):
            HOST.open_regular(str(path))
    status = copy.stat()
    with pytest.raises(OSError):
        open_left([HOST], Mapping(0, 1, 0, str(copy), status.st_dev, status.st_ino + 1), 0)
    with pytest.raises(OSError):
        open_left([HOST], Mapping(0, 1, 0, str(copy), build_id="ab" * 20), 0)
    assert set(os.listdir("/proc/self/fd")) == before


def test_paths_are_resolved_inside_the_root(tmp_path: Path) -> None:
    inside = tmp_path / "root"
    (inside / "etc").mkdir(parents=True)
    (inside / "etc/secret").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (inside / "absolute").symlink_to("/etc/secret")
    (inside / "climbing").symlink_to("../secret")
    (inside / "magic").symlink_to("/proc/self/root" + str(tmp_path / "secret"))
    root = Root(os.open(inside, os.O_PATH))
    fd = root.open_regular("/absolute")
    assert os.read(fd, 99) == b"inside"
    os.close(fd)
    for path in ("/climbing", "/magic", "/../secret", "/etc/../../secret", "/a\0b"):
        with pytest.raises(OSError):
            root.open_regular(path)
    root.close()


def test_without_openat2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(lookups, "_SYS_OPENAT2", 100_000)
    root = os.open(tmp_path, os.O_PATH)
    fd = lookups.open_in([root], b"/file", 0)
    assert os.path.samestat(os.fstat(fd), os.stat(tmp_path / "file"))
    os.close(fd)
    os.close(root)


def test_nothing_is_found_in_a_root_that_was_closed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    root = Root(os.open(tmp_path, os.O_PATH))
    os.close(root.open_regular("/file"))
    root.close()
    with pytest.raises(OSError, match="nobody has"):
        root.open_regular("/etc/passwd")


def test_file_only_visible_in_another_mount_namespace(
    *, program: Path, tmp_path: Path, start: Callable, wanted: str, as_root: None, require: Callable[[bool, str], None]
) -> None:
    require(subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0, "unshare -m is refused")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    script = f"mount -t tmpfs none {hidden} && cp {program} {hidden}/contained && exec {hidden}/contained"
    pid = start(script, "unshare", "-m", "sh", "-c").pid
    assert list(hidden.iterdir()) == []
    mapping = program_mapping(pid, "contained")
    root = Root(os.open(f"/proc/{pid}/root", os.O_PATH))
    assert build_id(open_mapped(pid, mapping, HOST)) == wanted
    # By its path alone, in its root and not in ours.
    assert build_id(open_left([root], mapping, time.time_ns() + 10**9)) == wanted
    with pytest.raises(OSError):
        open_left([HOST], mapping, time.time_ns() + 10**9)
    root.close()


def test_times() -> None:
    assert abs(wall_from_monotonic(time.monotonic_ns() - 5 * 10**9) - (time.time_ns() - 5 * 10**9)) < 10**9
    assert abs(wall_from_monotonic(0) - time.time_ns()) < 10**9
