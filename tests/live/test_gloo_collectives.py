"""Collectives of Gloo, whose functions have probes at their entries only, against what the ranks measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from runner import Workload
from stallscope.converters.model.collectives import UNKNOWN, Collectives
from stallscope.converters.summary.collective_sentences import sentences
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.collectives import Collectives as Functions
from test_collectives import Failing, traced_ranks
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live")

RANKS, CALLS, LATE = 4, 50, 1
MS = 1_000_000


def traced(trace: Trace, case: str, *arguments: object) -> Collectives:
    """The collectives of the only communicator."""
    measures = (Calls(Functions(), arguments=ArgumentOptions()), Timeline(), OffCpu())
    (found,) = trace("gloo_ranks", RANKS, CALLS, case, *arguments, measures=measures).profile.collectives
    return found


def truth(folder: Path) -> NDArray[np.int64]:
    """Times when each rank called the all-reduce, and when its wait for it returned: a row for each call."""
    return np.stack([np.fromfile(folder / f"rank.{rank}", np.int64).reshape(-1, 2)[:CALLS] for rank in range(RANKS)], 1)


@pytest.mark.parametrize("case", ["late", "made"])
def test_arrivals_are_those_of_the_ranks(case: str, trace: Trace, tmp_path: Path) -> None:
    found = traced(trace, case, tmp_path)
    # Of a group that was there before the trace, the memory tells the ranks.
    assert (found.library, found.size, found.is_known) == ("Gloo", RANKS, True)
    assert (found.meetings, found.lost, found.standing) == (CALLS, 0, ())
    assert [(each.what, each.bytes, each.meetings) for each in found.kinds] == [("all-reduce", UNKNOWN, CALLS)]
    assert [(each.rank, each.calls) for each in found.ranks] == [(rank, CALLS) for rank in range(RANKS)]
    arrivals = np.array([each.arrivals for each in sorted(found.worst, key=lambda each: each.number)])
    measured = truth(tmp_path)[:, :, 0]
    assert len(arrivals) == CALLS
    # Between the program's clock and the probe is a trap; a busy machine can take the core there.
    apart = np.abs((arrivals - arrivals[:, :1]) - (measured - measured[:, :1]))
    assert np.median(apart) < 50_000
    # And any rank can wait for a core for longer than the late one sleeps.
    lasts = arrivals.argmax(axis=1)
    first, second = np.sort(measured, axis=1)[:, -2:].T
    clear = second - first > 2 * apart.max(axis=1)
    assert (lasts == measured.argmax(axis=1))[clear].all()
    late = found.ranks[LATE]
    assert late.last > CALLS / 2
    # From when an all-reduce is done on it to its next one.
    assert late.between and late.between.count == CALLS - 1
    (before,) = [each for each in late.between.waits if "load_batch" in each.site.frames]
    assert before.time >= 0.9 * 8 * MS * before.number


def test_functions_that_others_call_are_parts_of_these(trace: Trace) -> None:
    found = traced(trace, "base")
    kinds = {each.what: (each.bytes, each.meetings) for each in found.kinds}
    assert kinds == {"all-reduce": (UNKNOWN, CALLS), "all-gather": (UNKNOWN, CALLS), "barrier": (0, CALLS)}
    assert [each.calls for each in found.ranks] == [3 * CALLS] * RANKS


def test_an_exception_passes_and_its_call_is_none(trace: Trace) -> None:
    """The ranks end well, which the trace asks for."""
    found = traced(trace, "throws")
    assert (found.meetings, [each.calls for each in found.ranks]) == (CALLS, [CALLS] * RANKS)


def test_a_rank_that_does_not_come() -> None:
    with Workload("gloo_ranks", RANKS, CALLS, "missing", linger=True) as workload:
        seen = traced_ranks(
            workload,
            [Calls(Functions(), arguments=ArgumentOptions()), Timeline(), OffCpu()],
            Failing(workload).poll,
        )
    (found,) = seen.collectives
    inside, outside = (CALLS // 2 + 1, "all-reduce", UNKNOWN), (CALLS // 2, "", 0)
    told = [(each.number, each.what, each.bytes) for each in found.standing]
    assert told == [outside if rank == LATE else inside for rank in range(RANKS)]
    out = found.standing[LATE]
    assert out.meanwhile and "forgets" in out.meanwhile.waits[0].site.frames
    (sentence,) = sentences([found])
    assert f"rank {LATE} (pid {found.ranks[LATE].pid}) has not come" in sentence
    assert "forgets" in sentence
