"""The workloads tell the truth: what one prints is consistent in itself and with what the kernel says of it.

Nothing here says how long anything takes, but for the lower bounds that a sleep guarantees.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from runner import FOLDER, Workload, WorkloadFailed, run

HERE = Path(__file__).parent
MS = 1_000_000
COMMAND_LINE = "<script>alert(1)</script>;x"
THREAD_NAMES = [
    "\x1b[31mred\x1b[0m",
    "line\nbreak;x 99",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe",
    "\"'`&amp;<!--",
    "\udcff\udcfe bad utf-8",
    "]]></title>\t\\",
]


def by_function(truth: dict[str, Any]) -> dict[str, dict[str, Any]]:
    waits = {wait["function"]: wait for wait in truth["waits"]}
    assert len(waits) == len(truth["waits"])
    return waits


def blocked(thread: dict[str, Any]) -> int:
    """What is left of the wall time, in ns, by the kernel's accounts; with what interrupts and the hypervisor took."""
    assert thread["runnable_ns"] >= 0, "no /proc/thread-self/schedstat"
    return int(thread["wall_ns"] - thread["cpu_ns"] - thread["runnable_ns"])


def check_waits_explain_thread(truth: dict[str, Any], thread: dict[str, Any]) -> None:
    """All voluntary switches of the thread fell into its measured waits, and these cover what it was blocked.

    A fifth of the wall time is for interrupts and the hypervisor."""
    mine = [wait for wait in truth["waits"] if wait["tid"] == thread["tid"]]
    assert sum(wait["blocks"] for wait in mine) == thread["voluntary"]
    assert blocked(thread) <= sum(wait["ns"] for wait in mine) + thread["wall_ns"] // 5
    assert thread["cpu_ns"] <= thread["wall_ns"]


@pytest.mark.parametrize("rounds", [1, 5])
def test_sleeps(rounds: int) -> None:
    truth = run("sleeps", rounds)
    waits = by_function(truth)
    expected = {"sleep_1ms": (4 * rounds, 1), "sleep_10ms": (2 * rounds, 10), "sleep_25ms": (rounds, 25)}
    assert set(waits) == set(expected)
    for function, (calls, length) in expected.items():
        assert waits[function]["calls"] == waits[function]["blocks"] == calls
        assert waits[function]["ns"] >= calls * length * MS
    (thread,) = truth["threads"]
    assert (thread["pid"], thread["tid"], thread["thread"]) == (truth["pid"], truth["pid"], "sleeps")
    check_waits_explain_thread(truth, thread)


def test_futex_pingpong() -> None:
    with Workload("futex_pingpong", 300) as workload:
        tids = workload.tids
        workload.release()
        truth = workload.truth()
        workload.finish()
    waits = by_function(truth)
    threads = {thread["thread"]: thread for thread in truth["threads"]}
    assert set(waits) == set(threads) == {"ping", "pong"}
    assert tids == [workload.pid, waits["ping"]["tid"], waits["pong"]["tid"]]
    for name, wait in waits.items():
        assert wait["tid"] == threads[name]["tid"]
        assert 0 < wait["blocks"] <= wait["calls"]
        check_waits_explain_thread(truth, threads[name])


def test_pipe_chain() -> None:
    with Workload("pipe_chain", 3, 40) as workload:
        assert len(set(workload.pids)) == 3
        workload.release()
        truth = workload.truth()
        workload.finish()
    assert sorted(thread["thread"] for thread in truth["threads"]) == ["stage-0", "stage-1", "stage-2"]
    assert {thread["pid"] for thread in truth["threads"]} == set(workload.pids)
    for thread in truth["threads"]:
        waits = {wait["function"]: wait for wait in truth["waits"] if wait["pid"] == thread["pid"]}
        assert waits["read_token"]["calls"] == waits["write_token"]["calls"] == 40
        assert waits["write_token"]["blocks"] == 0
        assert waits["read_token"]["blocks"] <= 40
        check_waits_explain_thread(truth, thread)


def test_spinner_never_waits() -> None:
    truth = run("spinner", 200)
    (thread,) = truth["threads"]
    assert truth["waits"] == []
    assert thread["voluntary"] == 0
    assert thread["wall_ns"] >= 200 * MS
    assert blocked(thread) <= thread["wall_ns"] // 5


def test_two_spinners_share_a_core() -> None:
    truth = run("two_spinners", 400)
    assert sorted(thread["thread"] for thread in truth["threads"]) == ["spinner-0", "spinner-1"]
    for thread in truth["threads"]:
        assert thread["voluntary"] == 0
        assert blocked(thread) <= thread["wall_ns"] // 5
        assert thread["runnable_ns"] >= thread["wall_ns"] // 4


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize(("mode", "function"), [([], "child_sleep"), (["--exec"], "exec_child_sleep")])
def test_fork_storm(mode: list[str], function: str, at_once: int) -> None:
    truth = run("fork_storm", *mode, 20, at_once)
    waits = by_function(truth)
    assert set(waits) == {function, "reap"}
    assert waits[function]["calls"] == waits["reap"]["calls"] == 20
    assert waits[function]["blocks"] == 20
    assert waits[function]["ns"] >= 20 * MS
    (parent,) = truth["threads"]
    assert parent["voluntary"] >= waits["reap"]["blocks"] > 0


def test_hostile_names_are_what_the_kernel_sees() -> None:
    with Workload("hostile", 2, linger=True) as workload:
        process = Path("/proc", str(workload.pid))
        assert (process / "cmdline").read_bytes().split(b"\0")[0].decode() == COMMAND_LINE
        assert (process / "comm").read_bytes() == b"<script>alert(1\n"
        comms = [(process / "task" / str(tid) / "comm").read_bytes()[:-1] for tid in workload.tids[1:]]
        assert comms == [name.encode("utf-8", "surrogateescape") for name in THREAD_NAMES]
        workload.release()
        truth = workload.truth()
        workload.finish()
    assert sorted(thread["thread"] for thread in truth["threads"]) == sorted(THREAD_NAMES)
    functions = {wait["function"] for wait in truth["waits"]}
    assert functions == {'quote"amp&<b>', "semi;colon'</g>"}
    with (FOLDER / "hostile").open("rb") as file:
        symtab = ELFFile(file).get_section_by_name(".symtab")
        assert functions <= {symbol.name for symbol in symtab.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC"}
    for thread in truth["threads"]:
        check_waits_explain_thread(truth, thread)


def test_demo_workers_queue_for_the_driver(require: Any) -> None:
    try:
        demos = [Workload("demo", 600)]
    except WorkloadFailed as failure:
        require(False, str(failure))
    try:
        demos += [Workload("demo", 600) for _ in range(3)]
        for demo in demos:
            demo.release()
        truths = [demo.truth() for demo in demos]
    finally:
        for demo in demos:
            demo.kill()
    for truth in truths:
        waits = by_function(truth)
        threads = {thread["thread"]: thread for thread in truth["threads"]}
        query, worker = waits["cudaGetDeviceProperties"], threads["worker"]
        assert query["tid"] == worker["tid"] != truth["pid"] == waits["wait_for_worker"]["tid"]
        assert query["calls"] > 0
        assert query["blocks"] <= worker["voluntary"]
        assert query["ns"] > worker["wall_ns"] // 2
        assert blocked(worker) > worker["wall_ns"] // 2


def test_demo_library_exports_the_call_and_nothing_else() -> None:
    with (FOLDER / "libdemo_cuda.so").open("rb") as file:
        symbols = list(ELFFile(file).get_section_by_name(".dynsym").iter_symbols())
    exported = [symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"]
    assert exported == ["cudaGetDeviceProperties"]


def test_lingering_process_keeps_its_pid_until_it_may_go() -> None:
    with Workload("sleeps", 1, linger=True) as workload:
        workload.release()
        workload.truth()
        status = Path("/proc", str(workload.pid), "status").read_text()
        assert "State:\tZ" not in status
        workload.finish()
    assert not Path("/proc", str(workload.pid)).exists()


def test_waiting_workload_ends_with_its_starter() -> None:
    process = subprocess.run([FOLDER / "sleeps", "--wait"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stdout.count("\n") == 1  # ready, and no truth


@pytest.mark.parametrize("argument", ["0", "-1", "x", "1x", ""])
def test_bad_argument_is_refused(argument: str) -> None:
    process = subprocess.run([FOLDER / "sleeps", argument], capture_output=True, text=True)
    assert process.returncode == 2
    assert "is not a number from 1 to" in process.stderr


def test_every_workload_has_a_limit() -> None:
    with Workload("sleeps", 1) as workload:
        pending = Path("/proc", str(workload.pid), "status").read_text()
        workload._process.send_signal(signal.SIGALRM)  # what alarm() will do
        assert workload._process.wait() == -signal.SIGALRM
    ignored = next(line for line in pending.splitlines() if line.startswith("SigIgn:")).split()[1]
    assert not int(ignored, 16) & 1 << (signal.SIGALRM - 1)
    sources = [path for path in HERE.glob("*.c") if "int main(" in path.read_text()]
    assert sources
    for path in sources:
        assert "workload_begin(" in path.read_text() or "alarm(" in path.read_text(), path


def test_readme_names_every_workload() -> None:
    readme = (HERE / "README.md").read_text()
    for path in HERE.glob("*.c"):
        assert f"`{path.stem}`" in readme, path.name
