"""Locks on files, and who has them: against processes of which that is known."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model.file_locks import FileLock
from stallscope.tracers.base.file_locks import LOST_REQUESTS
from stallscope.tracers.engines.limits import MOST_REFUSALS

HAS = """
import fcntl, sys, time
file = open(sys.argv[1], "r+")
fcntl.{call}
print(flush=True)
time.sleep({seconds})
fcntl.flock(file, fcntl.LOCK_UN)
fcntl.lockf(file, fcntl.LOCK_UN)
time.sleep(600)
"""
WANTS = """
import fcntl, sys, time
def take_lock():
    file = open(sys.argv[1], "r+")
    print(flush=True)
    fcntl.{call}
take_lock()
time.sleep(600)
"""
FLOCK, RANGE = "flock(file, fcntl.LOCK_EX)", "lockf(file, fcntl.LOCK_EX, 10, 20)"
OPEN_FILE = "fcntl(file, {command}, __import__('struct').pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0))"
SET, SET_AND_WAIT = (OPEN_FILE.format(command=command) for command in (37, 38))
"""F_OFD_SETLK and F_OFD_SETLKW (fcntl(2))."""


@contextlib.contextmanager
def running(folder: Path, name: str, text: str, *prefix: str) -> Iterator[subprocess.Popen[bytes]]:
    """A script that has begun: with a lock on a file, or waiting for one."""
    script, lock = folder / name, folder / "db.lock"
    script.write_text(text)
    lock.touch()
    line = [*prefix, sys.executable, str(script), str(lock)]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def traced(folder: Path, command: str, *options: object) -> tuple[dict[str, Any], list[FileLock]]:
    """Object that a command prints as JSON, and the locks in its file."""
    saved = folder / "saved.pb.gz"
    line = [Path(sys.executable).with_name(command), "--json", "-o", saved, *map(str, options)]
    text = subprocess.run(line, capture_output=True, check=True).stdout.decode()
    with saved.open("rb") as file:
        locks = pprof.load(file).file_locks
    return json.loads(text), locks


@pytest.mark.parametrize("command", ["trace-offcpu", "trace-wall", "trace-wakeup"])
def test_a_lock_that_another_process_has_all_the_time(live: None, tmp_path: Path, command: str) -> None:
    has, wants = HAS.format(call=FLOCK, seconds=600), WANTS.format(call=FLOCK)
    with running(tmp_path, "importer.py", has) as holder, running(tmp_path, "builder.py", wants) as waiter:
        time.sleep(0.2)
        told, (found,) = traced(tmp_path, command, "-p", waiter.pid, "-d", 2)
    assert (found.pid, found.owner_pid, found.kind, found.access) == (waiter.pid, holder.pid, "flock", "write")
    assert found.seen == found.looks >= 2
    path = tmp_path / "db.lock"
    assert (found.path, found.first, found.last) == (str(path), 0, 0)
    assert f"importer.py (pid {holder.pid}, not traced) has the lock of {path} all the time" in told["answer"][0]
    assert told["next"]["command"] == f"trace-wall -p {holder.pid} -d 5"
    (verdict,) = [each for each in told["verdicts"] if each["kind"] == "file-lock"]
    assert verdict["evidence"]["pid"] == holder.pid
    assert told["file_locks"][0]["owner_pid"] == holder.pid


def test_a_range_of_a_file_and_what_its_traced_holder_does(live: None, tmp_path: Path) -> None:
    has, wants = HAS.format(call=RANGE, seconds=600), WANTS.format(call=RANGE)
    with running(tmp_path, "importer.py", has) as holder, running(tmp_path, "builder.py", wants) as waiter:
        time.sleep(0.2)
        told, (found,) = traced(tmp_path, "trace-offcpu", "-p", f"{holder.pid},{waiter.pid}", "-d", 1)
    assert (found.kind, found.first, found.last, found.owner_pid) == ("fcntl", 20, 29, holder.pid)
    first = told["answer"][0]
    assert f"(pid {holder.pid}) has the lock of bytes 20 to 29 of {tmp_path / 'db.lock'} all the time" in first
    assert "meanwhile the main thread of" in first
    assert "time_sleep" in first
    assert not any("did not move" in sentence for sentence in told["answer"])


def test_a_holder_that_gives_it_back_meanwhile(live: None, tmp_path: Path) -> None:
    has, wants = HAS.format(call=FLOCK, seconds=3), WANTS.format(call=FLOCK)
    with running(tmp_path, "importer.py", has) as holder, running(tmp_path, "builder.py", wants) as waiter:
        _, (found,) = traced(tmp_path, "trace-offcpu", "-p", waiter.pid, "-d", 6)
    assert found.owner_pid == holder.pid
    assert 0 < found.seen < found.looks
    assert found.last_seen < 5_000_000_000


def test_the_lock_of_an_open_file(live: None, tmp_path: Path) -> None:
    """The kernel tells neither who has it nor who waits: they are found by their open files."""
    has, wants = HAS.format(call=SET, seconds=600), WANTS.format(call=SET_AND_WAIT)
    with running(tmp_path, "importer.py", has) as holder, running(tmp_path, "builder.py", wants) as waiter:
        time.sleep(0.2)
        told, (found,) = traced(tmp_path, "trace-offcpu", "-p", waiter.pid, "-d", 1)
    assert (found.kind, found.pid, found.owner_pid) == ("OFD", waiter.pid, holder.pid)
    assert f"(pid {holder.pid}, not traced) has the lock of" in told["answer"][0]


def test_who_inherited_the_lock_of_a_process_that_has_ended(live: None, tmp_path: Path) -> None:
    takes = HAS.format(call=FLOCK, seconds=600).replace("print(", "import os\nif os.fork(): os._exit(0)\nprint(")
    with (
        running(tmp_path, "importer.py", takes) as holder,
        running(tmp_path, "builder.py", WANTS.format(call=FLOCK)) as waiter,
    ):
        time.sleep(0.2)
        told, (found,) = traced(tmp_path, "trace-offcpu", "-p", waiter.pid, "-d", 1)
        subprocess.run(["kill", str(found.owner_pid)], check=False)
    assert found.owner_ended
    assert found.owner_pid != holder.pid
    assert "from a process that took it and has ended" in told["answer"][0]


def test_who_waits_in_another_pid_namespace(live: None, tmp_path: Path) -> None:
    """The ids are the host's."""
    inside = "unshare", "--pid", "--fork", "--kill-child"
    has, wants = HAS.format(call=FLOCK, seconds=600), WANTS.format(call=FLOCK)
    with running(tmp_path, "importer.py", has) as holder, running(tmp_path, "builder.py", wants, *inside) as outer:
        time.sleep(0.2)
        pid = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
        _, (found,) = traced(tmp_path, "trace-offcpu", "-p", pid, "-d", 1)
    assert (found.pid, found.owner_pid, found.path) == (pid, holder.pid, str(tmp_path / "db.lock"))


def test_two_that_wait_for_each_other(live: None, tmp_path: Path) -> None:
    text = """
import fcntl, sys, time
mine, others = (open(f"{sys.argv[1]}-{name}", "w") for name in NAMES)
fcntl.flock(mine, fcntl.LOCK_EX)
print(flush=True)
time.sleep(1)
fcntl.flock(others, fcntl.LOCK_EX)
"""
    ab, ba = text.replace("NAMES", "'ab'"), text.replace("NAMES", "'ba'")
    with running(tmp_path, "left.py", ab) as left, running(tmp_path, "right.py", ba) as right:
        time.sleep(1.5)
        told, _ = traced(tmp_path, "trace-offcpu", "-p", f"{left.pid},{right.pid}", "-d", 1)
    assert "a deadlock" in told["answer"][0]
    assert str(tmp_path / "db.lock-a") in told["answer"][0]


def test_the_path_of_one_who_waits_ends_with_the_holder(live: None, tmp_path: Path) -> None:
    has, wants = HAS.format(call=FLOCK, seconds=600), WANTS.format(call=FLOCK)
    with running(tmp_path, "importer.py", has) as holder, running(tmp_path, "builder.py", wants) as waiter:
        time.sleep(0.2)
        told, _ = traced(tmp_path, "trace-wakeup", "-p", waiter.pid, "-d", 1, "--critical", waiter.pid)
    assert "nobody knows" not in told["answer"][0]
    assert f"importer.py (pid {holder.pid}, not traced) has the lock of" in told["answer"][0]


WRITES = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], timeout=600, isolation_level=None)
database.execute("CREATE TABLE IF NOT EXISTS items (v)")
database.execute("BEGIN IMMEDIATE")
print(flush=True)
time.sleep(600)
"""
READS = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("CREATE TABLE IF NOT EXISTS items (v)")
database.executemany("INSERT INTO items VALUES (?)", [(2,), (3,)])
rows = database.execute("SELECT v FROM items")
next(rows)
print(flush=True)
time.sleep(600)
"""
INSERTS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=600, isolation_level=None)
print(flush=True)
database.execute("INSERT INTO items VALUES (1)")
"""
ASKS = """
import fcntl, sys, time
print(flush=True)
while True:
    with open(sys.argv[1], "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
"""


@pytest.mark.parametrize(("script", "access"), [(WRITES, "write"), (READS, "read")])
def test_who_has_the_lock_of_a_database_for_which_another_one_asks_again_and_again(
    live: None, tmp_path: Path, script: str, access: str
) -> None:
    """Owners: one that writes, and one that reads, while the other one has a lock to read, too, and wants to write."""
    with running(tmp_path, "importer.py", script) as holder, running(tmp_path, "tracker.py", INSERTS) as waiter:
        time.sleep(0.2)
        told, locks = traced(tmp_path, "trace-offcpu", "-p", f"{waiter.pid},{holder.pid}", "-d", 5)
    (found,) = [each for each in locks if each.owner_pid]
    assert (found.pid, found.owner_pid, found.kind, found.access) == (waiter.pid, holder.pid, "fcntl", access)
    assert found.path == str(tmp_path / "db.lock")
    first = told["answer"][0]
    assert "is blocked on a lock of an SQLite database" in first
    assert f"importer.py (pid {holder.pid}) has the lock of" in first
    assert "meanwhile the main thread of" in first
    assert "time_sleep" in first


def test_who_asks_for_a_lock_with_a_new_descriptor_each_time(live: None, tmp_path: Path) -> None:
    has = HAS.format(call=FLOCK, seconds=600)
    with running(tmp_path, "importer.py", has) as holder, running(tmp_path, "builder.py", ASKS) as waiter:
        time.sleep(0.2)
        told, locks = traced(tmp_path, "trace-offcpu", "-p", waiter.pid, "-d", 5)
    (found,) = [each for each in locks if each.owner_pid]
    path = tmp_path / "db.lock"
    assert (found.pid, found.owner_pid, found.kind, found.path) == (waiter.pid, holder.pid, "flock", str(path))
    assert "is blocked on the lock of a file in" in told["answer"][0]
    assert f"importer.py (pid {holder.pid}, not traced) has the lock of {path}" in told["answer"][0]
    assert LOST_REQUESTS not in told["lost"]


ASKS_FOR_MANY = """
import fcntl, sys, time
file = open(sys.argv[1], "r+")
print(flush=True)
while True:
    for first in range({number}):
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, first)
        except BlockingIOError:
            pass
    time.sleep(0.01)
"""


def test_requests_for_which_the_kernel_had_no_room_are_told_as_lost(live: None, tmp_path: Path) -> None:
    """Requests for bytes of a file: more than there is room for, all of them between two looks."""
    has = HAS.format(call="lockf(file, fcntl.LOCK_EX)", seconds=600)
    wants = ASKS_FOR_MANY.format(number=4 * MOST_REFUSALS)
    with running(tmp_path, "importer.py", has), running(tmp_path, "builder.py", wants) as waiter:
        told, locks = traced(tmp_path, "trace-offcpu", "-p", waiter.pid, "-d", 2)
    assert told["lost"][LOST_REQUESTS] > 0
    assert sum(each.requests for each in locks) > 0
