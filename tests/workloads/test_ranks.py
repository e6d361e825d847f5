"""Ranks that meet tell the truth. See test_workloads.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runner import Workload, run
from truths import MS


@pytest.mark.parametrize("mode", ["blocking", ""])
def test_ranks_wait_for_the_late_one(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    ranks, calls, late = 3, 10, 1
    truth = run("nccl_ranks", ranks, calls, "late", tmp_path)
    waits = {(wait["pid"], wait["function"]): wait for wait in truth["waits"]}
    assert [wait["calls"] for wait in waits.values()] == [calls] * 2 * ranks
    times = np.stack([np.fromfile(tmp_path / f"rank.{i}", np.int64).reshape(calls, 2) for i in range(ranks)])
    began, returned = times[:, :, 0], times[:, :, 1]
    # It comes to a meeting after the one before, and sleeps for 10 ms in between.
    assert (np.diff(began[late]) >= 10 * MS).all()
    if mode:
        assert (returned.min(axis=0) >= began.max(axis=0)).all()
        assert not any(wait["blocks"] for (_, function), wait in waits.items() if function != "ncclAllReduce")


def test_a_rank_that_never_comes() -> None:
    with Workload("nccl_ranks", 3, 10, "missing") as workload:
        assert len(set(workload.pids)) == 3
        workload.release()
        workload.finish()
