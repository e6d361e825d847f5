from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from stallscope.tracers.base.lock_table import Lock, lock_of
from stallscope.tracers.base.open_files import holders, opened, path_of


def lock_on(file: int) -> Lock:
    """A lock of this process on an open file, as its fdinfo has it."""
    for line in Path(f"/proc/self/fdinfo/{file}").read_bytes().split(b"\n"):
        if line.startswith(b"lock:") and (found := lock_of(line.split()[2:])):
            return found
    raise AssertionError("there is none")


def test_the_path_of_an_inode(tmp_path: Path) -> None:
    path = tmp_path / "a lock\nwith a name"
    with path.open("w") as file, (tmp_path / "other").open("w"):
        fcntl.flock(file, fcntl.LOCK_EX)
        lock = lock_on(file.fileno())
        found = opened(os.getpid(), lock.device, lock.inode)
        assert found and found.path == str(path)
        assert [(each.kind, each.pid) for each in found.locks] == [("flock", os.getpid())]
        assert opened(os.getpid(), lock.device + 1, lock.inode) is None
        assert opened(os.getpid(), lock.device, lock.inode + 1000) is None
    assert opened(os.getpid(), lock.device, lock.inode) is None
    assert opened(1 << 30, lock.device, lock.inode) is None


def test_who_has_inherited_an_open_file_has_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        line = [sys.executable, "-c", "print(flush=True); input()"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with (
            subprocess.Popen(line, pass_fds=[file.fileno()], **pipes) as one,  # type: ignore[call-overload]
            subprocess.Popen(line, **pipes) as other,  # type: ignore[call-overload]
        ):
            for each in (one, other):
                each.stdout.readline()
            pids = [os.getpid(), one.pid, other.pid, 1 << 30]
            until = time.monotonic() + 60
            assert holders(lock_on(file.fileno()), str(path), pids, until) == {os.getpid(), one.pid}
            assert holders(lock_on(file.fileno()), str(path), pids, 0) == set()
            for each in (one, other):
                each.stdin.close()


def test_who_has_opened_the_file_and_taken_a_lock_of_its_own_does_not_share(tmp_path: Path) -> None:
    """Locks of two that read."""
    path = tmp_path / "lock"
    line = [
        *(sys.executable, "-c"),
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); print(flush=True); input()",
        str(path),
    ]
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdin and other.stdout
            other.stdout.readline()
            pids, until = [os.getpid(), other.pid], time.monotonic() + 60
            mine = lock_on(file.fileno())
            assert holders(mine, str(path), pids, until) == {os.getpid()}
            assert holders(mine._replace(pid=other.pid), str(path), pids, until) == {other.pid}
            assert holders(mine._replace(access="write"), str(path), pids, until) == set()
            other.stdin.close()


def test_the_path_of_a_file_of_which_only_the_lock_is_known(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lock, pids, until = lock_on(file.fileno()), [1 << 30, os.getpid()], time.monotonic() + 60
        assert path_of(lock, pids, until) == str(path)
        assert path_of(lock._replace(inode=lock.inode + 1000), pids, until) == ""
        assert path_of(lock, pids, 0) == ""
