"""The checks of collectives, in a guest."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
from guest_traces import run, traced
from runner import FOLDER, Workload
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.wanted import Library, Wanted

_NCCL = Wanted(
    libraries=tuple(Library.at(str(FOLDER / name)) for name in ("libnccl.so.2", "libcudart.so.12")),
    symbols=re.compile("^nccl|Synchronize"),
)
_RANKS, _CALLS, _LATE = 4, 25, 1
_APART = 5_000_000
"""ns between the clock of a rank and a probe, at most: the guest's core is emulated, and has other work, too."""
_TRACE_NCCL = str(Path(__file__).resolve().parents[2] / ".venv/bin/trace-nccl")


def collectives() -> str:
    """Arrivals against the clocks of the ranks, who came last, and a rank that does not come."""
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        measures = (Calls(_NCCL, arguments=ArgumentOptions()), Timeline())
        found = traced("nccl_ranks", _RANKS, _CALLS, "late", folder, measures=measures)
        files = [Path(folder, f"rank.{rank}") for rank in range(_RANKS)]
        own = np.stack([np.fromfile(path, np.int64).reshape(-1, 2)[:, 0] for path in files], 1)
    (of,) = found.profile.collectives
    assert (of.size, of.meetings, of.lost, of.standing) == (_RANKS, _CALLS, 0, ()), of
    assert [each.calls for each in of.ranks] == [_CALLS] * _RANKS, of.ranks
    arrivals = np.array([each.arrivals for each in sorted(of.worst, key=lambda each: each.number)])
    apart = np.abs((arrivals - arrivals[:, :1]) - (own - own[:, :1]))
    first, second = np.sort(own, axis=1)[:, -2:].T
    clear = second - first > 2 * apart.max(axis=1)
    assert (arrivals.argmax(axis=1) == own.argmax(axis=1))[clear].all(), (arrivals, own)
    assert np.median(apart) < _APART, np.median(apart)
    assert of.ranks[_LATE].last > _CALLS / 2, of.ranks
    told = f"{of.meetings} meetings of {_RANKS} ranks, arrivals within {np.median(apart) / 1000:.1f} µs (median)"
    return f"{told}; {_missing()}"


def _missing() -> str:
    """The command's first sentence on ranks of which one does not come."""
    with Workload("nccl_ranks", _RANKS, 4, "missing") as workload:
        workload.release()
        pids = ",".join(map(str, workload.pids))
        said = run(_TRACE_NCCL, "-p", pids, "-d", "5", "--force", "-o", "/run/nccl.pb.gz", timeout=240)
    print(said)
    first = " ".join(said.split())
    assert re.search(r"3 of 4 ranks of nccl_ranks have been in .* since before the trace began", first), said
    assert re.search(rf"rank {_LATE} \(pid {workload.pids[_LATE]}\) is not in it: .* forgets → nanosleep", first), said
    return "a rank that does not come is told by trace-nccl"
