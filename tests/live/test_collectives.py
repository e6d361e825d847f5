"""Collectives against what the ranks themselves measured."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from runner import FOLDER, Workload
from stallscope.converters.facts.wait_kinds import HALTED, SLEEP
from stallscope.converters.model import Profile
from stallscope.converters.model.collectives import Collectives
from stallscope.converters.rules import busy, polling
from stallscope.converters.rules.stuck_ranks import StuckRanks
from stallscope.converters.rules.verdict import GPU
from stallscope.converters.summary.collective_sentences import sentences
from stallscope.converters.summary.judging import judgement_of, read
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.wanted import Library, Wanted
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live")

NCCL = Wanted(
    libraries=(Library.at(str(FOLDER / "libnccl.so.2")), Library.at(str(FOLDER / "libcudart.so.12"))),
    symbols=re.compile("^nccl|Synchronize"),
)
RANKS, CALLS, LATE = 4, 50, 1
MS = 1_000_000


def traced(trace: Trace, case: str, *arguments: object) -> Collectives:
    """The collectives of the only communicator."""
    measures = (Calls(NCCL, arguments=ArgumentOptions()), Timeline(), OffCpu())
    (found,) = trace("nccl_ranks", RANKS, CALLS, case, *arguments, measures=measures).profile.collectives
    return found


def truth(folder: Path) -> NDArray[np.int64]:
    """Times when each rank called all_reduce: a row for each call."""
    times = [np.fromfile(folder / f"rank.{rank}", np.int64).reshape(-1, 2)[:CALLS, 0] for rank in range(RANKS)]
    return np.stack(times, 1)


@pytest.mark.parametrize("mode", ["blocking", ""])
def test_arrivals_are_those_of_the_ranks(
    mode: str, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    found = traced(trace, "late", tmp_path)
    # It was made before the trace, and its memory is gone when the trace ends.
    assert (found.library, found.size, found.is_known) == ("NCCL", RANKS, True)
    assert (found.meetings, found.lost, found.standing) == (CALLS, 0, ())
    assert [(each.what, each.bytes, each.meetings) for each in found.kinds] == [("all-reduce", 4096, CALLS)]
    assert [(each.rank, each.calls) for each in found.ranks] == [(rank, CALLS) for rank in range(RANKS)]
    arrivals = np.array([each.arrivals for each in sorted(found.worst, key=lambda each: each.number)])
    measured = truth(tmp_path)
    # Between the program's clock and the probe is a trap; a busy machine can take the core there.
    apart = np.abs((arrivals - arrivals[:, :1]) - (measured - measured[:, :1]))
    assert np.median(apart) < 50_000
    # And any rank can wait for a core for longer than the late one sleeps.
    lasts = arrivals.argmax(axis=1)
    first, second = np.sort(measured, axis=1)[:, -2:].T
    clear = second - first > 2 * apart.max(axis=1)
    assert (lasts == measured.argmax(axis=1))[clear].all()
    assert [each.last for each in found.ranks] == np.bincount(lasts, minlength=RANKS).tolist()
    late = found.ranks[LATE]
    assert late.last > CALLS / 2
    assert late.between and late.between_late
    assert late.between.count == CALLS - 1
    assert CALLS - 1 - np.count_nonzero(lasts != LATE) <= late.between_late.count <= CALLS - 1
    (before,) = [each for each in late.between.waits if "load_batch" in each.site.frames]
    # Stacks of the first waits can be without names: tables may come later.
    assert 0 < before.number <= CALLS - 1
    assert before.time >= 0.9 * 8 * MS * before.number
    others = [each.between for rank, each in enumerate(found.ranks) if rank != LATE]
    assert not [each for spent in others if spent for each in spent.waits if "load_batch" in each.site.frames]


@pytest.mark.parametrize("mode", ["blocking", ""])
def test_arrivals_in_groups_are_the_ends_of_the_groups(
    mode: str, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    found = traced(trace, "grouped", tmp_path)
    assert [(each.what, each.bytes, each.meetings) for each in found.kinds] == [("all-reduce", 2 * 4096, CALLS)]
    arrivals = np.array([each.arrivals for each in sorted(found.worst, key=lambda each: each.number)])
    measured = truth(tmp_path)
    assert np.median(np.abs((arrivals - arrivals[:, :1]) - (measured - measured[:, :1]))) < 50_000
    assert found.ranks[LATE].last > CALLS / 2
    assert found.ranks[LATE].late > 0.9 * 8 * MS


def test_collectives_of_a_graph_make_no_calls(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_NCCL", "")
    graphs = replace(NCCL, symbols=re.compile("^nccl|Synchronize|Graph|Capture"))
    profile = trace(
        "nccl_ranks", RANKS, CALLS, "graphs", measures=(Calls(graphs, arguments=ArgumentOptions()),)
    ).profile
    assert not [each for each in profile.collectives if each.meetings]
    assert (
        f"CUDA graphs, into which {2 * RANKS} collectives were captured: launched {RANKS * CALLS} times; "
        "what is in a graph makes no calls then, and its meetings are not told"
    ) in profile.comments


class Failing:
    """Ranks of which one fails in the middle: lets them begin, and ends the trace when they have stood still for much
    longer than all of their steps took."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._began = self._changed = 0.0
        self._switches: list[int] = []

    def poll(self, *_: object) -> None:
        now = time.monotonic()
        if not self._began:
            self._switches = self._waits()
            self._workload.release()
            self._began = now
        if (switches := self._waits()) != self._switches:
            self._switches, self._changed = switches, now
        elif self._changed and now - self._changed > 1 + 5 * (self._changed - self._began):
            os.kill(os.getpid(), signal.SIGINT)

    def _waits(self) -> list[int]:
        """Waits of the main threads of all other ranks so far."""
        texts = [
            Path(f"/proc/{pid}/status").read_text() for rank, pid in enumerate(self._workload.pids) if rank != LATE
        ]
        return [int(text.split("voluntary_ctxt_switches:")[1].split()[0]) for text in texts]


class Seen(NamedTuple):
    """Traces of ranks of which one fails in the middle: none of them ends by itself."""

    collectives: list[Collectives]
    """Communicators of a trace that saw it."""
    later: StuckRanks
    """Ranks that stand, by a trace that began later."""


def standing(case: str) -> Seen:
    with Workload("nccl_ranks", RANKS, CALLS, case, linger=True) as workload:
        seen = traced_ranks(
            workload, [Calls(NCCL, arguments=ArgumentOptions()), Timeline(), OffCpu()], Failing(workload).poll
        )
        later = traced_ranks(workload, [OffCpu()], duration=0.7)
    (verdict,) = (each for each in judgement_of(later)[1].verdicts if isinstance(each.detail, StuckRanks))
    assert isinstance(verdict.detail, StuckRanks)
    return Seen(seen.collectives, verdict.detail)


def traced_ranks(
    workload: Workload,
    measures: list[Measure],
    poll: Callable[..., None] | None = None,
    duration: float | None = None,
) -> Profile:
    """Attaches to all ranks that live. ``poll`` is called while the trace goes on."""
    scope = Scope(pids=[pid for pid in workload.pids if "(zombie)" not in Path(f"/proc/{pid}/status").read_text()])
    scope.resolve()
    sink = RecordSink()
    engine = Probes(ProbeOptions(scope, collectors(measures)), sink)
    try:
        capture = Session(engine, None, duration).run(sink, poll)
    finally:
        engine.close()
    try:
        return profile_of(capture, "Off-CPU time")
    finally:
        capture.spaces.close()


@pytest.mark.parametrize("mode", ["blocking", ""])
@pytest.mark.parametrize("case", ["missing", "dead", "stopped"])
def test_a_rank_that_does_not_come(case: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    ((found,), later) = standing(case)
    assert found.meetings == CALLS // 2
    inside, outside = (CALLS // 2 + 1, "all-reduce", 4096), (CALLS // 2, "", 0)
    told = [(each.number, each.what, each.bytes) for each in found.standing]
    assert told == [outside if rank == LATE else inside for rank in range(RANKS)]
    assert [each.pid for each in found.standing] == [each.pid for each in found.ranks]
    out = found.standing[LATE]
    assert out.has_ended == (case == "dead")
    if case == "missing":
        assert out.meanwhile and "forgets" in out.meanwhile.waits[0].site.frames
    assert [each.rank.number for each in later.inside] == [rank for rank in range(RANKS) if rank != LATE]
    assert later.for_gpu == (not mode)
    assert later.missing == ((LATE,) if case == "dead" else ())
    does = [(each.rank.number, each.kind) for each in later.outside]
    assert does == {"missing": [(LATE, SLEEP)], "stopped": [(LATE, HALTED)], "dead": []}[case]
    assert all("forgets" in each.frames for each in later.outside if each.kind == SLEEP)


@pytest.mark.parametrize("mode", ["blocking", ""])
def test_two_communicators_in_different_orders(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    found, later = standing("crossed")
    inside = [[rank for rank, each in enumerate(of.standing) if each.what] for of in found]
    assert sorted(inside) == [[0, 2, 3], [LATE]]
    (told,) = sentences(found)
    assert told.endswith("they call them in different orders.")
    assert len(later.inside) == RANKS


@pytest.mark.parametrize("mode", ["blocking", ""])
@pytest.mark.parametrize(("case", "told"), [("size", ("all-reduce", 2048)), ("other", ("broadcast", 4096))])
def test_a_rank_that_calls_something_else(
    case: str, told: tuple[str, int], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_NCCL", mode)
    ((found,), later) = standing(case)
    assert {each.number for each in found.standing} == {CALLS // 2 + 1}
    expected = [told if rank == LATE else ("all-reduce", 4096) for rank in range(RANKS)]
    assert [(each.what, each.bytes) for each in found.standing] == expected
    others = [LATE] if mode and case == "other" else []
    assert [each.rank.number for each in later.others] == others
    assert len(later.inside) + len(others) == RANKS


def test_threads_of_nccl_that_poll(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that looks for progress uses a core all the time, and another one waits for requests."""
    monkeypatch.setenv("STANDIN_NCCL", "proxy")
    profile = trace("nccl_ranks", 2, 200, "late", measures=(OffCpu(time="wall"), OnCpu(time="wall"))).profile
    _, judgement = judgement_of(profile)
    assert judgement.first
    assert judgement.first.kind == GPU, "the rank that is early waits for its stream"
    names = {(each.pid, each.tid): each.thread for each in profile.threads}
    (polls,) = (each.finding for each in judgement.verdicts if each.rule == polling.RULE)
    assert polls
    assert {names[thread] for thread in polls.threads} == {"NCCL Progress 0"}
    assert "NCCL Service 0" in {names[thread] for thread in read(profile).facts.roles.quiet}
    assert all(each.rule != busy.RULE for each in judgement.verdicts)
