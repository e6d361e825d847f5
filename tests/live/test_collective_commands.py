"""Commands that join collectives, and what their first sentence says of ranks whose behaviour is known."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Tracer
from runner import Workload

pytestmark = pytest.mark.usefixtures("live")

RANKS, LATE = 4, 1


def answered(command: str, workload: Workload, folder: Path, *arguments: object) -> dict[str, Any]:
    """Summary of a trace of ranks that begin with it."""
    pids = ",".join(map(str, workload.pids))
    path = str(Path(sys.executable).with_name(command))
    with Tracer("-p", pids, "--json", "-o", folder / "x.pb.gz", *arguments, command=path) as tracer:
        tracer.ready()
        workload.release()
        found = tracer.finish().check_succeeded().summary
    summary: dict[str, Any] = found.get("summary", found)
    return summary


@pytest.mark.parametrize(
    ("command", "options"), [("trace-nccl", ()), ("trace-wall", ("--collectives",)), ("trace-scan", ("--collectives",))]
)
def test_the_late_rank_and_its_cause_come_first(command: str, options: tuple[str, ...], tmp_path: Path) -> None:
    with Workload("nccl_ranks", RANKS, 5000, "late") as workload:
        summary = answered(command, workload, tmp_path, "-d", 3, *options)
        late = workload.pids[LATE]
    first = summary["answer"][0]
    told = (
        rf"Rank {LATE} of nccl_ranks \(pid {late}\) comes .* late \(median\) to .* all-reduces \(4 KiB\) of 4 ranks: "
    )
    assert re.match(told + "before, it is blocked in train → load_batch → nanosleep for .* more than", first), first
    (found,) = summary["collectives"]
    assert (found["library"], found["size"], found["known"], found["lost"]) == ("NCCL", RANKS, True, 0)
    assert found["ranks"][LATE]["last"] > found["meetings"] / 2


@pytest.mark.parametrize("mode", ["blocking", ""])
@pytest.mark.parametrize("command", ["trace-nccl", "trace-scan"])
def test_a_rank_that_is_stopped(command: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    options = ("--collectives",) if command == "trace-scan" else ()
    with Workload("nccl_ranks", RANKS, 50, "stopped") as workload:
        summary = answered(command, workload, tmp_path, "-d", 3, *options)
        stopped = workload.pids[LATE]
    first = summary["answer"][0]
    told = rf"The ranks of nccl_ranks stand still in all-reduce 26 \(4 KiB\): 3 of 4 are in it; rank {LATE} "
    told += rf"\(pid {stopped}\) has not come since its collective 25: for .* s, of which it is stopped"
    assert re.match(told, first), first
