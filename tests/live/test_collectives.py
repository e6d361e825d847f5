"""Calls of collectives with their arguments, against what the ranks themselves measured."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from runner import FOLDER
from stallscope.converters.collectives.communicators import communicators
from stallscope.converters.collectives.meetings import meetings
from stallscope.converters.collectives.records import CallTable
from stallscope.tracers.engines.ebpf.measures.calls import CallsCollector
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.probe_targets.wanted import Library, Wanted
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live")

NCCL = Wanted(
    libraries=(Library.at(str(FOLDER / "libnccl.so.2")), Library.at(str(FOLDER / "libcudart.so.12"))),
    symbols=re.compile("^nccl|Synchronize"),
)


class Kept(CallsCollector):
    """Keeps the table of calls, and when the trace began."""

    table: CallTable
    began: int

    def rows(self, ended: Ended) -> list[Row]:
        found = self.collectives(ended)
        assert found
        self.table, self.began = found, ended.began
        return super().rows(ended)


@pytest.mark.parametrize("mode", ["blocking", ""])
def test_meetings_are_those_of_the_ranks(
    mode: str, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    kept = Kept(Calls(NCCL, arguments=ArgumentOptions()))
    trace("nccl_ranks", 4, 50, "late", tmp_path, measure=kept)
    (world,) = communicators(kept.table)
    assert not world.is_known  # it was made before the trace
    assert [each.pid for each in world.members] == sorted(each.pid for each in world.members)
    found = meetings(world.calls, from_start=world.is_known)
    assert found.began.shape == (50, 4)
    truth = np.stack([np.fromfile(tmp_path / f"rank.{rank}", np.int64).reshape(-1, 2)[:50] for rank in range(4)], 1)
    # Between the program's clock and the probe is a trap; a busy machine can take the core there.
    apart = found.began + kept.began - truth[:, :, 0]
    assert (apart > 0).all()
    assert np.median(apart) < 50_000
    assert (found.last() == 1).all()
