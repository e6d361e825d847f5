"""Collectives of a real MPI against what the ranks themselves measured. Its ranks poll while they wait."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Tracer, load
from runner import Workload
from stallscope.converters.facts import thresholds
from stallscope.converters.model.collectives import UNKNOWN, Collectives
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.collectives import Collectives as Wanted
from tracing import collecting, run_traced

pytestmark = pytest.mark.usefixtures("live")

TRACE_NCCL = str(Path(sys.executable).with_name("trace-nccl"))
CALLS, LATE, BYTES = 50, 1, 4096
# More ranks than cores: who polls lets others run. A rank that dies does not end the others.
MPIRUN = (
    *("mpirun", "--allow-run-as-root", "--oversubscribe", "--enable-recovery"),
    *("--mca", "mpi_yield_when_idle", "1", "-n"),
)


@contextmanager
def ranks(case: str, *arguments: object, number: int = 4, calls: int = CALLS) -> Iterator[Workload]:
    with Workload("mpi_ranks", calls, case, *arguments, linger=True, prefix=(*MPIRUN, str(number))) as workload:
        yield workload


def traced(case: str, number: int, folder: Path) -> Collectives:
    """The only communicator of a trace of all of its steps."""
    with ranks(case, folder, number=number) as workload:
        scope = Scope(pids=workload.pids)
        scope.resolve()
        measures = (Calls(Wanted(), arguments=ArgumentOptions()), Timeline())
        profile = run_traced(workload, ProbeOptions(scope, collecting(measures)), None).profile
    (found,) = profile.collectives
    return found


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("case", ["even", "late"])
def test_arrivals_are_those_of_the_ranks(case: str, number: int, tmp_path: Path) -> None:
    found = traced(case, number, tmp_path)
    # Open MPI's memory tells the ranks of the job's communicator, and the size of its types.
    assert (found.library, found.size, found.is_known, found.lost) == ("MPI", UNKNOWN, True, 0)
    assert [each.rank for each in found.ranks] == list(range(number))
    # The last one of all is the barrier.
    kinds = {(each.what, each.bytes): each.meetings for each in found.kinds}
    assert kinds == {("all-reduce", BYTES): CALLS, ("barrier", 0): 1}
    assert (found.meetings, found.standing) == (CALLS + 1, ())
    assert [each.calls for each in found.ranks] == [CALLS + 1] * number
    met = [each for each in sorted(found.worst, key=lambda each: each.number) if each.what == "all-reduce"]
    arrivals = np.array([each.arrivals for each in met])
    measured = np.stack(
        [np.fromfile(tmp_path / f"rank.{rank}", np.int64).reshape(CALLS, 2)[:, 0] for rank in range(number)], 1
    )
    apart = np.abs((arrivals - arrivals[:, :1]) - (measured - measured[:, :1]))
    assert np.median(apart) < 50_000
    first, second = np.sort(measured, axis=1)[:, -2:].T
    clear = second - first > 2 * apart.max(axis=1)
    assert clear.any()
    assert (arrivals.argmax(axis=1) == measured.argmax(axis=1))[clear].all()
    if case == "late":
        assert found.ranks[LATE].last > thresholds.LATE_MOSTLY * CALLS
        assert found.ranks[LATE].late > max(each.late for each in found.ranks if each is not found.ranks[LATE])


def answered(workload: Workload, folder: Path, *arguments: object, release: bool = True) -> dict[str, Any]:
    """Summary of trace-nccl."""
    pids = ",".join(map(str, workload.pids))
    with Tracer("-p", pids, "--json", "-o", folder / "x.pb.gz", *arguments, command=TRACE_NCCL) as tracer:
        tracer.ready()
        if release:
            workload.release()
        return tracer.finish().check_succeeded().summary


def test_the_late_rank_and_its_cause_come_first(tmp_path: Path) -> None:
    with ranks("late", calls=400) as workload:
        summary = answered(workload, tmp_path, "-d", 2)
        late = workload.pids[LATE]
    first = summary["answer"][0]
    told = rf"Rank {LATE} of mpi_ranks \(pid {late}\) comes .* late \(median\) to .* all-reduces"
    assert re.match(told, first), first
    assert "load_batch → nanosleep" in first


@pytest.mark.parametrize("case", ["requests", "tests"])
def test_operations_that_are_only_begun(case: str, tmp_path: Path) -> None:
    """A rank comes when it begins one. Where it waits for it later, that is its wait."""
    found = traced(case, 4, tmp_path)
    (kind,) = (each for each in found.kinds if each.what == "all-reduce")
    assert (found.is_known, found.lost, kind.meetings, kind.bytes, kind.took) == (True, 0, CALLS, BYTES, UNKNOWN)
    assert found.ranks[LATE].last > thresholds.LATE_MOSTLY * CALLS
    times = np.stack([np.fromfile(tmp_path / f"rank.{rank}", np.int64).reshape(CALLS, 2) for rank in range(4)], 1)
    came = times[:, :, 0].max(axis=1)
    assert [each.calls for each in found.ranks] == [CALLS + 1] * 4
    if case == "requests":
        # Between the call and the wait for it is compute(), which takes 2 ms at least.
        most = np.maximum(came[:, None] - times[:, :, 0] - 2_000_000, 0).sum(axis=0)
        waited = np.array(kind.waited)
        others = [rank for rank in range(4) if rank != LATE]
        assert (waited <= most + CALLS * 50_000).all(), (waited, most)
        assert (waited[others] > 10 * waited[LATE]).all()


@pytest.mark.parametrize("case", ["pipe", "pipes", "ring", "any"])
def test_all_messages_are_joined(case: str, tmp_path: Path) -> None:
    """Messages from any rank, too: the status of a blocking receive tells whose they are."""
    found = traced(case, 4, tmp_path).messages
    assert found
    ways = {"ring": [(0, 1), (1, 2), (2, 3), (3, 0)], "any": [(1, 0), (2, 0), (3, 0)]}
    pairs = {(each.sender, each.receiver): each for each in found.pairs}
    assert sorted(pairs) == sorted(ways.get(case, [(0, 1), (1, 2), (2, 3)]))
    assert {(each.messages, each.bytes, each.unjoined) for each in pairs.values()} == {(CALLS, CALLS * BYTES, 0)}
    assert (found.any_source, found.unseen) == (0, 0)


@pytest.mark.parametrize("case", ["pipe", "pipes", "ring"])
def test_the_rank_that_holds_up_others_comes_first(case: str, tmp_path: Path) -> None:
    with ranks(case, calls=1000) as workload:
        summary = answered(workload, tmp_path, "-d", 2)
        late = workload.pids[LATE]
    told = rf"Rank {LATE} of mpi_ranks \(pid {late}\) holds up others by its messages: .*load_batch → nanosleep"
    assert re.match(told, summary["answer"][0]), summary["answer"]


INSIDE = "The ranks of mpi_ranks stand still in all-reduce {} (4 KiB): 3 of 4 are in it; rank 1 (pid {}) "
STANDS = [
    ("missing", INSIDE + "has not come since its collective {}: for "),
    ("dead", INSIDE + "has ended after its collective {}"),
    ("stopped", INSIDE + "has not come since its collective {}: for "),
    ("other", INSIDE + "calls broadcast (4 KiB) instead."),
]


@pytest.mark.parametrize(("case", "told"), STANDS, ids=[case for case, _ in STANDS])
def test_a_rank_that_does_not_come(case: str, told: str, tmp_path: Path) -> None:
    with ranks(case) as workload:
        summary = answered(workload, tmp_path, "-d", 4)
    first = summary["answer"][0]
    assert first.startswith(told.format(CALLS // 2 + 1, workload.pids[LATE], CALLS // 2)), first
    if case == "missing":
        assert "forgets → nanosleep" in first
    if case == "stopped":
        assert "is stopped" in first
    (found,) = load(tmp_path / "x.pb.gz").collectives
    assert found.meetings == CALLS // 2 + (case == "other")


def fails(workload: Workload) -> None:
    """Lets ranks begin, and returns when the one that fails rests: in its steps, it wakes up every 2 ms."""
    workload.release()
    seen = [(-1, "")]
    while seen[-1] != seen[-2:][0] or seen[-1][1] not in "ST" or len(seen) < 3:
        time.sleep(0.3)
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{workload.pids[LATE]}/status").read_text().splitlines()
        )
        seen.append((int(status["voluntary_ctxt_switches"]), status["State"].split()[0]))


@pytest.mark.parametrize("case", ["missing", "stopped"])
def test_a_trace_that_begins_after_the_hang(case: str, tmp_path: Path) -> None:
    """The others poll, as they do all the time: that they came out no more is told by their calls."""
    with ranks(case) as workload:
        fails(workload)
        summary = answered(workload, tmp_path, "-d", 3, release=False)
        pid = workload.pids[LATE]
    first = summary["answer"][0]
    does = r"asleep in all_reduce → forgets → nanosleep" if case == "missing" else "stopped"
    told = (
        "3 of 4 ranks of mpi_ranks have been in train → all_reduce → P?MPI_Allreduce since before the trace began, for "
    )
    told += rf".* s, polling on a core; rank {LATE} \(pid {pid}\) is not in it: .* of its time, it is {does}"
    assert re.match(told, first), first
    assert {each.pid: each.calls for each in load(tmp_path / "x.pb.gz").watched} == dict.fromkeys(workload.pids, 0)


@pytest.mark.parametrize(("case", "calls"), [("tight", 1_000_000), ("pauses", CALLS)])
def test_ranks_that_poll_and_go_on(case: str, calls: int, tmp_path: Path) -> None:
    """One job does nothing but all-reduce, the ranks of the other one poll for 2 s in each: neither stands still."""
    with ranks(case, calls=calls) as workload:
        workload.release()
        time.sleep(1)  # the trace begins in the middle
        summary = answered(workload, tmp_path, "-d", 5, release=False)
    assert not any("since before the trace" in each or "stand still" in each for each in summary["answer"])
    watched = load(tmp_path / "x.pb.gz").watched
    assert [each.pid for each in watched] == sorted(workload.pids)
    assert all(each.calls for each in watched)
