"""Locks that are known only from the open files that have them."""

from __future__ import annotations

import contextlib
import fcntl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from lock_tables import ME, SOON
from stallscope.converters.model.file_locks import FileLock
from stallscope.tracers.base import file_locks
from stallscope.tracers.base.file_locks import FileLocks
from stallscope.tracers.base.lock_table import Lock, Refused

TAKES_AND_ENDS = """
import fcntl, os, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
input()
"""
SET_OF_OPEN_FILE = 37
"""F_OFD_SETLK (fcntl(2))."""
READS = """
import fcntl, os, sys
file = open(sys.argv[1])
fcntl.fcntl(file, 37, bytes.fromhex(sys.argv[2]))
print(os.getpid(), flush=True)
input()
"""


@contextlib.contextmanager
def another(script: str, *options: object) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process of a script, and the pid that it prints once it is where it waits."""
    line = [sys.executable, "-c", script, *map(str, options)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.stdin.close()


def lock_of_open_file(access: int) -> bytes:
    """struct flock of the whole file."""
    return struct.pack("hhqqi4x", access, 0, 0, 0, 0)


def line_of(file: IO[str]) -> str:
    """The lock that an open file has, as /proc/locks tells it."""
    return Path(f"/proc/self/fdinfo/{file.fileno()}").read_text().split("lock:")[1].strip()


def asked_for(kind: str, line: str, pid: int = 1 << 30, *, access: str = "write") -> Refused:
    """A request for the lock that is in this line of /proc/locks."""
    major, minor, inode = line.split()[5].split(":")
    wish = Lock(kind, access, pid, int(major, 16) << 20 | int(minor, 16), int(inode), 0, 0)
    return Refused(wish, 1, time.monotonic_ns() + SOON, pid)


def after_requests(table: Path, line: str, *requests: Refused) -> list[FileLock]:
    """Locks that are found at a look at which the table has one line, and these requests were refused before it."""
    table.write_text(f"{line}\n")
    look = FileLocks(None, refused=lambda: list(requests))
    look.finish()
    return look.found(None, 0, time.monotonic_ns())


def test_who_inherited_the_lock_that_another_one_asks_for_again_and_again(table: Path, tmp_path: Path) -> None:
    """Processes: the taker has ended, and who asks has the file open only while it asks."""
    path = tmp_path / "lock"
    with another(TAKES_AND_ENDS, path) as (taker, heir):
        taker.wait()
        (line,) = [each for each in Path("/proc/locks").read_text().split("\n") if f" {taker.pid} " in each]
        (found,) = after_requests(table, line, asked_for("flock", line))
    assert (found.owner_pid, found.owner_ended, found.path, found.sharers) == (heir, True, str(path), 0)
    assert found.owner


def test_two_that_read_by_locks_of_open_files_may_have_one_each(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    lock = lock_of_open_file(fcntl.F_RDLCK)
    with path.open() as file, another(READS, path, lock.hex()) as (_, other):
        fcntl.fcntl(file, SET_OF_OPEN_FILE, lock)
        line = line_of(file)
        (found,) = after_requests(table, line, asked_for("OFD", line))
    assert (found.sharers, found.others, found.owner_pid) == (0, 1, min(ME, other))


@pytest.mark.parametrize(
    ("has", "wants", "waits"),
    [
        (fcntl.F_WRLCK, "write", False),
        (fcntl.F_RDLCK, "read", False),
        (fcntl.F_RDLCK, "write", True),
        (fcntl.F_UNLCK, "write", True),
    ],
)
def test_who_has_the_lock_of_an_open_file_by_now_does_not_wait(
    table: Path, tmp_path: Path, has: int, wants: str, *, waits: bool
) -> None:
    """The open file alone tells whose lock it is."""
    with (tmp_path / "lock").open("w+") as file:
        fcntl.fcntl(file, SET_OF_OPEN_FILE, lock_of_open_file(fcntl.F_WRLCK))
        line = line_of(file)
        fcntl.fcntl(file, SET_OF_OPEN_FILE, lock_of_open_file(has))
        found = after_requests(table, line, asked_for("OFD", line, ME, access=wants))
    assert [each.pid for each in found] == ([ME] if waits else [])


def test_without_time_for_open_files_nobody_waits_for_their_locks(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_locks, "_SLICE", 0)
    line = "1: OFDLCK ADVISORY  WRITE -1 08:01:99 0 EOF"
    assert after_requests(table, line, asked_for("OFD", line)) == []
    assert len(after_requests(table, line, asked_for("flock", line))) == 1
