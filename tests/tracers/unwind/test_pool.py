"""Processes that compile, for real."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from descriptors import readable
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.unwind import pool as module
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.compiler import compile_table
from stallscope.tracers.unwind.pool import Answer, Job, Pool
from stallscope.tracers.unwind.rows import UnwindTable
from stallscope.tracers.unwind.sections import find_sections

PATIENCE = 60.0
LIBRARIES = ("libc.so.6", "libm.so.6", "libz.so.1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def pool(folder: Path) -> Iterator[Pool[str]]:
    made: Pool[str] = Pool(str(folder), 2)
    yield made
    made.close(PATIENCE)


@pytest.fixture
def job(folder: Path) -> Iterator[Callable[..., Job[str]]]:
    """``job(name, size, share)`` for a library of this machine."""
    opened: list[int] = []
    cache = TableCache(str(folder))

    def made(name: str = LIBRARIES[0], size: int = 1, share: int = 1) -> Job[str]:
        opened.append(os.open(f"/lib/x86_64-linux-gnu/{name}", os.O_RDONLY))
        elf = ElfFile(FileSource(opened[-1]))
        return Job(name, opened[-1], cache.entry(elf, find_sections(elf)), size, share)

    yield made
    cache.close()
    for fd in opened:
        os.close(fd)


def work(pool: Pool[str], until: Callable[[list[Answer[str]]], bool] | None = None) -> list[Answer[str]]:
    """Answers, until all is done or ``until`` holds."""
    answers: list[Answer[str]] = []
    deadline = time.monotonic() + PATIENCE
    while not pool.idle and not (until and until(answers)):
        assert time.monotonic() < deadline
        answers += pool.feed()
        readable(pool.fds, 0.05)
        answers += pool.collect()
    return answers


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_tables_are_the_same_as_in_our_own_process(pool: Pool[str], job: Callable[..., Job[str]], folder: Path) -> None:
    jobs = {name: job(name) for name in LIBRARIES}
    for each in jobs.values():
        pool.put(each)
    answers = {answer.token: answer.found for answer in work(pool)}
    assert answers.keys() == jobs.keys()
    for name, found in answers.items():
        assert isinstance(found, UnwindTable), found
        expected = compile_table(ElfFile(FileSource(jobs[name].fd)))
        assert np.array_equal(found.rows, expected.rows)
        assert (found.base, found.refused) == (expected.base, expected.refused)
    assert {path.name for path in folder.iterdir()} == {each.entry.name for each in jobs.values()}
    assert len(pool.pids) <= 2
    assert os.getpid() not in pool.pids


def test_order_and_niceness(pool: Pool[str], job: Callable[..., Job[str]]) -> None:
    pool.most = 1
    for name, size, share in (
        ("big", 1 << 30, 1),
        ("shared", 1 << 30, 1 << 20),
        ("small", 4096, 1),
        ("hasty", 1 << 40, 1),
    ):
        pool.put(replace(job(size=size, share=share), token=name))
    pool.put(replace(job(), token="urgent"), urgent=True)
    pool.hasten("hasty")
    pool.hasten("none")
    order, nice = [], {}
    while not pool.idle:
        for answer in pool.feed():
            raise AssertionError(answer)
        (name,) = pool.at_work
        (worker,) = pool._workers
        readable(pool.fds, PATIENCE)
        nice[name] = os.getpriority(os.PRIO_PROCESS, worker.process.pid)
        order += [answer.token for answer in pool.collect()]
    assert order == ["urgent", "hasty", "shared", "small", "big"]
    base = os.getpriority(os.PRIO_PROCESS, 0)
    assert nice == {"urgent": max(base, 0), "hasty": max(base, 10), "shared": 19, "small": max(base, 0), "big": 19}


def test_a_process_that_is_killed_is_replaced_and_its_file_tried_again(
    pool: Pool[str], job: Callable[..., Job[str]]
) -> None:
    pool.put(job())
    list(pool.feed())
    (first,) = pool.pids
    os.kill(first, signal.SIGKILL)
    (answer,) = work(pool)
    assert isinstance(answer.found, UnwindTable)
    assert len(pool.pids) == 2
    assert state(first) == "Z", "its id stays taken while we are traced"


def test_all_processes_are_killed_at_once(pool: Pool[str], job: Callable[..., Job[str]]) -> None:
    """The one that is idle may look alive when the file is to be tried again."""
    pool.put(job())
    pool.put(job("libm.so.6"))
    assert len(work(pool)) == 2
    pool.put(job("libz.so.1"))
    list(pool.feed())
    busy, idle = sorted(pool._workers, key=lambda worker: worker.job is None)
    os.kill(idle.process.pid, signal.SIGSTOP)
    list(pool._gone(busy))
    list(pool.feed())
    assert idle.job is None
    os.kill(idle.process.pid, signal.SIGKILL)
    (answer,) = work(pool)
    assert isinstance(answer.found, UnwindTable), answer


def test_a_file_that_ends_two_processes_is_refused(pool: Pool[str], job: Callable[..., Job[str]]) -> None:
    pool.put(job())
    pool.put(job("libm.so.6", size=1 << 40))
    pool.most = 1
    answers: list[Answer[str]] = []
    killed: set[int] = set()
    while not pool.idle:
        answers += pool.feed()
        if pool.at_work == ["libc.so.6"]:
            for worker in pool._workers:
                os.kill(worker.process.pid, signal.SIGKILL)
                killed.add(worker.process.pid)
        readable(pool.fds, PATIENCE)
        answers += pool.collect()
    first, second = answers
    assert (first.token, first.found) == ("libc.so.6", "the process that compiled it ended (SIGKILL)")
    assert len(killed) == 2
    assert isinstance(second.found, UnwindTable)


def test_an_idle_process_that_ends_is_no_loss(pool: Pool[str], job: Callable[..., Job[str]]) -> None:
    pool.put(job())
    assert len(work(pool)) == 1
    (idle,) = pool.pids
    os.kill(idle, signal.SIGKILL)
    os.waitid(os.P_PID, idle, os.WEXITED | os.WNOWAIT)
    pool.put(job("libm.so.6"))
    (answer,) = work(pool)
    assert isinstance(answer.found, UnwindTable)


def test_no_process_can_be_started(
    pool: Pool[str], job: Callable[..., Job[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    before = len(os.listdir("/proc/self/fd"))
    pool.put(job())
    assert work(pool) == [Answer("libc.so.6", "no process to compile it: No such file or directory")]
    assert len(os.listdir("/proc/self/fd")) == before + 1  # the library


def test_another_file_under_the_same_descriptor_is_not_believed(pool: Pool[str], job: Callable[..., Job[str]]) -> None:
    given = job()
    pool.put(replace(given, entry=given.entry._replace(digest=bytes(16))))
    assert work(pool) == [Answer("libc.so.6", "changed while it was compiled")]


def test_what_is_begun_is_finished_for_the_cache_when_nobody_waits_any_more(
    job: Callable[..., Job[str]], folder: Path, tmp_path: Path
) -> None:
    pool: Pool[str] = Pool(str(folder), 1)
    given = job("libm.so.6")
    pool.put(given)
    list(pool.feed())
    (pid,) = pool.pids
    pool.close()
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended
    assert ended.si_status == 0
    assert (folder / given.entry.name).is_file()
    pool.close(PATIENCE)
    assert not Path(f"/proc/{pid}").exists()


def test_who_gets_too_little_of_the_processor_gets_more(
    pool: Pool[str], job: Callable[..., Job[str]], monkeypatch: pytest.MonkeyPatch, root: None
) -> None:
    pool.put(job(size=1 << 30))
    list(pool.feed())
    (worker,) = pool._workers
    os.kill(worker.process.pid, signal.SIGSTOP)
    levels = []
    try:
        for age in (0.5, 1.5, 3.5):
            worker.since = time.monotonic() - age
            pool.hurry()
            levels.append(worker.nice)
        base = os.getpriority(os.PRIO_PROCESS, 0)
        assert levels == [19, max(base, 10), max(base, 0)]
        assert os.getpriority(os.PRIO_PROCESS, worker.process.pid) == max(os.getpriority(os.PRIO_PROCESS, 0), 0)
        worker.nice = 19
        monkeypatch.setattr(module, "_cpu_time", lambda pid: worker.cpu + 2.0)
        pool.hurry()
        assert worker.nice == 19, "it works most of the time"
    finally:
        os.kill(worker.process.pid, signal.SIGCONT)
    assert len(work(pool)) == 1


def test_descriptors_and_processes_do_not_pile_up(folder: Path, job: Callable[..., Job[str]]) -> None:
    gc.collect()
    given = [job(name) for name in LIBRARIES]
    before = len(os.listdir("/proc/self/fd"))
    pool: Pool[str] = Pool(str(folder), 2)
    for _ in range(3):
        for each in given:
            pool.put(each)
        work(pool)
    pids = pool.pids
    pool.close(PATIENCE)
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_ctrl_c_on_the_terminal_is_not_for_them(pool: Pool[str], job: Callable[..., Job[str]]) -> None:
    pool.put(job())
    list(pool.feed())
    (pid,) = pool.pids
    assert os.getsid(pid) == pid != os.getsid(0)
    work(pool)


def test_messages_with_descriptors() -> None:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with left, right:
        right.send(b"none")
        assert module.receive(left) == (b"none", [])
        with open("/dev/null") as file:
            socket.send_fds(right, [b"one"], [file.fileno()])
        text, (fd,) = module.receive(left)
        assert text == b"one"
        assert not os.get_inheritable(fd)
        os.close(fd)
        with pytest.raises(BlockingIOError):
            module.receive(left, socket.MSG_DONTWAIT)


def test_what_reads_code_has_no_rights(pool: Pool[str], job: Callable[..., Job[str]], root: None) -> None:
    pool.put(job())
    assert isinstance(work(pool)[0].found, UnwindTable)
    (compiler,) = pool.all_pids - pool.pids
    rows = Path(f"/proc/{compiler}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in rows if ":\t" in line)
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
    assert status["Groups"].split() == []
    assert [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 5
    assert status["NoNewPrivs"] == "1"
    until = time.monotonic() + 30  # it closes the file when it has answered
    while not files_of(compiler) <= {"socket", "/dev/null"}:
        assert time.monotonic() < until, files_of(compiler)


def files_of(pid: int) -> set[str]:
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/{pid}/fd/{fd}").partition(":")[0])
    return found


def test_the_one_without_rights_is_killed(pool: Pool[str], job: Callable[..., Job[str]]) -> None:
    pool.put(job())
    assert len(work(pool)) == 1
    for pid in pool.all_pids - pool.pids:
        os.kill(pid, signal.SIGKILL)
    pool.put(job("libm.so.6"))
    (answer,) = work(pool)
    assert isinstance(answer.found, UnwindTable), answer
    assert len(pool.pids) == 2


def test_as_many_as_there_are_cores_but_few() -> None:
    assert Pool("/x").most == min(4, len(os.sched_getaffinity(0)))
