"""Scans with teams of threads of a library for parallel work."""

from __future__ import annotations

from collections.abc import Mapping

from scans import scanned_host
from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes
from stallscope.converters.model.processes import ProcessTimes
from summary_profiles import EXE, LIBC, SECOND, user

GOMP = Module("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0")
WORKER = (*user(LIBC, "clone3", "start_thread"), Frame("[libgomp.so.1+0x1c]", "native", GOMP))
PID = 500


def with_teams(sizes: Mapping[str, int], *, helps: bool = False, cpus: str = "0-1") -> Profile:
    """A scanned host beside a process with a team for each of these functions: its threads want a core for 10 s, and
    have one for 1 s. ``helps``: each also runs a little of the other functions."""
    profile = scanned_host(events=False)
    profile.processes.append(ProcessTimes(PID, "pools", cpus=cpus))
    tid = PID
    for work, size in sizes.items():
        for _ in range(size):
            names = [work, *(other for other in sizes if helps and other != work)]
            for i, name in enumerate(names):
                _runs(profile, tid, name, 90 if not i else 9)
            times = ThreadTimes(PID, "pools", tid, "pools", 10 * SECOND, SECOND, 9 * SECOND, {}, 900)
            profile.threads.append(times)
            tid += 1
    return profile


def _runs(profile: Profile, tid: int, work: str, samples: int) -> None:
    labels = {"pid": PID, "process": "pools", "tid": tid, "thread": "pools", "state": "running"}
    stack = (*WORKER, *user(EXE, work)) if work else WORKER
    values = (samples * SECOND // 100, 0, 0, 0, samples, 0, 0)
    profile.samples.append(Sample(stack, values, tuple(sorted(labels.items()))))
