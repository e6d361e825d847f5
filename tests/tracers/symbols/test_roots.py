"""Roots are held open while a process has them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from stallscope.tracers.images.files import HOST
from stallscope.tracers.symbols import process, roots
from stallscope.tracers.symbols.process import ProcessSpaces


def contained(folder: Path) -> subprocess.Popen[str]:
    """A process in a mount namespace of its own, whose root is a mount."""
    inside = f"mount -t tmpfs none {folder} && mkdir {folder}/p && mount --rbind / {folder}/p"
    script = f"{inside} && echo ready && exec chroot {folder}/p sleep 60"
    return subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, text=True)


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_ours() -> None:
    assert roots.Roots().of(os.getpid()) is HOST


def test_containers_that_come_and_go_leave_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: None) -> None:
    monkeypatch.setattr(roots, "_BETWEEN", 0)
    monkeypatch.setattr(roots, "_SHARE", float("inf"))
    spaces = ProcessSpaces()
    spaces.adopt(os.getpid())
    before = len(open_files())
    for number in range(20):
        with contained(tmp_path) as child:
            assert child.stdout and child.stdout.readline() == "ready\n"
            found = spaces.adopt(child.pid)
            assert found is not None and found.root is not HOST, number
            assert len(spaces._roots) == 1
            child.kill()
            child.wait()
        spaces.exit(child.pid)
        assert len(spaces._roots) == 0
        with pytest.raises(OSError, match="nobody has"):
            found.root.open_regular("/etc/passwd")
    # Files of the host that these had mapped stay open, for their names; each once.
    assert len(open_files()) <= before + len(spaces._objects)
    spaces.close()


def test_a_root_that_another_process_has_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: None
) -> None:
    monkeypatch.setattr(roots, "_BETWEEN", 0)
    spaces = ProcessSpaces()
    with contained(tmp_path) as child:
        assert child.stdout and child.stdout.readline() == "ready\n"
        found = spaces.adopt(child.pid)
        spaces.processes[1 << 22] = process.Process(1 << 22, 1, root=found.root if found else HOST)
        spaces.exit(1 << 22)
        assert found is not None
        os.close(found.root.open_regular("/etc/passwd"))
        child.kill()
    spaces.close()


def test_a_users_file_does_not_stand_for_others_with_its_build_id(tmp_path: Path, root: None) -> None:
    """Anybody can write a file that claims the build-id of another one."""
    from stallscope.tracers.images.elf import ElfFile, FileSource
    from stallscope.tracers.images.maps import read_maps

    known = next(each for each in read_maps(os.getpid()) if each.is_file and "libc" in each.path)
    fd = HOST.open_regular(known.file_path)
    claimed = ElfFile(FileSource(fd)).build_id()
    forged = tmp_path / "forged"
    forged.write_bytes(os.pread(fd, 1 << 26, 0))
    os.close(fd)
    os.chown(forged, 1234, 1234)
    spaces = ProcessSpaces()
    users = process.Process(1 << 22, 1, uid=1234)
    spaces.processes[1 << 22] = users
    theirs = known._replace(dev=0, inode=0, path=str(forged), build_id=claimed)
    kept = spaces.mmap(1 << 22, theirs)
    assert kept.user == 1234
    assert spaces.object_of(kept) is not None
    ours = theirs._replace(path=known.path)
    mapped = spaces.mmap(os.getpid(), ours)
    assert mapped.user is None
    assert spaces.object_of(mapped) is not spaces.object_of(kept)
    file = spaces.object_of(mapped)
    assert file is not None and file.path == known.file_path and file.is_open
    assert spaces.mmap(os.getpid(), ours).user is None, "the administrator's file stands for all with its build-id"
    spaces.close()
