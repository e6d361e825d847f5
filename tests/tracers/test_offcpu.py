from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers import offcpu
from stallscope.tracers.base import privilege
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.kernel import libbpf
from stallscope.tracers.kernel.records import RUNNABLE, STATES, WaitSum, pack_thread, parse_thread
from stallscope.tracers.kernel.shapes import RAW_SHAPES
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.offcpu import main

FOREVER = (1 << 64) - 1
ALL = (1 << 32) - 1


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Ebpf, Request]]:
    """Requests to trace; nothing is traced."""
    seen: list[tuple[Ebpf, Request]] = []

    def trace(engine: Ebpf, request: Request) -> None:
        seen.append((engine, request))
        raise StallscopeError("recorded")

    monkeypatch.setattr(Ebpf, "trace", trace)
    return seen


def test_without_a_scope_it_shows_examples(recorded: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("trace-offcpu: say what to trace: ")
    examples = [line for line in lines if line.strip().startswith("sudo trace-offcpu ")]
    assert len(examples) == 3
    assert recorded == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "1", "-U", "-K"],
        ["-p", "1", "--state", "sleeping"],
        ["-n", "("],
        ["-a", "-p", "1"],
        ["-a", "--", "true"],
        ["-p", "one"],
        ["-p", "1", "-d", "0"],
        ["-p", "1", "--min-block", "-1"],
        ["-p", "1", "--min-block", "nan"],
        ["-p", "1", "--max-block", "x"],
        ["-p", "1", "--min-block", "10", "--max-block", "9.9"],
        ["-p", "1", "-o", "x.doc"],
        ["-p", "1", "-o", "x.svg", "-o", "./x.svg"],
        ["-p", "1", "--nonsense"],
    ],
)
def test_wrong_usage(
    arguments: list[str], recorded: list[Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out = capsys.readouterr()
    assert len(out.err.splitlines()) == 2
    assert out.err.startswith("trace-offcpu: ")
    assert out.out == ""
    assert recorded == []
    assert list(folder.iterdir()) == []


def test_output_that_exists_is_noticed_before_the_trace(
    recorded: list[Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.svg").touch()
    assert main(["-p", "1", "-o", "x.svg"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "trace-offcpu: x.svg exists",
        "choose another name, or overwrite it with --force",
    ]
    assert recorded == []
    main(["-p", "1", "-o", "x.svg", "--force"])
    assert len(recorded) == 1


def test_not_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    assert main(["-a", "-d", "1"]) == 1
    cause, remedy = capsys.readouterr().err.splitlines()
    assert cause.startswith("trace-offcpu: tracing needs ")
    assert remedy.startswith("run it as `sudo ")


def test_lines_without_a_tool(
    monkeypatch: pytest.MonkeyPatch, recorded: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(helpers, "FOLDERS", ())
    assert main(["-p", "4711", "--lines"]) == 1
    cause, remedy = capsys.readouterr().err.splitlines()
    assert cause == "trace-offcpu: --lines needs llvm-symbolizer or addr2line"
    assert "leave out --lines" in remedy
    assert recorded == []


def test_defaults(recorded: list[Any]) -> None:
    assert main(["-p", "4711"]) == 1
    ((engine, request),) = recorded
    assert engine == Ebpf()
    assert request.measures == (OffCpu(),)
    assert request.scope.pids == [4711]
    assert request.scope.children
    assert request == Request(request.scope, (OffCpu(),), "Off-CPU time")


def test_all_options_arrive(recorded: list[Any]) -> None:
    filters = ["--min-block", "10", "--max-block", "1000.5", "--state", "uninterruptible"]
    kernel_side = ["-U", "--table-size", "4096", "--buffer", "1", "--unwind-memory", "7", "--btf", "/btf"]
    main(["-d", "2.5", "--no-children", "--container-pid", *filters, *kernel_side, "--", "./train", "-p", "1"])
    ((engine, request),) = recorded
    assert request.measures == (OffCpu(10_000, 1_000_500, frozenset({"uninterruptible"})),)
    assert engine == Ebpf(True, False, Path("/btf"), 4096, 1 << 20, 7 << 20)
    assert not request.scope.children
    assert (request.command, request.duration) == (("./train", "-p", "1"), 2.5)
    assert request.container_pids


def bits(*states: str) -> int:
    return sum(1 << STATES.index(state) for state in states)


@pytest.mark.parametrize(
    ("states", "mask"),
    [
        ([], ALL),
        (["interruptible"], bits("interruptible")),
        (["interruptible", "stopped"], bits("interruptible", "stopped")),
        (["blocked"], bits("interruptible", "uninterruptible", "stopped", "traced", "idle", "other")),
        (["runnable-preempted"], bits("preempted")),
        (["runnable-preempted", "idle"], bits("preempted", "idle")),
        (["runnable-woken"], ALL),  # the second part of any wait
        (["runnable"], ALL),
        (["stopped", "runnable"], ALL),
    ],
)
def test_states(states: list[str], mask: int, recorded: list[Any]) -> None:
    main(["-a", *(argument for state in states for argument in ("--state", state))])
    ((_, request),) = recorded
    assert collectors(request.measures)[0].knobs()["state_mask"] == mask


def test_every_state_that_is_not_new_can_be_asked_for() -> None:
    assert set(offcpu._STATE_NAMES) - {"blocked", "runnable", "runnable-woken", "runnable-preempted"} == {
        state for state in STATES if state not in ("new", "preempted")
    }


@pytest.mark.parametrize(("option", "wait"), [([], True), (["--no-wait"], False)])
def test_whether_tables_are_waited_for(option: list[str], wait: bool, recorded: list[Any]) -> None:
    main(["-p", "1", *option])
    assert [request.wait for _, request in recorded] == [wait]


def test_a_switch_that_began_before_its_thread_was_taken_into_the_scope(root: None) -> None:
    asked = ProbeOptions(Scope(everything=True), collectors([OffCpu()]), user_stacks=False, kernel_stacks=False)
    loaded = probes.load_shape(asked, RAW_SHAPES[0])
    try:
        tid, start = 0, time.monotonic_ns() + 10**12
        threads = loaded.find_map("thread_hash")
        threads.update(tid.to_bytes(4, "little"), pack_thread((tid, tid), tid, "preempted", RUNNABLE, start))
        loaded.set_variable("run", 1)
        # Null pointers are read as zeros: a switch of thread 0 to itself.
        context = (ctypes.c_uint64 * 4)()
        size = ctypes.sizeof(libbpf.TestRunOptions)
        given = libbpf.TestRunOptions(sz=size, ctx_in=ctypes.addressof(context), ctx_size_in=ctypes.sizeof(context))
        program = libbpf.library().bpf_program__fd(loaded.programs["sched_switch_raw"]._pointer)
        assert libbpf.library().bpf_prog_test_run_opts(program, ctypes.byref(given)) == 0
        ((_, value),) = threads.items()
        thread = parse_thread(value)
        assert thread.sum == WaitSum(2, 0, 0, 0, 0, 0, 0)
        assert (thread.since, thread.on_cpu, thread.runnable) == (start, 0, 0)
    finally:
        loaded.close()
