from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from sleepers import GONE, end, sleeper
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.interrupts import Interrupts
from stallscope.tracers.base.launch import Launch
from stallscope.tracers.base.progress import Progress
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import bounds, preparing, session
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.process_events import Exec, Exit, Fork, Mmap
from stallscope.tracers.kernel.records import ExecRecord, RecordSink
from stallscope.tracers.measures.offcpu import FOREVER, OffCpu
from stallscope.tracers.unwind.loader import Loader


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """Sessions whose kernel has no perf events and whose engine does nothing."""

    def refuse() -> NoReturn:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(session, "ProcessEvents", refuse)

    def build(scope: Scope, seeds: list[tuple[int, int]] | None = None) -> Session:
        options = SimpleNamespace(scope=scope, user_stacks=False, has_python=False, collectors=())
        engine = SimpleNamespace(options=options, seed=lambda: seeds or [], consume=lambda: None)
        return Session(engine, None, None)  # type: ignore[arg-type]

    return build


def test_missing_perf_events_are_noted(make: Callable[..., Session]) -> None:
    made = make(Scope())
    assert made._notes == ["no perf events (Permission denied): programs that ended early may lack names"]


def test_life_of_a_child(make: Callable[..., Session]) -> None:
    made = make(Scope())
    mine = os.getpid()
    made._newcomers.take_in([(mine, mine)])
    mapping = Mmap(30, GONE, 0x1000, 0x2000, 0, b"/x\xff", 0, 0, "ab")
    made._following.follow([Fork(10, GONE, mine), Exec(20, GONE, b"ch\xffild"), mapping, Exit(40, GONE)], None)
    child = made._spaces.processes[GONE]
    assert (child.comm, child.current, child.exited) == ("ch\udcffild", 1, True)
    assert len(child.epochs[0]) == len(made._spaces.processes[mine].space) > 0
    (found,) = child.epochs[1]
    assert (found.start, found.end, found.path, found.build_id) == (0x1000, 0x3000, "/x\udcff", "ab")
    assert [made._spaces.epoch(GONE, when) for when in (11, 21)] == [0, 1]


def test_pid_that_is_used_again(make: Callable[..., Session]) -> None:
    made = make(Scope(everything=True))
    life = [Fork(10, GONE, 1), Exec(20, GONE, b"first"), Exit(30, GONE)]
    again = [Fork(110, GONE, 1), Exec(120, GONE, b"second"), Exit(130, GONE)]
    made._following.follow([*life, *again], None)
    spaces = made._spaces
    assert (spaces.number(GONE, 111), spaces.number(GONE, 1 << 62)) == (GONE, GONE)
    first = spaces.number(GONE, 109)
    assert [spaces.processes[number].comm for number in (first, GONE)] == ["first", "second"]
    assert [spaces.processes[number].life for number in (first, GONE)] == [1, 2]
    assert [spaces.epoch(first, when) for when in (11, 21)] == [0, 1]
    assert [spaces.epoch(GONE, when) for when in (111, 121)] == [0, 1]


def test_pid_of_a_traced_process_that_a_stranger_gets(make: Callable[..., Session]) -> None:
    made = make(Scope())
    mine = os.getpid()
    made._newcomers.take_in([(mine, mine)])
    made._following.follow(
        [Fork(10, GONE, mine), Exit(40, GONE), Fork(50, GONE, GONE + 1), Exec(60, GONE, b"stranger")], None
    )
    assert GONE not in made._spaces.processes
    assert made._spaces.processes[made._spaces.number(GONE, 11)].exited
    made._scope.tgids.add(GONE + 2)
    made._following.follow([Fork(60, GONE + 2, mine), Exit(70, GONE + 2), Fork(80, GONE + 2, GONE + 1)], None)
    assert list(made._to_adopt) == [GONE + 2], "it is in the scope"


def test_the_rings_are_read_while_many_processes_are_followed(
    make: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_MEANWHILE", 0.0)
    made, consumed = make(Scope(everything=True)), []
    monkeypatch.setattr(made._engine, "consume", lambda: consumed.append(len(made._spaces.processes)), raising=False)
    forks = [Fork(10 + i, GONE + i, 1) for i in range(3)]
    monkeypatch.setattr(made, "_process_events", SimpleNamespace(poll=lambda: forks, close=lambda: None))
    made._follow_processes()
    assert consumed == [0, 1, 2]
    polled: list[object] = []
    monkeypatch.setattr(made._engine, "counters", dict, raising=False)
    monkeypatch.setattr(made, "_bounds", SimpleNamespace(poll=polled.append))
    made._follow_processes()
    assert (len(consumed), polled) == (6, [{}] * 3)


def test_accounts_are_added_up_once_their_process_is_known(
    make: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events of a process may come after the account of its thread."""
    made, asked = make(Scope(everything=True)), []
    folding = SimpleNamespace(poll=lambda drain, ours, before: asked.append(before))
    monkeypatch.setattr(made._engine, "counters", dict, raising=False)
    monkeypatch.setattr(made, "_folding", folding)
    bounds: Any = SimpleNamespace(poll=lambda counters: None, drain=lambda: None)
    part: Any = SimpleNamespace()
    for events, announced in ((None, 0), (30, 0), (30, 20), (30, 40), (None, 40)):
        monkeypatch.setattr(made, "_process_events", events and SimpleNamespace(until=events))
        monkeypatch.setattr(
            made, "intervals", SimpleNamespace(due=lambda: 0, announced=announced, ours=set(), beside=set())
        )
        assert made._keep_within(bounds, RecordSink(), part, None) is part
    assert asked == [FOREVER, 30, 20, 30, 40]


def test_strangers_are_left_alone(make: Callable[..., Session]) -> None:
    events = [Fork(10, GONE + 1, GONE), Exec(20, GONE, b"x"), Mmap(30, GONE, 0, 1, 0, b"/x", 0, 0, ""), Exit(40, GONE)]
    made = make(Scope())
    made._following.follow(events, None)
    assert made._spaces.processes == {}
    everything = make(Scope(everything=True))
    everything._following.follow(events, None)
    assert set(everything._spaces.processes) == {GONE, GONE + 1}


def test_child_of_a_process_that_is_not_read_yet(make: Callable[..., Session]) -> None:
    made = make(Scope(everything=True))
    mine = os.getpid()
    made._to_adopt.append(mine)
    made._following.follow([Fork(time.monotonic_ns(), GONE, mine)], None)
    assert mine not in made._to_adopt
    assert len(made._spaces.processes[GONE].space) == len(made._spaces.processes[mine].space) > 0


def test_without_perf_events_the_probes_tell_of_execs(make: Callable[..., Session]) -> None:
    made, sink = make(Scope()), RecordSink()
    child = sleeper()
    try:
        sink._new_execs.append(ExecRecord(child.pid, time.monotonic_ns(), 0, 1, 1))
        made._follow_without_events(sink)
        assert made._spaces.epoch(child.pid, time.monotonic_ns()) == made._spaces.processes[child.pid].current == 1
        assert len(made._spaces.processes[child.pid].space) > 0
    finally:
        end(child)


def test_newcomers_are_taken_in_and_the_gone_forgotten(make: Callable[..., Session]) -> None:
    child = sleeper()
    scope = Scope(name=re.compile("^sleep$"), tgids={GONE})
    made = make(scope, [(child.pid, child.pid)])
    try:
        while child.pid not in scope.tgids:
            made._poll(RecordSink())
        assert GONE not in scope.tgids
        assert len(made._spaces.processes[child.pid].space) > 0
        assert made._newcomers._next > time.monotonic() - 60
    finally:
        end(child)


def test_looking_for_newcomers_takes_a_tenth_of_the_time_at_most(
    make: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope(name=re.compile("x"))
    made = make(scope)
    looks: list[int] = []
    clock = 0.0

    def newcomers() -> set[int]:
        nonlocal clock
        looks.append(1)
        clock += 2.0
        return set()

    monkeypatch.setattr(scope, "newcomers", newcomers)
    monkeypatch.setattr(session.time, "monotonic", lambda: clock)
    for _ in range(200):
        made._poll(RecordSink())
        clock += 0.5
    assert 2 * len(looks) <= 0.1 * clock + 2
    assert len(looks) > 2


@pytest.fixture
def cold(root: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache."""
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_duration_begins_with_the_trace(cold: Path) -> None:
    child = sleeper()
    began: list[float] = []
    try:
        before = time.monotonic_ns()
        capture = trace(Scope(tgids={child.pid}), None, 0.25, on_poll=lambda *_: began.append(time.monotonic()))
    finally:
        end(child)
    assert len(list(cold.iterdir())) >= 3, "it waited for the tables of the program, ld.so and the C library"
    tables = max(path.stat().st_mtime_ns for path in cold.iterdir())
    assert before < capture.began
    assert tables <= time.time_ns() - (time.monotonic_ns() - capture.began)
    assert capture.stopped - capture.began >= 250_000_000
    assert capture.tables is not None
    assert capture.tables.late == frozenset()
    assert capture.tables.compiled >= 3


def test_targets_that_end_while_tables_are_compiled(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child, other = sleeper(), sleeper()
    monkeypatch.setattr(preparing.Preparation, "wait", lambda *_: end(child))
    scope = Scope(tgids={child.pid, other.pid})
    try:
        capture = trace(scope, None, 0.1)
        assert {record.thread.key.tgid for record in capture.threads} == {other.pid}
        assert scope.tgids == {other.pid}, "the id may be another process's by now"
        monkeypatch.setattr(preparing.Preparation, "wait", lambda *_: end(other))
        with pytest.raises(StallscopeError, match="none of these threads can be traced: they have ended"):
            trace(Scope(tgids={other.pid}), None, 0.1)
    finally:
        end(child)
        end(other)


def test_processes_that_compile_for_us_are_not_told(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace is of the whole host, in which these processes are."""
    monkeypatch.setattr(preparing, "BRIEF", 0.0)
    seen: set[int] = set()
    made = Loader.pids.fget
    assert made is not None
    monkeypatch.setattr(Loader, "pids", property(lambda self: seen.update(made(self)) or made(self)))  # type: ignore[func-returns-value]
    capture = trace(Scope(everything=True), None, 1.5)
    assert seen
    told = {row.origin.tgid for row in capture.rows} | {record.thread.key.tgid for record in capture.threads}
    assert len(told) > 2
    assert not told & seen


def test_a_command_is_not_begun_when_the_end_is_asked_for(cold: Path, tmp_path: Path) -> None:
    launch = Launch(["touch", str(tmp_path / "touched")])
    sink = RecordSink()
    engine = Probes(ProbeOptions(Scope(), collectors([OffCpu()])), sink)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(StallscopeError, match="before the command was started") as error:
                Session(engine, launch, None).run(sink, None, interrupts)
            assert error.value.exit_code == 130
    finally:
        engine.close()
        launch.stop()
    launch.wait()
    assert not (tmp_path / "touched").exists()


def trace(scope: Scope, launch: Launch | None, duration: float | None, **hooks: Callable[..., None]) -> session.Capture:
    sink = RecordSink()
    engine = Probes(ProbeOptions(scope, collectors([OffCpu()])), sink)
    try:
        return Session(engine, launch, duration).run(sink, hooks.get("on_poll"))
    finally:
        engine.close()
        if launch:
            launch.stop()


def test_what_follows_the_trace_is_told(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    progress = Progress()
    monkeypatch.setattr(progress, "ended", lambda *, stacks: told.append(f"ended {stacks > 0}"))
    sink = RecordSink()
    engine = Probes(ProbeOptions(Scope(everything=True), collectors([OffCpu()])), sink)
    try:
        Session(engine, None, 0.3).run(sink, progress=progress, wait=False)
    finally:
        engine.close()
    assert told == ["ended True"]


def test_command_is_traced_from_exec_to_exit(root: None) -> None:
    launch = Launch(["sh", "-c", "sleep 0.05; exit 3"])
    capture = trace(Scope(), launch, None)
    assert capture.exit_status == 3
    (main,) = [record for record in capture.threads if record.thread.key.tid == launch.pid]
    assert (main.exited, main.comm) == (True, b"sh")
    assert capture.began < main.thread.start < main.end <= capture.stopped
    names = {p.comm for p in capture.spaces.processes.values()}
    assert {"sh", "sleep"} <= names
    (nap,) = [r for r in capture.threads if r.comm == b"sleep"]
    assert nap.thread.blocked[1] >= 50_000_000
    assert capture.lost_process_events == 0
    assert capture.notes == []
    assert abs(capture.wall_ns - time.time_ns()) < 60e9


def test_duration_ends_it(root: None) -> None:
    child = sleeper()
    polls: list[tuple[int, int, int]] = []
    try:
        capture = trace(Scope(tgids={child.pid}), None, 0.25, on_poll=lambda *counts: polls.append(counts))
    finally:
        end(child)
    assert capture.stopped - capture.began >= 250_000_000
    assert polls[-1][0] == 1
    assert polls[-1][2] == 0
    (record,) = capture.threads
    assert not record.exited
    assert sum(record.thread.blocked) == 0  # all of it in the interval that is still open


def test_interrupt_ends_it_with_a_result(root: None, ctrl_c: None) -> None:
    child = sleeper()
    try:
        capture = trace(Scope(tgids={child.pid}), None, None, on_poll=lambda *_: os.kill(os.getpid(), signal.SIGINT))
    finally:
        end(child)
    assert [record.thread.key.tid for record in capture.threads] == [child.pid]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("looks", [1, 3, 10_000])
def test_a_thread_that_exits_is_waited_for_but_not_for_ever(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread's last record comes with the ``looks``-th look at the ring."""
    monkeypatch.setattr(bounds, "_LAST_SWITCH", 0.1)
    sink, seen = SimpleNamespace(exiting=1), []

    def consume() -> None:
        seen.append(time.monotonic())
        sink.exiting = int(len(seen) < looks)

    bounds.await_last_switches(SimpleNamespace(consume=consume), sink)  # type: ignore[arg-type]
    if looks < 100:
        assert len(seen) == looks
    else:
        assert seen[-1] - seen[0] >= 0.09
        assert sink.exiting
