"""Stacks of threads that sleep, of a program that is not stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stacks_truth import reaches_start
from stallscope.converters.model import Frame
from stallscope.tracers.base import procfs
from stallscope.tracers.engines import asleep
from stallscope.tracers.engines.asleep import Asleep
from stallscope.tracers.unwind.walking import Registers

PROGRAM = """\
import threading, time
for _ in range(2):
    threading.Thread(target=threading.Event().wait).start()
print(flush=True)
time.sleep(600)
"""
KERNEL = """\
[<0>] futex_wait_queue+0x60/0x90
[<ffffffffa1c3>] nv_wait+0x1/0x2 [nvidia]
[<0>] entry_SYSCALL_64_after_hwframe+0x6e/0xd8
[<ffffffffffffffff>] 0xffffffffffffffff
"""


@pytest.fixture
def pid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[int]:
    """A program whose three threads sleep."""
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        until = time.monotonic() + 60
        while sum(procfs.state(tid) == "S" for tid in procfs.tids(process.pid)) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        yield process.pid
        process.kill()


def test_whole_stacks(pid: int) -> None:
    looks = Asleep(kernel=False)
    for tid in procfs.tids(pid):
        looks.look(pid, tid)
    stacks = {tid: looks.stack(tid) for tid in procfs.tids(pid)}
    looks.close()
    assert len(stacks) == 3
    assert all(map(reaches_start, stacks.values())), stacks
    assert any("nanosleep" in frame.name or "select" in frame.name for frame in stacks[pid]), stacks[pid]
    for tid in stacks.keys() - {pid}:
        assert any(frame.name.startswith("PyThread_acquire_lock") for frame in stacks[tid]), stacks[tid]


def test_a_stack_belongs_to_the_wait_that_went_on_when_it_was_copied(pid: int) -> None:
    looks = Asleep()
    before = time.monotonic_ns()
    looks.look(pid, pid)
    assert not looks.has(pid, before)
    assert looks.has(pid, time.monotonic_ns())
    assert not looks.has(pid + 1, time.monotonic_ns())
    looks.close()


def test_what_is_not_wanted(pid: int) -> None:
    looks = Asleep(user=False, kernel=False)
    looks.look(pid, pid)
    assert not looks.has(pid, time.monotonic_ns())
    assert looks.stack(pid) == ()


def test_copies_have_a_limit(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asleep, "_MOST", 1)
    looks = Asleep(kernel=False)
    for tid in procfs.tids(pid):
        looks.look(pid, tid)
    assert [looks.has(tid, time.monotonic_ns()) for tid in procfs.tids(pid)] == [True, False, False]
    looks.close()


def test_a_process_that_is_gone() -> None:
    looks = Asleep()
    looks.look(1 << 22, 1 << 22, Registers(1, 2, 3))
    assert not looks.has(1 << 22, time.monotonic_ns())
    assert looks.stack(1 << 22) == ()


def test_what_the_kernel_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing more than that is told of a thread of the kernel."""
    (tmp_path / "stack").write_text(KERNEL)
    monkeypatch.setattr(asleep, "_task", lambda pid, tid: str(tmp_path))
    looks = Asleep()
    looks.look(os.getpid(), 7, Registers(0, 0, 0))
    frames = looks.stack(7)
    assert [frame.name for frame in frames] == ["entry_SYSCALL_64_after_hwframe", "nv_wait", "futex_wait_queue"]
    assert [frame.module.path for frame in frames if frame.module] == [
        "[kernel.kallsyms]", "nvidia.ko", "[kernel.kallsyms]",
    ]  # fmt: skip
    assert {frame.kind for frame in frames} == {"kernel"}
    assert isinstance(frames[0], Frame)
