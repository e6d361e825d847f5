"""The process that holds the probes is asked, left alone when it hangs, and ends with us. With a real kernel:
tests/live/test_func.py; attacks: tests/hostile/test_locks.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from stallscope.tracers.holder import client
from stallscope.tracers.holder.client import HOLDER, Holder, Withheld
from stallscope.tracers.holder.links import Place

NOTHING = 1 << 20
"""Bytes of no program."""


@pytest.fixture
def holder() -> Iterator[Holder]:
    made = Holder()
    yield made
    if made.pid:
        os.kill(made.pid, signal.SIGCONT)
    made.end()


def attach(holder: Holder, count: int = 1) -> object:
    """Attaches something that is no program: the kernel refuses it."""
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        return holder.attach(None, 48, [(fd, 0)], fd, [Place(16 * i, i) for i in range(count)])
    finally:
        os.close(fd)


def begun(holder: Holder) -> None:
    with pytest.raises(OSError, match="refused"):
        attach(holder)


def is_there(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}/exe")


def await_end(pid: int) -> None:
    until = time.monotonic() + 30
    while is_there(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_it_is_started_when_it_is_needed(holder: Holder) -> None:
    assert not holder.pid
    holder.begin()
    assert is_there(holder.pid)


@pytest.mark.parametrize("count", [1, 16_384])
def test_the_kernel_refuses(holder: Holder, count: int) -> None:
    with pytest.raises(OSError, match="refused") as caught:
        attach(holder, count)
    assert not isinstance(caught.value, Withheld)
    assert holder.remarks() == []


def test_one_that_hangs_is_left_alone(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process hangs as in the kernel: it does not answer. It is not asked again, and nobody waits for it."""
    monkeypatch.setattr(client, "_PATIENCE", 0.3)
    begun(holder)
    os.kill(holder.pid, signal.SIGSTOP)
    with pytest.raises(Withheld):
        attach(holder)
    monkeypatch.setattr(client, "_PATIENCE", 300)
    with pytest.raises(Withheld):
        attach(holder)
    holder.close(1)
    said, later = holder.remarks()
    assert said.startswith("a process kept its address space locked")
    assert later == "probes on files will be removed when that ends"
    pid = holder.pid
    holder.end()
    assert is_there(pid)
    os.kill(pid, signal.SIGCONT)
    await_end(pid)


def test_its_start_may_take_longer(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PATIENCE", 0.0)
    monkeypatch.setattr(client, "_START", 300)
    holder.begin()
    os.kill(holder.pid, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (holder.pid, signal.SIGCONT)).start()
    begun(holder)


def test_it_hurries_when_the_command_is_about_to_end(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PATIENCE", 300)
    monkeypatch.setattr(client, "_HURRY", 0.3)
    begun(holder)
    os.kill(holder.pid, signal.SIGSTOP)
    holder.hurry()
    with pytest.raises(Withheld):
        attach(holder)


def test_one_that_works_is_waited_for(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PATIENCE", 0.2)
    monkeypatch.setattr(client, "_LONGEST", 1.0)
    spent = iter(range(1000))
    monkeypatch.setattr(Holder, "_spent", lambda _: (b"%d" % next(spent), b""))
    begun(holder)
    os.kill(holder.pid, signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(Withheld):
        attach(holder)
    assert time.monotonic() - begin >= 1, "until the time for the longest request is over"


def test_whoever_keeps_a_lock_is_named(holder: Holder) -> None:
    holder.locked |= {os.getpid(), *range(1 << 22, (1 << 22) + 4)}
    (said,) = holder.remarks()
    with open("/proc/self/comm") as file:
        assert said.startswith(
            f"process {os.getpid()} ({file.read().strip()}) of user {os.getuid()}, process 4194304, "
        )
    assert " and 2 more kept its address space locked" in said


def test_one_that_has_ended_is_replaced(holder: Holder) -> None:
    holder.begin()
    os.kill(first := holder.pid, signal.SIGKILL)
    os.waitpid(first, 0)
    with pytest.raises(OSError, match="ended"):
        attach(holder)
    with pytest.raises(OSError, match="refused"):
        attach(holder)
    assert holder.pid != first
    assert holder.remarks() == ["the process that held the probes on files has ended, and they with it"]


def test_signals_do_not_end_it(holder: Holder) -> None:
    """The process removes the probes as it ends, which has to be when nobody waits."""
    with pytest.raises(OSError, match="refused"):
        attach(holder)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(holder.pid, number)
    with pytest.raises(OSError, match="refused"):
        attach(holder)


def test_it_ends_with_us_and_has_nothing_of_ours() -> None:
    code = (
        "import os; from stallscope.tracers.holder.client import HOLDER\n"
        "os.set_inheritable(os.dup2(os.open('/dev/zero', os.O_RDONLY), 77), True)\n"
        "HOLDER.begin()\n"
        "try: HOLDER.attach(None, 48, [(0, 0)], 0, [(0, 0, 0)])\n"
        "except OSError: pass\n"
        "of = f'/proc/{HOLDER.pid}'\n"
        "print(HOLDER.pid, max(map(int, os.listdir(f'{of}/fd'))), os.getsid(HOLDER.pid) == HOLDER.pid,"
        " os.readlink(f'{of}/cwd'), flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    told = run.stdout.split()
    assert told[1:] == ["3", "True", "/"], run.stderr
    await_end(int(told[0]))


def test_a_forked_process_has_none_of_it() -> None:
    """The descriptors would keep the process from ending with us."""
    HOLDER.begin()
    pid = HOLDER.pid
    read, write = os.pipe()
    if not (forked := os.fork()):
        os.read(read, 1)
        os._exit(0)
    try:
        HOLDER.end()
        await_end(pid)
    finally:
        os.write(write, b"x")
        os.waitpid(forked, 0)
        os.close(read)
        os.close(write)
