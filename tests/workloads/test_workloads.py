"""The workloads tell the truth: what one prints is consistent in itself and with what the kernel says of it.

Nothing here says how long anything takes, but for the lower bounds that a sleep guarantees."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from container import INSIDE, Container, can_contain
from elftools.elf.elffile import ELFFile
from redis_under_load import installed as redis_installed
from redis_under_load import load, redis
from runner import FOLDER, Workload, WorkloadFailed, run
from truths import MS, by_function

HERE = Path(__file__).parent
COMMAND_LINE = "<script>alert(1)</script>;x"
THREAD_NAMES = [
    "\x1b[31mred\x1b[0m",
    "line\nbreak;x 99",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe",
    "\"'`&amp;<!--",
    "\udcff\udcfe bad utf-8",
    "]]></title>\t\\",
]


def blocked(thread: dict[str, Any]) -> int:
    """Rest of the wall time, in ns, by the kernel's accounts; with what interrupts and the hypervisor took."""
    assert thread["runnable_ns"] >= 0, "no /proc/thread-self/schedstat"
    return int(thread["wall_ns"] - thread["cpu_ns"] - thread["runnable_ns"])


def check_waits_explain_thread(truth: dict[str, Any], thread: dict[str, Any], unknown: int = 5) -> None:
    """All voluntary switches of the thread fell into its measured waits, and these cover what it was blocked.

    One part in ``unknown`` of the wall time is for interrupts and the hypervisor."""
    mine = [wait for wait in truth["waits"] if wait["tid"] == thread["tid"]]
    assert sum(wait["blocks"] for wait in mine) == thread["voluntary"]
    assert blocked(thread) <= sum(wait["ns"] for wait in mine) + thread["wall_ns"] // unknown
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
        # To wake a core that sleeps is the hypervisor's work, and a round is little else.
        check_waits_explain_thread(truth, threads[name], unknown=2)


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


def test_pipe_chain_works_in_between() -> None:
    truth = run("pipe_chain", 3, 10, 2000)
    for thread in truth["threads"]:
        assert thread["cpu_ns"] >= 10 * 2 * MS
        (reads,) = [w for w in truth["waits"] if (w["pid"], w["function"]) == (thread["pid"], "read_token")]
        # The two others work meanwhile, if this one gets a core at once to wait.
        assert reads["ns"] >= 0.7 * 9 * 2 * 2 * MS


def test_lock_holder() -> None:
    truth = run("lock_holder", 3, 10, 4000)
    names = sorted(thread["thread"] for thread in truth["threads"])
    assert names == ["holder", "waiter-1", "waiter-2", "waiter-3"]
    threads = {thread["pid"]: thread for thread in truth["threads"]}
    for wait in truth["waits"]:
        if wait["function"] == "take_lock" and threads[wait["pid"]]["thread"] != "holder":
            assert wait["blocks"] <= wait["calls"]
            assert wait["ns"] >= 10 * 2 * MS
    (holder,) = [thread for thread in truth["threads"] if thread["thread"] == "holder"]
    assert holder["cpu_ns"] >= 10 * 4 * MS


def test_slow_producer() -> None:
    truth = run("slow_producer", 10, 3000)
    waits = by_function(truth)
    assert set(waits) == {"take_item", "make_item"}
    assert waits["make_item"]["calls"] == waits["make_item"]["blocks"] == 10
    assert waits["make_item"]["ns"] >= 10 * 3 * MS
    assert waits["take_item"]["ns"] >= 8 * 3 * MS
    assert {thread["thread"] for thread in truth["threads"]} == {"consumer", "producer"}
    assert "times" not in truth
    times = run("slow_producer", 5, 3000, 1000)["times"]
    assert len(times) == 5
    assert times == sorted(times)


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


def test_crowd_shares_a_core() -> None:
    with Workload("crowd", 400, 4, 1) as workload:
        assert len(workload.tids) == len(set(workload.tids)) == 4
        assert {os.sched_getaffinity(tid) == {max(os.sched_getaffinity(0))} for tid in workload.tids} == {True}
        workload.release()
        truth = workload.truth()
        workload.finish()
    assert sorted(thread["thread"] for thread in truth["threads"]) == [f"compute-{i}" for i in range(4)]
    for thread in truth["threads"]:
        assert thread["voluntary"] == 0
        assert blocked(thread) <= thread["wall_ns"] // 5
        assert thread["runnable_ns"] >= thread["wall_ns"] // 2


def test_work_and_rest_take_turns() -> None:
    truth = run("work_and_rest", 10, 2000, 5000)
    assert len(truth["threads"]) == len(truth["waits"]) == 2
    for thread, wait in zip(truth["threads"], truth["waits"], strict=True):
        assert wait["calls"] == wait["blocks"] == 10
        assert wait["ns"] >= 10 * 5 * MS
        assert 10 * 2 * MS <= thread["cpu_ns"] <= thread["wall_ns"] - 10 * 5 * MS


def test_pool_for_each_call() -> None:
    truth = run("pool_per_call", 20, 3)
    (thread,) = truth["threads"]
    (wait,) = truth["waits"]
    assert (wait["function"], wait["calls"]) == ("between_calls", 20)
    assert wait["ns"] >= 20 * 5 * MS
    assert thread["wall_ns"] >= wait["ns"]
    assert thread["voluntary"] >= wait["blocks"] == 20


def test_two_pools() -> None:
    truth = run("two_pools", 100, 3, 2)
    (wait,) = truth["waits"]
    assert wait["function"] == "main"
    assert wait["ns"] >= wait["calls"] * 2 * MS


def test_shares_are_what_was_meant() -> None:
    truth = run("shares", 600)
    parts = by_function(truth)
    (thread,) = truth["threads"]
    assert thread["voluntary"] == 0
    assert sum(part["ns"] for part in parts.values()) == pytest.approx(thread["cpu_ns"], rel=0.05)
    meant = {"spin_one": 0.1, "spin_three": 0.3, "deep_spin": 0.2, "library_spin": 0.2, "system_spin": 0.2}
    assert parts.keys() == meant.keys()
    for function, share in meant.items():
        assert parts[function]["ns"] / thread["cpu_ns"] == pytest.approx(share, abs=0.07)


def test_page_faults_are_counted() -> None:
    (touched,) = run("page_faults", 20)["waits"]
    assert touched["function"] == "touch_pages"
    assert 20_000 <= touched["calls"] <= 20_100


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
        assert blocked(worker) + worker["runnable_ns"] > worker["wall_ns"] // 2


def test_demo_that_asks_once_never_waits_for_the_driver(require: Any) -> None:
    try:
        waits = by_function(run("demo", 300, "once"))
    except WorkloadFailed as failure:
        require(False, str(failure))
    assert waits["cudaGetDeviceProperties"]["calls"] == 0
    assert waits["receive"]["calls"] > 0


def test_demo_tells_its_rate(require: Any) -> None:
    demo = subprocess.run([FOLDER / "demo", "300"], capture_output=True, text=True, check=False)
    if demo.returncode:
        require(False, demo.stderr)
    truth = json.loads(demo.stdout.splitlines()[-1])
    seconds = (truth["end_ns"] - truth["begin_ns"]) / 1e9
    (rate,) = re.fullmatch(r"demo \d+: (\d+) rows a second\n", demo.stderr).groups()
    calls = by_function(truth)["cudaGetDeviceProperties"]["calls"]
    assert abs(int(rate) * seconds - calls) < calls / 10


@pytest.mark.parametrize("arguments", [("300", "twice"), ("300", "once", "once"), ("0",)])
def test_demo_refuses_what_it_does_not_know(arguments: tuple[str, ...]) -> None:
    refused = subprocess.run([FOLDER / "demo", *arguments], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert arguments[-1] in refused.stderr


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
    sources = [path for path in sources_of_workloads() if "main(" in path.read_text()]
    assert sources
    for path in sources:
        text = path.read_text()
        assert any(call in text for call in ("workload_begin(", "python_workload.begin(", "alarm(")), path


def test_readme_names_every_workload() -> None:
    readme = (HERE / "README.md").read_text()
    for path in sources_of_workloads():
        assert f"`{path.stem}`" in readme, path.name


def sources_of_workloads() -> list[Path]:
    return [*HERE.glob("*.c"), *HERE.glob("*.cc"), *HERE.glob("*.rs"), *HERE.glob("python_*.py")]


def test_exec_chain_is_one_process() -> None:
    with Workload("exec_chain", 7, 2, linger=True) as workload:
        workload.release()
        truth = workload.truth()
        assert truth["pid"] == workload.pid
        workload.finish()
    waits = by_function(truth)
    assert {name: wait["calls"] for name, wait in waits.items()} == {"link_even": 8, "link_odd": 6}
    assert all(wait["ns"] >= wait["calls"] * 5 * MS for wait in waits.values())


@pytest.mark.parametrize("kind", ["tmpfs", "overlay"])
def test_container_is_another_world(require: Any, kind: str) -> None:
    require(can_contain(), "new namespaces and mounts need root")
    with Container("sleeps", 2, kind=kind, linger=True) as workload:
        assert workload.inside == {workload.pid: 1}
        assert not Path(INSIDE).exists()
        process = Path("/proc", str(workload.pid))
        assert os.readlink(process / "exe") == f"{INSIDE}/sleeps"
        assert os.readlink(process / "ns/mnt") != os.readlink("/proc/self/ns/mnt")
        workload.replace_program(FOLDER / "spinner")
        assert os.readlink(process / "exe").endswith("sleeps (deleted)")
        assert workload.program.read_bytes() == (FOLDER / "spinner").read_bytes()
        workload.release()
        truth = workload.truth()
        assert truth["pid"] == 1
        workload.finish()
    assert by_function(truth)["sleep_25ms"]["calls"] == 2


def test_redis_is_busy_without_a_daemon(require: Any) -> None:
    require(redis_installed(), "there is no redis (package redis-tools)")
    with redis() as (server, path):
        before = Path(f"/proc/{server.pid}/stat").read_text().split()
        with load(path):
            time.sleep(0.5)
        after = Path(f"/proc/{server.pid}/stat").read_text().split()
        assert int(after[13]) > int(before[13])
        assert int(after[3]) == os.getpid()
    assert not path.exists()
