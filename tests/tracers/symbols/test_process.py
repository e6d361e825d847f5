from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.images import maps
from stallscope.tracers.images.maps import REMAPPED, Mapping
from stallscope.tracers.symbols import process as module
from stallscope.tracers.symbols.describing import describe
from stallscope.tracers.symbols.one import Process
from stallscope.tracers.symbols.process import (
    CROWDED,
    GONE,
    NO_DESCRIPTORS,
    NOT_OPENED,
    TOO_MANY,
    ProcessSpaces,
)
from stallscope.tracers.symbols.roots import Roots

A = Mapping(0x1000, 0x2000, 0, "/nonexistent/a", 1, 101)
B = Mapping(0x1000, 0x2000, 0, "/nonexistent/b", 1, 102)
NO_PID = 2**22 + 5
NO_PID_2 = NO_PID + 1


def paths(processes: ProcessSpaces, pid: int, epoch: int) -> list[str] | None:
    space = processes.space(pid, epoch)
    return None if space is None else [m.path for m in space]


@pytest.fixture
def processes() -> ProcessSpaces:
    return ProcessSpaces()


def test_adopt(processes: ProcessSpaces, program: Path, start: Callable) -> None:
    running = start(program)
    process = processes.adopt(running.pid)
    assert process is not None
    assert (process.pid, process.nspid, process.uid, process.comm) == (
        running.pid,
        running.pid,
        os.geteuid(),
        "program",
    )
    assert abs(process.started_ns - time.time_ns()) < 60 * 10**9
    mapping = process.space.find(running.main)
    assert mapping is not None
    assert mapping.path == str(program)
    file = processes.object_of(mapping)
    assert file is not None
    assert file.is_open
    assert processes.lost == dict.fromkeys(processes.lost, 0)


def test_files_are_shared_between_processes(processes: ProcessSpaces, program: Path, start: Callable) -> None:
    first, second = start(program), start(program)
    before = len(os.listdir("/proc/self/fd"))
    processes.adopt(first.pid)
    opened = len(os.listdir("/proc/self/fd")) - before
    processes.adopt(second.pid)
    assert len(os.listdir("/proc/self/fd")) - before == opened >= 3
    processes.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_out_of_descriptors(program: Path, start: Callable) -> None:
    processes = ProcessSpaces(fd_budget=1)
    running = start(program)
    process = processes.adopt(running.pid)
    assert process is not None
    assert processes.lost[NO_DESCRIPTORS] >= 2
    files = [processes.object_of(m) for m in process.space if m.is_file]
    assert sum(f is not None and f.is_open for f in files) == 1
    # Files that are still where they were are opened when they are needed.
    assert all(f is not None and f.elf() is not None for f in files)


@pytest.fixture
def uids(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The users of processes, by pid: as if they were these."""
    described: dict[int, int] = {}

    def as_user(process: Process, roots: Roots) -> None:
        describe(process, roots)
        process.uid = described[process.pid]

    monkeypatch.setattr(module, "describe", as_user)
    return described


def are_open(processes: ProcessSpaces, process: Process | None) -> list[bool]:
    assert process is not None
    files = [processes.object_of(m) for m in process.space if m.is_file]
    return [file is not None and file.is_open for file in files]


def test_a_process_with_too_many_files(
    program: Path, start: Callable, uids: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are left out of it are not opened later either, and are told."""
    monkeypatch.setattr(module, "MOST_FILES", 1)
    processes = ProcessSpaces()
    running = start(program)
    uids[running.pid] = 1234
    process = processes.adopt(running.pid)
    opened = are_open(processes, process)
    assert sum(opened) == 1
    assert processes.lost[CROWDED] == len(opened) - 1 > 0
    assert process is not None
    assert sum(processes.file_of(running.pid, m).elf() is not None for m in process.space if m.is_file) == 1
    assert processes.lost[CROWDED] == len(opened) - 1, "counted once"
    (remark,) = processes.remarks()
    assert remark.startswith(f"processes of uid 1234 map many files: {len(opened) - 1} file")
    assert processes.most_files() == f"; process {running.pid} of uid 1234 maps many"
    processes.close()


def test_what_a_process_has_too_many_of_is_opened_for_others_of_its_user(
    program: Path, start: Callable, uids: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C library is mapped last by who maps very many files, and is that of all."""
    processes = ProcessSpaces()
    hog, other = start(program), start(program)
    uids.update({hog.pid: 1234, other.pid: 1234})
    monkeypatch.setattr(module, "MOST_FILES", 1)
    assert not all(are_open(processes, processes.adopt(hog.pid)))
    monkeypatch.setattr(module, "MOST_FILES", 100)
    opened = are_open(processes, processes.adopt(other.pid))
    assert opened
    assert all(opened)
    assert processes.remarks()
    processes.forget([])
    assert not processes.remarks(), "said once"
    processes.close()


def test_what_one_user_has_no_share_for_is_opened_for_others(
    program: Path, start: Callable, uids: dict[int, int]
) -> None:
    """Libraries of all are not missing in the processes of others, because his were seen first."""
    processes = ProcessSpaces(fd_budget=20)
    hog, other = start(program), start(program)
    uids.update({hog.pid: 1234, other.pid: 1235})
    while processes.descriptors.take(1234):
        pass
    assert not any(are_open(processes, processes.adopt(hog.pid)))
    assert processes.lost[NO_DESCRIPTORS] > 0
    opened = are_open(processes, processes.adopt(other.pid))
    assert opened
    assert all(opened)
    assert "uid 1234 " in processes.remarks()[0]
    processes.close()


def test_processes_that_are_gone(processes: ProcessSpaces) -> None:
    assert processes.adopt(NO_PID) is None
    assert processes.lost[GONE] == 1
    processes.exit(NO_PID)
    processes.refresh(NO_PID)
    processes.fork(NO_PID_2, NO_PID)
    processes.mmap(NO_PID, A)
    processes.exec(NO_PID)
    processes.exit(NO_PID)
    assert processes.lost[NOT_OPENED] == 1
    assert paths(processes, NO_PID, 0) == [A.path]
    assert paths(processes, NO_PID, 1) == []
    assert paths(processes, NO_PID, 2) is None
    assert paths(processes, 1_000_000_000, 0) is None


def test_fork_copies_and_parts(processes: ProcessSpaces) -> None:
    processes.mmap(NO_PID, A)
    processes.exec(NO_PID)
    processes.mmap(NO_PID, B)
    processes.fork(NO_PID, NO_PID_2)
    assert paths(processes, NO_PID_2, 0) == [B.path]
    processes.mmap(NO_PID_2, A._replace(start=0x8000, end=0x9000))
    assert paths(processes, NO_PID, 1) == [B.path]
    assert paths(processes, NO_PID_2, 0) == [B.path, A.path]


def test_exec_numbers(processes: ProcessSpaces) -> None:
    processes.mmap(NO_PID, A)
    processes.exec(NO_PID, epoch=3)
    processes.mmap(NO_PID, B)
    processes.exec(NO_PID, epoch=3)  # told twice
    processes.exec(NO_PID, epoch=2)  # out of order
    processes.exec(NO_PID, epoch=2**31)  # nonsense
    assert [paths(processes, NO_PID, i) for i in range(5)] == [[A.path], [], [], [B.path], None]


def test_maps_read_after_an_exec_are_the_new_programs(processes: ProcessSpaces, program: Path, start: Callable) -> None:
    running = start(program)
    processes.adopt(running.pid, time_ns=1000)
    processes.exec(running.pid, time_ns=500)
    assert paths(processes, running.pid, 0) == []
    assert str(program) in (paths(processes, running.pid, 1) or [])
    processes.exec(running.pid, time_ns=2000)
    assert str(program) in (paths(processes, running.pid, 1) or [])
    assert paths(processes, running.pid, 2) == []


def test_a_fork_event_older_than_the_maps_changes_nothing(
    processes: ProcessSpaces, program: Path, start: Callable
) -> None:
    running = start(program)
    processes.mmap(NO_PID, A)
    processes.adopt(running.pid, time_ns=1000)
    before = paths(processes, running.pid, 0)
    processes.fork(NO_PID, running.pid, time_ns=500)
    assert paths(processes, running.pid, 0) == before


def test_replayed_events_change_nothing(processes: ProcessSpaces, program: Path, start: Callable) -> None:
    running = start(program)
    process = processes.adopt(running.pid)
    assert process is not None
    before = list(process.space)
    for mapping in before:
        processes.mmap(running.pid, mapping, time_ns=1)
    assert list(process.space) == before


def test_what_was_remapped_is_in_doubt(processes: ProcessSpaces) -> None:
    processes.mmap(NO_PID, A)
    processes.mmap(NO_PID, B)
    assert paths(processes, NO_PID, 0) == [REMAPPED]


def test_a_pid_used_again(processes: ProcessSpaces) -> None:
    """Each process has its own mappings; the first one gets another number."""
    processes.mmap(NO_PID, A)
    processes.mmap(NO_PID, A._replace(start=0x5000, end=0x6000))
    processes.exit(NO_PID)
    processes.mmap(NO_PID_2, B)
    number = processes.fork(NO_PID_2, NO_PID, 100)
    space, before = processes.space(NO_PID, 0), processes.space(number, 0)
    assert space is not None
    assert before is not None
    assert [(m.start, m.path) for m in space] == [(B.start, B.path)]
    assert [(m.start, m.path) for m in before] == [(A.start, A.path), (0x5000, A.path)]
    assert not processes.processes[NO_PID].exited
    assert processes.processes[number].exited
    assert [processes.number(NO_PID, when) for when in (99, 100)] == [number, NO_PID]
    assert (processes.processes[number].life, processes.processes[NO_PID].life) == (1, 2)
    assert processes.pids == {number: NO_PID}
    processes.drop(number)
    assert (processes.number(NO_PID, 99), processes.came_back) == (NO_PID, 0)
    processes.drop(NO_PID)
    processes.fork(NO_PID_2, NO_PID, 200)
    assert processes.processes[NO_PID].life == 3, "who was forgotten is counted"


@pytest.mark.parametrize(
    "mapping",
    [A._replace(end=0), A._replace(end=A.start), A._replace(start=-5), A._replace(end=2**64 + 1)],
)
def test_absurd_mmaps_are_ignored(processes: ProcessSpaces, mapping: Mapping) -> None:
    processes.mmap(NO_PID, mapping)
    assert not paths(processes, NO_PID, 0)


def test_refresh_fills_gaps(processes: ProcessSpaces, program: Path, start: Callable) -> None:
    running = start(program)
    processes.mmap(running.pid, B)
    processes.refresh(running.pid)
    found = paths(processes, running.pid, 0) or []
    assert B.path in found
    assert str(program) in found


def test_files_of_the_dead_stay_open(
    processes: ProcessSpaces, program: Path, tmp_path: Path, start: Callable, as_root: None
) -> None:
    copy = Path(shutil.copy(program, tmp_path / "short"))
    running = start(copy)
    processes.adopt(running.pid)
    os.kill(running.pid, 9)
    copy.unlink()
    processes.exit(running.pid)
    mapping = processes.processes[running.pid].space.find(running.main)
    assert mapping is not None
    file = processes.object_of(mapping)
    assert file is not None
    assert file.elf() is not None


JIT = r"""
import os, sys, time
with open(f"/tmp/perf-{os.getpid()}.map", "w") as file:
    file.write("7000 100 generated\n")
print("0 0 0 0 0", flush=True)
sys.stdin = None
time.sleep(60)
"""


def test_jit_map_of_a_live_and_of_a_dead_process(processes: ProcessSpaces, start: Callable) -> None:
    running = start(JIT, sys.executable, "-c")
    file = Path(f"/tmp/perf-{running.pid}.map")
    try:
        process = processes.adopt(running.pid)
        assert process is not None
        found = processes.jit_map(process)
        assert found is not None
        assert len(found) == 1
        os.kill(running.pid, 9)
        processes.exit(running.pid)
        assert processes.jit_map(process) is not None
        processes.exec(running.pid)
        assert process.perf_map is None
    finally:
        file.unlink()


def test_pid_namespace_and_another_root(
    processes: ProcessSpaces, start: Callable, as_root: None, require: Callable[[bool, str], None]
) -> None:
    """The map is called by the pid that the process itself sees, and lies in its own /tmp."""
    unshare = ["unshare", "-m", "-p", "-f", "--kill-child"]
    require(subprocess.run([*unshare, "true"], capture_output=True).returncode == 0, "unshare is refused")
    # Not the virtual environment's Python: that may lie below /tmp.
    script = f"mount -t tmpfs none /tmp && exec {os.path.realpath(sys.executable)} -c '{JIT}'"
    running = start(script, *unshare, "sh", "-c")
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    assert not Path("/tmp/perf-1.map").exists()
    process = processes.adopt(int(children[0]))
    assert process is not None
    assert process.nspid == 1
    found = processes.jit_map(process)
    assert found is not None
    assert len(found) == 1


def test_what_is_gone_is_forgotten(program: Path, start: Callable, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copy(program, other)
    processes = ProcessSpaces(fd_budget=100)
    one, two = start(program), start(other)
    descriptors = len(os.listdir("/proc/self/fd"))
    for running in (one, two):
        processes.adopt(running.pid)
    left = processes.descriptors._left
    processes.lost[GONE] = 3
    processes.forget([two.pid])
    assert processes.processes.keys() == {one.pid}
    assert processes.lost == dict.fromkeys(processes.lost, 0)
    assert processes.descriptors._left == left + 1, "the other's program; they share their libraries"
    mapping = processes.processes[one.pid].space.find(one.main)
    assert mapping is not None
    file = processes.object_of(mapping)
    assert file is not None
    assert file.is_open
    processes.forget([one.pid, one.pid + 1])
    assert processes.descriptors._left == 100
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_too_many_mappings_are_counted(
    processes: ProcessSpaces, program: Path, start: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "MOST", 2)
    running = start(program)
    process = processes.adopt(running.pid)
    assert process is not None
    left = processes.lost[TOO_MANY]
    assert left > 0
    assert len(process.space) == 2
    processes.mmap(running.pid, Mapping(1 << 50, (1 << 50) + 4096, path="//anon"))
    assert processes.lost[TOO_MANY] == left + 1
