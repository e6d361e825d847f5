from __future__ import annotations

import io
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.interrupts import Interrupts
from stallscope.tracers.base.progress import Progress
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import preparing as module
from stallscope.tracers.engines.ebpf.measures.protocol import Collector
from stallscope.tracers.engines.ebpf.preparing import Preparation, expect_files, line
from stallscope.tracers.images.maps import AddressSpace, Mapping
from stallscope.tracers.unwind.compiling import State


class Tracer:
    """Stands for the tables, the loader and the processes: notes what it was asked for."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.processes: dict[int, object] = {}
        self.maps: dict[int, list[Mapping]] = {}
        self.uids: dict[int, int] = {}
        self.on_adopt: Callable[[], None] = lambda: None
        self.left = 0
        """Number of times that it is not ready yet."""
        self.state = State(12, 5, "/x/lib\x1b[2J.so")
        self.pids = {99}
        self.loader = self
        self.compiles_only = True
        self.on_poll: Callable[[], None] = lambda: None

    def adopt(self, pid: int) -> object | None:
        self.told.append(("adopt", pid))
        if pid not in self.maps:
            return None
        uid = self.uids.get(pid, 0)
        process = self.processes[pid] = SimpleNamespace(space=AddressSpace(self.maps[pid]), uid=uid)
        self.on_adopt()
        return process

    def most_files(self) -> str:
        return "; process 5 of uid 7 maps many"

    def read(self, pid: int) -> bool:
        self.told.append(("read", pid))
        return True

    def expect(self, pid: int, mapping: Mapping, processes: int) -> None:
        self.told.append((mapping.path, processes))

    def expect_vdso(self) -> None:
        self.told.append(("vdso", None))

    def expect_file(self, path: str) -> None:
        self.told.append(("file", path))

    @property
    def idle(self) -> bool:
        return not self.left

    def wait(self, seconds: float) -> None:
        assert 0 < seconds <= module._STEP
        self.left = max(self.left - 1, 0)

    def poll(self) -> None:
        self.on_poll()

    def what(self, *kinds: str) -> list[Any]:
        return [value for kind, value in self.told if kind in kinds]


@pytest.fixture
def tracer() -> Tracer:
    return Tracer()


def preparation(tracer: Tracer, scope: Scope | None = None, reading: float = 0) -> Preparation:
    made = Preparation(tracer, tracer, scope or Scope(), lambda: None)  # type: ignore[arg-type]
    made._end_of_reading = time.monotonic() + reading
    return made


def silent(_line: str) -> None:
    pass


def soon() -> float:
    return time.monotonic() + 60


def mapped(start: int, path: str, inode: int) -> Mapping:
    return Mapping(start, start + 4096, 0, path, 1, inode)


def test_what_a_command_will_map(tracer: Tracer, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexec ls\n")
    script.chmod(0o755)
    preparation(tracer).command([str(script)], os.environ)
    files = tracer.what("file")
    assert tracer.told[0] == ("vdso", None)
    assert os.path.realpath("/bin/sh") in files
    assert os.path.realpath("/bin/ls") in files
    assert any(re.search(r"/libc\.so\.6$", path) for path in files)
    assert any("/ld-linux" in path for path in files)
    assert len(files) == len(set(files))
    before = len(tracer.told)
    preparation(tracer).command(["no-such-command"], os.environ)
    assert tracer.told[before:] == [("vdso", None)]


def test_what_a_command_may_open(tracer: Tracer) -> None:
    made = preparation(tracer)
    made.modules = ["libz.so.1", "/no/such/library.so"]
    usual = preparation(tracer)
    usual.command(["/bin/ls"], os.environ)
    before = len(tracer.what("file"))
    made.command(["/bin/ls"], os.environ)
    more = set(tracer.what("file")[before:]) - set(tracer.what("file")[:before])
    assert {re.sub(r"[.\d]*$", "", os.path.basename(path)) for path in more} == {"libz.so"}


def test_measures_are_told_of_both() -> None:
    seen: dict[str, bool] = {}

    class Listening(Collector):
        modules = ("libz.so.1",)

        def expect(self, path: str, *, is_program: bool) -> None:
            seen[path] = is_program

    expect_files(["/bin/ls"], os.environ, [Listening()])  # type: ignore[abstract]
    assert [path for path, is_program in seen.items() if is_program] == [os.path.realpath("/bin/ls")]
    assert any("/libz.so" in path for path in seen)
    assert any("/libc.so" in path for path in seen)


def test_targets_are_read_and_waited_for(tracer: Tracer) -> None:
    mine = os.getpid()
    tracer.maps = {mine: [], 7: []}
    tracer.left = 3
    shown: list[str] = []
    made = preparation(tracer, Scope(tgids={7, 8}, tids={mine, 1 << 22}))
    made.targets()
    with Interrupts() as interrupts:
        made.wait(soon(), interrupts, shown.append)
    assert tracer.what("read") == sorted([mine, 7]), "process 8 is gone"
    assert tracer.left == 0
    assert shown == ["compiling unwind tables: 5 of 12 files, lib\\x1b[2J.so …"] * 3


def test_nothing_is_shown_while_nothing_is_compiled(tracer: Tracer) -> None:
    tracer.left, tracer.state = 3, State(3, 0, "")
    shown: list[str] = []
    with Interrupts() as interrupts:
        preparation(tracer).wait(soon(), interrupts, shown.append)
    assert shown == []


def test_the_wait_has_an_end(tracer: Tracer) -> None:
    tracer.left = 1 << 30
    begin = time.monotonic()
    with Interrupts() as interrupts:
        preparation(tracer).wait(begin + 0.05, interrupts, silent)
        assert tracer.left < 1 << 30
        left = tracer.left
        preparation(tracer, Scope(tgids={7})).wait(begin - 1, interrupts, silent)
        assert tracer.left == left, "--no-wait"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(tracer: Tracer, number: int) -> None:
    tracer.left = 1 << 30
    tracer.on_poll = lambda: os.kill(os.getpid(), number)
    with Interrupts() as interrupts:
        preparation(tracer).wait(soon(), interrupts, silent)
        assert interrupts.take() == (number == signal.SIGINT)


def test_what_was_compiled_before_is_waited_for(tracer: Tracer) -> None:
    tracer.left, tracer.compiles_only = 1 << 30, False
    with Interrupts() as interrupts:
        begin = time.monotonic()
        preparation(tracer, reading=0.2).wait(begin, interrupts, silent)
        assert time.monotonic() >= begin + 0.2, "but not for ever"
        left = tracer.left

        def finish() -> None:
            tracer.compiles_only = tracer.left < left - 3

        tracer.on_poll = finish
        preparation(tracer, reading=60).wait(time.monotonic() - 1, interrupts, silent)
    assert left - 10 < tracer.left < left - 3


def test_what_most_processes_map_comes_first(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    own, shared, library = mapped(0, "/own", 1), mapped(8192, "/shared", 2), mapped(16384, "/library", 3)
    anonymous = Mapping(1 << 20, (1 << 20) + 4096)
    tracer.maps = {
        5: [own, library, anonymous],
        6: [shared, library],
        7: [shared, library, library._replace(start=1 << 30, end=1 << 31)],
    }
    monkeypatch.setattr(module.procfs, "pids", lambda: iter([7, os.getpid(), 6, 9, 5]))
    made = preparation(tracer, Scope(everything=True))
    with Interrupts() as interrupts:
        made.everything(soon(), interrupts)
    assert tracer.what("adopt") == [5, 6, 7, 9]
    assert tracer.told[4:] == [("/library", 3), ("/shared", 2), ("/own", 1)]
    with Interrupts() as interrupts:
        made.wait(soon(), interrupts, silent)
    assert tracer.what("read") == [5, 6, 7]


def test_the_whole_host_is_read_for_so_long_only(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.procfs, "pids", lambda: iter([5, 6]))
    with Interrupts() as interrupts:
        preparation(tracer, Scope(everything=True)).everything(time.monotonic() - 1, interrupts)
    assert tracer.told == []


def test_a_user_with_very_many_files_does_not_delay_the_start(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of that user are read when the trace runs; those of others, and of root, before."""
    monkeypatch.setattr(module, "OF_USER", 2)
    monkeypatch.setattr(module.procfs, "pids", lambda: iter([5, 6, 7, 8]))
    tracer.uids = {5: 1000, 6: 1000, 8: 1001}
    for pid, count in ((5, 2), (6, 1), (7, 3), (8, 1)):
        tracer.maps[pid] = [mapped(8192 * i, f"/{pid}.{i}", 10 * pid + i) for i in range(count)]
    made = preparation(tracer, Scope(everything=True))
    with Interrupts() as interrupts:
        made.everything(soon(), interrupts)
        made.wait(soon(), interrupts, silent)
    assert tracer.what("adopt") == [5, 6, 7, 8]
    assert not tracer.what("/6.0")
    assert tracer.what("/5.1", "/7.2", "/8.0") == [1, 1, 1]
    assert tracer.what("read") == [5, 7, 8]


def test_ctrl_c_ends_the_reading(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.procfs, "pids", lambda: iter([5, 6]))
    tracer.maps = {5: [mapped(0, "/a", 1), mapped(8192, "/b", 2)], 6: []}
    tracer.on_adopt = lambda: os.kill(os.getpid(), signal.SIGINT)
    made = preparation(tracer, Scope(everything=True))
    with Interrupts() as interrupts, pytest.raises(StallscopeError) as caught:
        made.run(None, interrupts, None)
    assert tracer.told == [("adopt", 5)]
    assert caught.value.cause.endswith("mapped files were still being read; process 5 of uid 7 maps many")


def test_very_many_files_are_not_waited_for(tracer: Tracer) -> None:
    tracer.left = 1 << 30
    tracer.compiles_only = False
    tracer.state = State(module.AWAITED + 1, 5, "/x")
    made = preparation(tracer, Scope(tgids={5}), reading=60)
    made._began = time.monotonic() - module.BRIEF
    with Interrupts() as interrupts:
        made.wait(soon(), interrupts, silent)
    assert tracer.left == 1 << 30


def test_who_comes_into_the_scope_meanwhile_is_waited_for(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope(name=re.compile("x"), tgids={5})
    monkeypatch.setattr(scope, "newcomers", lambda: {6} - scope.tgids)
    tracer.maps = {5: [], 6: []}
    made = preparation(tracer, scope)
    made.targets()
    with Interrupts() as interrupts:
        made.wait(soon(), interrupts, silent)
    assert tracer.what("read") == [5, 6]
    assert scope.tgids == {5, 6}
    assert scope.ours == {99}


def test_many_processes_are_read_a_slice_at_a_time(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    tracer.maps = {pid: [] for pid in range(1, 200)}
    monkeypatch.setattr(tracer, "read", lambda pid: time.sleep(0.01))
    polls: list[int] = []
    tracer.on_poll = lambda: polls.append(1)
    made = preparation(tracer, Scope(tgids=set(tracer.maps)))
    made.targets()
    with Interrupts() as interrupts:
        made.wait(time.monotonic() + 0.3, interrupts, silent)
    assert len(polls) >= 3
    assert made._to_take


def test_line() -> None:
    assert (
        line(State(37, 12, "/usr/lib/libtorch_cpu.so")) == "compiling unwind tables: 12 of 37 files, libtorch_cpu.so …"
    )
    assert line(State(1, 0, "[vdso]")) == "compiling unwind tables: 0 of 1 file, [vdso] …"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def interrupted(tracer: Tracer) -> Tracer:
    """The tracer has tables to wait for, and gets Ctrl-C meanwhile."""
    tracer.left = 1 << 30
    tracer.on_poll = lambda: os.kill(os.getpid(), signal.SIGINT)
    return tracer


def test_ctrl_c_begins_the_trace_for_who_was_told(interrupted: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with Interrupts() as interrupts:
        preparation(interrupted).run(None, interrupts, Progress(file=Terminal()))
        assert not interrupts.requested


@pytest.mark.parametrize("progress", [None, Progress(file=io.StringIO())], ids=["none", "no terminal"])
def test_ctrl_c_ends_it_for_others(interrupted: Tracer, progress: Progress | None) -> None:
    with Interrupts() as interrupts, pytest.raises(StallscopeError) as caught:
        preparation(interrupted).run(None, interrupts, progress)
    assert caught.value.cause.startswith("ended by SIGINT before the trace began")
    assert "--no-wait" in caught.value.remedy
    assert caught.value.exit_code == 130


def test_a_request_to_end_is_left_to_the_trace(interrupted: Tracer) -> None:
    interrupted.on_poll = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with Interrupts() as interrupts:
        preparation(interrupted).run(None, interrupts, None)
        assert interrupts.requested
        told = list(interrupted.told)
        preparation(interrupted, Scope(tgids={7})).run(None, interrupts, None)
        assert interrupted.told == told, "it came before"


def test_ctrl_c_where_nothing_is_waited_for_ends_the_trace(interrupted: Tracer) -> None:
    with Interrupts() as interrupts:
        Preparation(interrupted, interrupted, Scope(), lambda: None, wait=False).run(None, interrupts, None)  # type: ignore[arg-type]
        assert interrupts.requested
