from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest
from stallscope.tracers.base import procfs

GONE = 1 << 22
"""No process: the highest pid is one less (PID_MAX_LIMIT)."""


@pytest.fixture
def hostile() -> object:
    """A sleeping process whose name and arguments try to look like something else."""
    code = (
        "import ctypes, sys, time\n"
        r"ctypes.CDLL(None).prctl(15, b'a) R 1\nTgid:\t1', 0, 0, 0)"
        "\nprint(flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, "x\ny", "", b"\xff"], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.readline()
    yield child.pid
    child.kill()
    child.wait()
    child.stdout.close()


def test_origins(hostile: int) -> None:
    found = procfs.origins()
    assert found[hostile].parent == os.getpid()
    assert found[hostile].began >= found[os.getpid()].began > 0
    assert GONE not in found
    assert procfs.began(hostile, hostile) == found[hostile].began
    assert procfs.began(GONE, GONE) is None


def test_hostile_names(hostile: int) -> None:
    assert procfs.comm(hostile) == "a) R 1\nTgid:\t1"
    assert procfs.comm(hostile, hostile) == "a) R 1\nTgid:\t1"
    assert procfs.command_line(hostile).endswith(" x\ny  \udcff")
    assert procfs.tgid_of(hostile) == hostile
    until = time.monotonic() + 10
    while procfs.state(hostile) != "S" and time.monotonic() < until:
        time.sleep(0.001)  # it has told us that it is there, and is about to sleep
    assert procfs.state(hostile) == "S"
    assert procfs.ancestors(hostile) == {os.getpid(), *procfs.ancestors(os.getpid())}


def test_the_state_of_a_thread_needs_no_look_at_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel adds up the times of all threads of the process for /proc/TID/stat: of thousands that took seconds."""
    read: list[str] = []
    monkeypatch.setattr(procfs, "_read", lambda path: read.append(str(path)) or b"1 (x) S 0")
    assert procfs.state(7) == "S"
    assert read == ["/proc/7/task/7/stat"]


def test_ancestors_lead_to_the_first_process() -> None:
    found = procfs.ancestors(os.getpid())
    assert os.getppid() in found
    assert os.getpid() not in found
    assert procfs.ancestors(GONE) == set()


def test_nothing_is_asked_of_a_process_that_is_gone() -> None:
    assert procfs.tids(GONE) == []
    assert procfs.tgid_of(GONE) is None
    assert procfs.comm(GONE) == procfs.comm(GONE, GONE) == procfs.command_line(GONE) == procfs.state(GONE) == ""


def test_threads_and_their_process() -> None:
    ready, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (ready.set(), leave.wait()))
    thread.start()
    ready.wait()
    try:
        tid = thread.native_id
        assert tid is not None
        assert {os.getpid(), tid} <= set(procfs.tids(os.getpid()))
        assert procfs.tgid_of(tid) == os.getpid()
        pids = set(procfs.pids())
        assert os.getpid() in pids
        assert tid not in pids
    finally:
        leave.set()
        thread.join()


def test_command_line_without_end_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"x\0" * (1 << 20)
    monkeypatch.setattr(procfs, "heads", lambda pids, names: {pid: [line[: names[0][1]]] for pid in pids})
    assert len(procfs.command_line(7)) == (1 << 16) - 1


def test_kernel_threads_have_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "heads", lambda pids, names: {pid: [b""] for pid in pids})
    assert procfs.command_line(7) == ""


def test_pid_namespace(root: None) -> None:
    assert procfs.in_host_pid_namespace()
    code = "from stallscope.tracers.base import procfs; print(procfs.in_host_pid_namespace())"
    inside = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
    assert subprocess.run(inside, capture_output=True, text=True, check=True).stdout == "False\n"


def test_time_namespace(root: None) -> None:
    assert procfs.has_host_clocks()
    code = "from stallscope.tracers.base import procfs; print(procfs.has_host_clocks())"
    for offset, expected in (("5", "False"), ("0", "True")):
        inside = ["unshare", "--time", "--fork", "--monotonic", offset, sys.executable, "-c", code]
        assert subprocess.run(inside, capture_output=True, text=True, check=True).stdout == f"{expected}\n"


LEADER_ENDS = """
import ctypes, threading, time
def run():
    time.sleep(0.1)
    print(flush=True)
    time.sleep(60)
threading.Thread(target=run).start()
ctypes.CDLL(None).syscall(60, 0)  # exit(2) of this thread alone
"""


def test_a_process_whose_main_thread_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", LEADER_ENDS], stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        assert procfs.state(child.pid) == "Z"
        assert not procfs.has_ended(child.pid)
        child.kill()
        while procfs.state(child.pid) != "Z" or len(procfs.tids(child.pid)) > 1:
            time.sleep(0.01)
        assert procfs.has_ended(child.pid)
    assert procfs.has_ended(child.pid)


def test_schedstat() -> None:
    before = after = procfs.schedstat(os.getpid(), os.getpid())
    assert before is not None
    until = time.monotonic() + 30
    while after == before and time.monotonic() < until:
        after = procfs.schedstat(os.getpid(), os.getpid())
    assert after is not None
    assert after[0] > before[0] > 0
    assert procfs.schedstat(1 << 22, 1 << 22) is None


@pytest.mark.parametrize("name", [b"a\rTgid:\t1\rb", b"\rTgid: no", b"\rNSpid:\t1\r", b"\x0bTgid:\t1"])
def test_names_with_other_ends_of_lines(name: bytes) -> None:
    """The kernel escapes newlines only."""
    code = f"import ctypes, time\nctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)\nprint(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        try:
            assert procfs.comm(child.pid) == name.decode()
            assert procfs.tgid_of(child.pid) == child.pid
            assert procfs.innermost_id(child.pid) == child.pid
        finally:
            child.kill()
