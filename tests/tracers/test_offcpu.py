from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.errors import StallscopeError
from stallscope.tracers import offcpu
from stallscope.tracers.core import privilege
from stallscope.tracers.core.engine import OFF_CPU_PROBES, EngineOptions
from stallscope.tracers.core.records import STATES
from stallscope.tracers.offcpu import _state_mask, main

FOREVER = (1 << 64) - 1
ALL = (1 << 32) - 1


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[EngineOptions, tuple[str, ...], float | None]]:
    """What was to be recorded; nothing is."""
    seen: list[tuple[EngineOptions, tuple[str, ...], float | None]] = []

    def record(*arguments: Any, quiet: bool) -> None:
        seen.append(arguments)
        raise StallscopeError("recorded")

    monkeypatch.setattr(offcpu, "record", record)
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
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["-p", "4711", "--lines"]) == 1
    cause, remedy = capsys.readouterr().err.splitlines()
    assert cause == "trace-offcpu: --lines needs llvm-symbolizer or addr2line"
    assert "leave out --lines" in remedy
    assert recorded == []


def test_defaults(recorded: list[Any]) -> None:
    assert main(["-p", "4711"]) == 1
    ((engine, command, duration),) = recorded
    assert engine.probes == OFF_CPU_PROBES
    assert engine.knobs == {"min_wait": 0, "max_wait": FOREVER, "state_mask": ALL}
    assert engine.scope.pids == [4711]
    assert engine.scope.children
    assert (command, duration) == ((), None)


def test_all_options_arrive(recorded: list[Any]) -> None:
    filters = ["--min-block", "10", "--max-block", "1000.5", "--state", "uninterruptible"]
    kernel_side = ["-U", "--table-size", "4096", "--buffer", "1"]
    main(["-d", "2.5", "--no-children", *filters, *kernel_side, "--", "./train", "-p", "1"])
    ((engine, command, duration),) = recorded
    assert engine.knobs == {"min_wait": 10_000, "max_wait": 1_000_500, "state_mask": 1 << 2}
    assert (engine.user_stacks, engine.kernel_stacks) == (True, False)
    assert (engine.table_entries, engine.buffer_bytes) == (4096, 1 << 20)
    assert not engine.scope.children
    assert (command, duration) == (("./train", "-p", "1"), 2.5)


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
    ((engine, _, _),) = recorded
    assert engine.knobs["state_mask"] == mask


def test_every_state_that_is_not_new_can_be_asked_for() -> None:
    assert set(offcpu._STATE_NAMES) - {"blocked", "runnable", "runnable-woken", "runnable-preempted"} == {
        state for state in STATES if state not in ("new", "preempted")
    }
    assert _state_mask(frozenset()) == ALL


def test_states_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    from stallscope.tracers.core import assemble

    filters: list[assemble.Filter] = []
    namings: list[assemble.Naming] = []

    def off_cpu_profile(_: object, chosen: assemble.Filter, naming: assemble.Naming) -> None:
        filters.append(chosen)
        namings.append(naming)
        raise StallscopeError("assembled")

    monkeypatch.setattr(offcpu, "record", lambda *_, quiet: None)
    monkeypatch.setattr(assemble, "off_cpu_profile", off_cpu_profile)
    main(["-a", "--state", "runnable", "--state", "idle", "--min-block", "1", "--max-block", "2"])
    main(["-a", "--container-pid"])
    assert namings == [assemble.Naming(), assemble.Naming(container_pids=True)]
    assert filters == [
        assemble.Filter(1000, 2000, frozenset({"runnable-woken", "runnable-preempted", "idle"})),
        assemble.Filter(0, FOREVER, None),
    ]
