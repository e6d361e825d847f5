"""Trouble with too many threads, pools made anew and quotas: every command of the scheduler finds it, and says so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import environment, load, new_group
from runner import FOLDER, Workload
from stallscope.converters.summary.summarize import summarize

pytestmark = pytest.mark.usefixtures("live")

COMMANDS = pytest.mark.parametrize("command", ["trace-offcpu", "trace-oncpu", "trace-wall"])
Require = Callable[[bool, str], None]


def summary_of(command: str, *arguments: object, path: Path, **changes: str) -> dict[str, Any]:
    """Summary that --json prints, which is also what the saved profile says, but for the words with which it was
    chosen."""
    line = [Path(sys.executable).with_name(command), "--json", "-o", path, *arguments]
    env = {name: value for name, value in environment().items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        list(map(str, line)), env=env | changes, capture_output=True, encoding="utf-8", timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert {**summarize(load(path)).to_json(), "next": None} == {**told, "next": None}
    return told


def only(told: dict[str, Any], process: str) -> dict[str, Any]:
    (found,) = [each for each in told["contention"] if each["process"] == process]
    return dict(found)


@COMMANDS
def test_a_pool_for_each_call(command: str, tmp_path: Path) -> None:
    told = summary_of(command, "--", FOLDER / "pool_per_call", 100, 4, path=tmp_path / "x.pb.gz")
    (sentence,) = [sentence for sentence in told["trouble"] if "anew" in sentence]
    found = re.fullmatch(
        r"pool_per_call makes its threads anew all the time: ([\d,]+) threads named pool-\* a second are created by "
        r"the main thread and end after [\d.]+ [mµ]s on average\. A pool that is made once and kept saves that\.",
        sentence,
    )
    assert found, sentence
    process = only(told, "pool_per_call")
    assert (process["threads"], process["created"], process["ended"]) == (401, 400, 401)
    seconds = told["duration_ns"] / 1e9
    assert abs(int(found[1].replace(",", "")) - 400 / seconds) <= 1
    assert abs(process["created_per_second"] - 400 / seconds) <= 0.01
    # Each new thread waits for a core once before it runs.
    assert process["core_waits"] >= 400
    assert process["core_wait_mean_ns"] * process["core_waits"] <= process["runnable_ns"]
    assert process["switches"] >= 100  # the main thread sleeps between its calls


@COMMANDS
def test_more_threads_than_cores(command: str, tmp_path: Path) -> None:
    """The command has ended when the trace does, and took its one core only after its first instruction."""
    path = tmp_path / "x.pb.gz"
    told = summary_of(command, "--", FOLDER / "crowd", 2500, 8, 1, path=path, OMP_NUM_THREADS="64", MKL_NUM_THREADS="7")
    (sentence,) = [sentence for sentence in told["trouble"] if "outnumber" in sentence]
    assert sentence.startswith("The threads of crowd outnumber the cores: ")
    assert ", 1 core may be used; " in sentence
    assert sentence.endswith(
        "Environment: OMP_NUM_THREADS=64; MKL_NUM_THREADS=7; OPENBLAS_NUM_THREADS, NUMEXPR_NUM_THREADS not set."
    )
    process = only(told, "crowd")
    assert process["environment"] == [{"OMP_NUM_THREADS": "64", "MKL_NUM_THREADS": "7"}]
    assert process["cpus"] == [max(os.sched_getaffinity(0))]
    assert process["cores_allowed"] == 1
    assert process["cores_used"] <= 1.001
    # Eight want a core, and one has it.
    assert process["runnable_ns"] >= 5 * process["on_cpu_ns"]
    assert process["core_wait_p99_below_ns"] is None or process["core_wait_p99_below_ns"] > process["core_wait_mean_ns"]


def test_a_process_that_runs_already(tmp_path: Path) -> None:
    with Workload("crowd", 60_000, 4, 1) as workload:
        workload.release()
        told = summary_of("trace-offcpu", "-p", workload.pid, "-d", 1, path=tmp_path / "x.pb.gz")
    process = only(told, "crowd")
    assert (process["threads"], process["created"], process["ended"]) == (5, 0, 0)
    assert process["cores_allowed"] == 1
    assert any("outnumber" in sentence for sentence in told["trouble"])


def test_who_has_the_core_that_a_process_waits_for(tmp_path: Path) -> None:
    """Two busy threads share one core. If only one is traced, the other is found with `-a`."""
    with Workload("crowd", 60_000, 1, 1) as workload, Workload("crowd", 60_000, 1, 1) as rival:
        workload.release()
        rival.release()
        alone = summary_of("trace-offcpu", "-p", workload.pid, "-d", 1, path=tmp_path / "alone.pb.gz")
        host = summary_of("trace-offcpu", "-a", "-d", 1, path=tmp_path / "host.pb.gz")
    (wait,) = [each for each in alone["waits"] if each["state"] == "runnable" and not each["who"][0]["main"]]
    had = wait["cores_had_by"]
    assert (had["kind"], had["cores"], had["cgroup"]) == ("others", 1, "")
    # What was not traced is known by ticks of the kernel's clock, since a little before the trace.
    assert {each["process"]: each["cores"] for each in had["processes"]}["crowd"] <= 1.05
    assert alone["next"] == {"command": "trace-offcpu -a -d 5", "tells": "what else has the cores"}
    waits = [each for each in host["waits"] if each["state"] == "runnable" and each["who"][0]["process"] == "crowd"]
    taken = max(waits, key=lambda each: int(each["time_ns"]))["cores_had_by"]
    assert (taken["kind"], taken["cores"]) == ("traced", 1)
    listed = {each["process"]: each["cores"] for each in taken["processes"]}
    used = sum(each["on_cpu_ns"] for each in host["contention"] if each["process"] == "crowd") / host["duration_ns"]
    if "2 × crowd" in listed:
        assert listed["2 × crowd"] == pytest.approx(used, abs=0.001)
    else:  # the machine is busy: others had more of it, or both had little
        assert used < 0.05 or (len(listed) == 3 and min(listed.values()) >= used)


def cpu_hierarchy() -> tuple[Path, int] | None:
    """Folder in which groups with quotas can be made, and the version."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(mount), 1
        if kind == "cgroup2" and "cpu" in Path(mount, "cgroup.subtree_control").read_text().split():
            return Path(mount), 2
    return None


def set_quota(group: Path, version: int, quota: int, period: int) -> None:
    if version == 2:
        (group / "cpu.max").write_text(f"{quota} {period}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(period))
        (group / "cpu.cfs_quota_us").write_text(str(quota))


def throttled_periods(group: Path) -> int:
    (found,) = re.findall(r"^nr_throttled (\d+)$", (group / "cpu.stat").read_text(), re.MULTILINE)
    return int(found)


@COMMANDS
@pytest.mark.parametrize("below", [False, True], ids=["own", "parent"])
def test_a_quota_of_half_a_core(command: str, below: bool, tmp_path: Path, require: Require) -> None:
    """The quota of the process's own group, or of the one above it."""
    found = cpu_hierarchy()
    require(found is not None, "no control groups for cores are mounted")
    assert found
    top, version = found
    with new_group(top) as group, Workload("crowd", 60_000, 4, 2) as workload:
        set_quota(group, version, 25_000, 50_000)
        home = group / "below" if below else group
        home.mkdir(exist_ok=True)
        (home / "cgroup.procs").write_text(str(workload.pid))
        workload.release()
        before = throttled_periods(group)
        told = summary_of(command, "-p", workload.pid, "-d", 2, path=tmp_path / "x.pb.gz")
        after = throttled_periods(group)
        workload.kill()
        (sentence,) = [sentence for sentence in told["trouble"] if "quota throttles" in sentence]
        assert sentence.startswith(f"A quota throttles crowd: control group /{group.name} may use 0.5 cores, and used")
        assert " of its periods of 50.0 ms; it was stopped for " in sentence
        process = only(told, "crowd")
        (limit,) = process["limits"]
        assert (limit["cgroup"], limit["cores"], limit["period_us"]) == (f"/{group.name}", 0.5, 50_000)
        # Four threads on two cores use half a core up in each period, and stand still for the rest of it, unless
        # others use the cores meanwhile. The group's own counts of a longer time are more.
        assert 20 <= limit["periods"] <= 60
        assert limit["periods"] // 10 <= limit["throttled_periods"] <= after - before
        assert limit["throttled_ns"] >= told["duration_ns"] // 20
        assert process["cores_allowed"] == 0.5
        # Two cores would be used without it. Time that the hypervisor takes counts as used.
        assert process["cores_used"] <= 1.2
        assert abs(process["cores_used"] - process["on_cpu_ns"] / told["duration_ns"]) <= 0.001
        assert process["runnable_ns"] >= 2 * process["on_cpu_ns"]


def test_a_calm_process_has_no_trouble(tmp_path: Path) -> None:
    told = summary_of("trace-offcpu", "--", FOLDER / "sleeps", 20, path=tmp_path / "x.pb.gz")
    assert told["trouble"] == []
    assert only(told, "sleeps")["cores_allowed"] == len(os.sched_getaffinity(0))
