"""Ranks of a job: what their environment says of them is on each of their samples, and nothing else of it."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import TRACE_OFFCPU, load, run
from runner import Workload
from test_ioctl import TRACE_IOCTL

pytestmark = pytest.mark.usefixtures("live")


def environment(rank: int) -> tuple[str, ...]:
    return "env", f"RANK={rank}", f"LOCAL_RANK={rank}", "WORLD_SIZE=4", "SECRET_TOKEN=hunter2"


def traced(command: str, ranks: list[Workload], folder: Path, *arguments: object) -> dict[str, Any]:
    pids = ",".join(str(pid) for workload in ranks for pid in workload.pids)
    for workload in ranks:
        workload.release()
    done = run("-p", pids, "-d", 1, "--json", "-o", folder / "x.pb.gz", *arguments, command=command)
    return done.check_succeeded().summary


def test_every_sample_has_its_rank(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(Workload("demo", 30_000, "once", prefix=environment(rank))) for rank in (2, 0, 1)]
        summary = traced(TRACE_OFFCPU, ranks, tmp_path)
        data = subprocess.run(["gzip", "-dc", str(tmp_path / "x.pb.gz")], capture_output=True, check=True).stdout
    expected = {workload.pid: str(rank) for workload, rank in zip(ranks, (2, 0, 1), strict=True)}
    found = load(tmp_path / "x.pb.gz")
    assert {sample.label("pid") for sample in found.samples} == expected.keys()
    for sample in found.samples:
        pid = sample.label("pid")
        assert isinstance(pid, int)
        labels = [sample.label(label) for label in ("rank", "local-rank", "world-size")]
        assert labels == [expected[pid], expected[pid], "4"]
    assert b"hunter2" not in data
    (group,) = summary["alike"]
    assert [process["rank"] for process in group["processes"]] == [0, 1, 2]
    assert {process["pid"]: str(process["rank"]) for process in group["processes"]} == expected


def test_the_rank_that_calls_more_slowly_stands_out(tmp_path: Path) -> None:
    """Rank 2 of 4 has its calls answered 20 times as slowly: each rank has a device of its own."""
    with contextlib.ExitStack() as stack:
        ranks = []
        for rank in range(4):
            hold = 20_000 if rank == 2 else 1_000
            program = Workload("ioctls", "held", 1, 2_000, hold, prefix=environment(rank))
            ranks.append(stack.enter_context(program))
        summary = traced(TRACE_IOCTL, ranks, tmp_path)
    (group,) = summary["alike"]
    names = [median["name"] for median in group["medians"]]
    slow = group["processes"][2]
    assert slow["rank"] == 2
    assert slow["outlier"][names.index("mean")]
    assert not any(process["outlier"][names.index("mean")] for process in group["processes"] if process is not slow)
