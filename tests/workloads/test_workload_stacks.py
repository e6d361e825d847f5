"""The stacks of the workloads, as debuggers see them, are those that they were written for."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from paths import PATHS, follows
from runner import FOLDER, SettledWorkload, Workload, run
from stacks_truth import STARTS, differences, eu_stacks, gdb_stacks, plain
from stallscope.converters.model import Frame, Module
from truths import by_function


@pytest.mark.parametrize("program", PATHS)
def test_threads_stand_where_the_truth_says(program: str) -> None:
    """Stacks are read by eu-stack, which needs no frame pointers."""
    with SettledWorkload(program, 300, linger=True) as workload:
        names = {tid: Path(f"/proc/{workload.pid}/task/{tid}/comm") for tid in workload.tids}
        workload.release()
        truth = workload.truth()
        comms = {tid: path.read_text().rstrip("\n") for tid, path in names.items()}
        stacks = eu_stacks(workload.pid)
        workload.finish()
    assert set(stacks) == set(workload.tids)
    threads = {comms[tid]: [frame.name for frame in stack] for tid, stack in stacks.items() if tid != workload.pid}
    assert set(threads) == set(PATHS[program])
    for thread, path in PATHS[program].items():
        assert follows(threads[thread], path), (thread, threads[thread])
    for stack in stacks.values():
        assert plain(stack[0].name) in STARTS
    for wait in truth["waits"]:
        assert wait["calls"] > 10 or wait["function"].startswith(("busy", "same")), wait
        assert comms[wait["tid"]] in (wait["function"], "reload")


@pytest.mark.parametrize("program", sorted(set(PATHS) - {"jit_mixed"}))
def test_two_debuggers_agree(program: str) -> None:
    with SettledWorkload(program, 100, linger=True) as workload:
        workload.release()
        workload.truth()
        first, second = eu_stacks(workload.pid), gdb_stacks(workload.pid)
        workload.finish()
    assert set(first) == set(second) == set(workload.tids)
    for tid, stack in first.items():
        assert [(f.path, f.vaddr) for f in second[tid]] == [(f.path, f.vaddr) for f in stack]
        for mine, true in zip(second[tid], stack, strict=True):
            assert bool(mine.name) == bool(true.name)


def test_differences_of_stacks_are_found() -> None:
    with Workload("jit_mixed", 50, linger=True) as workload:
        workload.release()
        workload.truth()
        truth = eu_stacks(workload.pid)[workload.tids[1]]
    made = [place for place, frame in enumerate(truth) if not frame.path]
    assert len(made) == 2
    ours = [Frame(f.name or "[anon]", "native", Module(f.path) if f.path else None, f.vaddr) for f in truth]
    doze = [frame.name for frame in ours].index("doze")
    assert differences(ours, truth) == []
    assert differences(ours[-3:], truth, 3) == []
    assert differences(ours[1:], truth) != []
    assert differences([ours[0], *ours], truth) != []
    for change in ({"name": "dose"}, {"address": ours[doze].address + 1}, {"module": Module("/other")}):
        assert len(differences([*ours[:doze], ours[doze]._replace(**change), *ours[doze + 1 :]], truth)) == 1
    unnamed = truth[doze]._replace(name="")
    assert differences([ours[doze]], [unnamed]) != []
    assert differences([ours[doze]._replace(name="[jit_mixed+0x1]")], [unnamed]) == []


def test_libraries_come_back_at_the_same_address() -> None:
    waits = by_function(run("many_mappings", 2000))
    changes = waits["reload"]["calls"] // 200 - 1
    assert waits["same_address"]["calls"] > 0.9 * changes > 0


def test_many_stacks() -> None:
    with Workload("many_stacks", 3, 500, 100, 40) as workload:
        assert len(set(workload.tids)) == 1  # the others exist before the start, and wait for it
        workload.release()
        truth = workload.truth()
        workload.finish()
    assert [wait["function"] for wait in truth["waits"]] == ["leaf"] * 3
    for wait in truth["waits"]:
        assert wait["calls"] == 500
        assert 0 < wait["blocks"] <= 500
        assert wait["ns"] >= 500 * 40_000
    assert {thread["thread"] for thread in truth["threads"]} == {"ways-0", "ways-1", "ways-2"}


def test_call_paths_are_all_taken() -> None:
    for frame in ("near", "far"):
        truth = run("call_paths", frame, 2)
        waits = by_function(truth)
        assert len(waits) == 1000 + 60 + 16
        assert {wait["calls"] for wait in waits.values()} <= {2, 3, 4, 5, 6}
        calls = sum(wait["calls"] for wait in waits.values())
        assert calls == 2 * sum(1 + i % 3 for i in range(1076))
        assert all(wait["ns"] >= wait["calls"] * (50_000 + i * 100) for i, wait in enumerate(truth["waits"][:1000]))
        # One whose timer was over before it slept did not sleep.
        assert 0.99 * calls <= sum(wait["blocks"] for wait in waits.values()) <= calls


NEEDS_ITS_FRAME = ("aligned_frame", "dynamic_frame")
"""Functions whose frame only a frame pointer can find: it is what they are for."""


@pytest.mark.parametrize("name", ["call_paths", "cpp_frames", "exec_chain", "exec_chain_other", "jit_mixed"])
def test_there_are_no_frame_pointers(name: str) -> None:
    command = ["objdump", "--disassemble", "--no-show-raw-insn", FOLDER / f"{name}.o"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    functions, with_pointer = set(), set()
    for before, line in pairwise(lines):
        if line.endswith(">:"):
            functions.add(function := line.partition("<")[2].removesuffix(">:"))
        elif line.split()[1:] == ["mov", "%rsp,%rbp"] and before.split()[1:] == ["push", "%rbp"]:
            with_pointer.add(function)
    assert "main" in functions
    assert len(functions) > 3
    assert {name for name in with_pointer if not any(part in name for part in NEEDS_ITS_FRAME)} == set()
