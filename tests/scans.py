"""Profiles for the report of a scan. Times in ns."""

from __future__ import annotations

from dataclasses import replace

from lock_profiles import lock
from scheduling_traces import run
from stallscope.converters.model import Frame, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from summary_profiles import MS, READ, SECOND, Tracee
from verdict_profiles import FSYNC, LOCK, one


def three_troubles() -> Profile:
    """A process is blocked by a disk, one by its peer, and two by a lock, for less of their time."""
    profile = one(FSYNC, 9 * SECOND, state="uninterruptible", runs=SECOND)
    Tracee(profile, 2, "client", 2, "client").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 900)
    for pid in (3, 4):
        Tracee(profile, pid, "queue", pid, "queue").run(SECOND).wait(LOCK, "interruptible", 4 * SECOND, 900)
    return profile


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e\udcff__proto__"
"""A name that attacks pages and terminals."""


def scanned_host(events: bool = True, name: str = "") -> Profile:
    """Two ranks, a saver that is blocked by a disk, a lock, calls, and who ends waits; ``name``: that of everything.

    With the scheduler's events of an imagined machine, whose processes are others.
    """
    profile = Profile(
        [
            *(ValueType("wall", "nanoseconds"), ValueType("count", "count")),
            *(ValueType("min", "nanoseconds", "min"), ValueType("max", "nanoseconds", "max")),
            *(ValueType("samples", "count"), ValueType("blocked", "nanoseconds"), ValueType("calls", "nanoseconds")),
        ],
        title="Wall-clock time",
        host=name or "node-17",
        duration_ns=10 * SECOND,
        start_ns=1_700_000_000 * SECOND,
        lost={"intervals": 3, "stacks cut at 127 frames": 2, "wake-ups": 0},
        comments=[name or "a note"],
    )
    for pid, process, waits in ((100, "train", LOCK), (101, "train", LOCK), (200, "saver", FSYNC), (300, "feed", READ)):
        _runs_and_waits(profile, pid, name or process, waits)
    profile.locks = [lock(name=name) if name else lock()]
    call = CallTimes(name or "ioctl A", "/dev/gpu0", 100, name or "train", 50, SECOND, MS, 90 * MS, SECOND // 2)
    profile.calls = [call, replace(call, pid=101, count=30, total=SECOND // 2)]
    shared = SharedCall(name or "ioctl A", "/dev/gpu0", 2 * SECOND, SECOND, 3 * SECOND, 80, 850 * MS, 20, SECOND // 10)
    shared.turns = {100: SECOND, 101: SECOND // 4}
    profile.shared = [shared]
    profile.processes = [ProcessTimes(pid, name or "train", cpus="0-3") for pid in (100, 101)]
    if events:
        made = run(4_000)
        profile.scheduling = made.scheduling()
        if name:
            profile.scheduling.names = [f"{name}{i}" for i, _ in enumerate(profile.scheduling.names)]
    return profile


def _runs_and_waits(profile: Profile, pid: int, process: str, waits: Stack) -> None:
    """Adds a main thread that runs for 2 s and waits for 8 s, whose waits another process ends."""
    labels: dict[str, str | int] = {"pid": pid, "process": process, "tid": pid, "thread": process}
    wait = tuple(sorted({**labels, "state": "interruptible"}.items()))
    ran = tuple(sorted({**labels, "state": "running"}.items()))
    by = tuple(sorted({**dict(wait), "waker": "feed-300", "waker_tid": 300, "waker_thread": "feed"}.items()))
    chain = (*waits, SEPARATOR, Frame("write", WAKER), Frame("feed-300", WAKER))
    frames = (*waits[:2], Frame(process))
    profile.samples += [
        Sample(waits, (8 * SECOND, 400, MS, 90 * MS, 0, 0, 0), wait),
        Sample(frames, (2 * SECOND, 0, 0, 0, 198, 0, 0), ran),
        Sample(chain, (0, 0, 0, 0, 0, 8 * SECOND, 0), by),
        Sample((*frames, Frame("ioctl A", "api")), (0, 0, 0, 0, 0, 0, SECOND), wait),
    ]
    blocked = {"interruptible": 8 * SECOND}
    profile.threads.append(ThreadTimes(pid, process, pid, process, 10 * SECOND, 2 * SECOND, 0, blocked, 400))
