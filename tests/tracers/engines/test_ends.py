"""The end of what is traced."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import threading
import time

import pytest
from sleepers import GONE, end, sleeper
from stallscope.tracers.base.launch import Launch
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ends import Ends


def test_ends_with_the_last_process() -> None:
    one, two = sleeper(), sleeper()
    ends = Ends(Scope(tgids={one.pid, two.pid}), None)
    read, write = os.pipe()
    try:
        assert not ends.reached()
        one.kill()
        ends.wait(read, 10)
        assert not ends.reached()
        begin = time.monotonic()
        ends.wait(read, 0.05)  # the one that is gone does not wake us again
        assert time.monotonic() - begin >= 0.049
        two.kill()  # nobody has reaped it
        ends.wait(read, 10)
        assert ends.reached()
        assert ends.reached()
    finally:
        end(one)
        end(two)
        ends.close()
        os.close(read)
        os.close(write)


def test_who_has_ended_before_the_trace_begins() -> None:
    """A process may end while tables are waited for, and its id become another's."""
    one, two = sleeper(), sleeper()
    ends = Ends(Scope(tgids={one.pid, two.pid}, tids={GONE}), None)
    try:
        assert ends.gone() == {GONE}
        end(one)
        assert ends.gone() == {one.pid}
        assert ends.gone() == set()
        assert not ends.reached()
    finally:
        end(one)
        end(two)
        ends.close()


def test_wait_returns_on_a_signal_or_in_time() -> None:
    ends = Ends(Scope(everything=True), None)
    read, write = os.pipe()
    try:
        begin = time.monotonic()
        ends.wait(read, 0.02)
        ends.wait(read, -1)
        assert time.monotonic() - begin < 5
        os.write(write, b"\2")
        ends.wait(read, 60)
        assert not ends.reached()
    finally:
        os.close(read)
        os.close(write)


def test_ends_with_a_thread() -> None:
    ready, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (ready.set(), leave.wait()))
    thread.start()
    ready.wait()
    assert thread.native_id
    ends = Ends(Scope(tids={thread.native_id}), None)
    try:
        assert not ends.reached()
    finally:
        leave.set()
        thread.join()
    while os.path.exists(f"/proc/{thread.native_id}"):
        time.sleep(0.001)
    assert ends.reached()
    ends.close()


def test_processes_that_are_gone_before() -> None:
    child = sleeper()
    end(child)
    ends = Ends(Scope(tgids={child.pid}), None)
    assert ends.reached()
    ends.close()


@pytest.mark.parametrize("scope", [Scope(everything=True), Scope(name=re.compile("x"), tgids={1 << 22}), Scope()])
def test_no_end(scope: Scope) -> None:
    ends = Ends(scope, None)
    assert not ends.reached()
    ends.close()


def test_ends_with_the_command() -> None:
    launch = Launch(["true"])
    ends = Ends(Scope(), launch)
    read, write = os.pipe()
    try:
        assert not ends.reached()
        launch.go()
        ends.wait(read, 10)
        assert ends.reached()
        assert launch.poll() == 0
    finally:
        ends.close()
        launch.stop()
        os.close(read)
        os.close(write)


def test_hundreds_of_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """select() takes no descriptor above 1023, and a big machine has one for every core and every library."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 4096), limits[1]))
    open_pidfd = os.pidfd_open

    def open_high(pid: int) -> int:
        low = open_pidfd(pid)
        high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 2000)
        os.close(low)
        return high

    monkeypatch.setattr(os, "pidfd_open", open_high)
    child = sleeper()
    ends = Ends(Scope(tgids={child.pid}), None)
    read, write = os.pipe()
    try:
        ends.wait(read, 0)
        assert not ends.reached()
        child.kill()
        ends.wait(read, 10)
        assert ends.reached()
    finally:
        end(child)
        ends.close()
        os.close(read)
        os.close(write)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
