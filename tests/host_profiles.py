"""Profiles of hosts of which much is known, for what shows it. Times in ns."""

from __future__ import annotations

from dataclasses import replace

from file_lock_profiles import SEEN
from lock_profiles import lock
from scans import scanned_host
from stallscope.converters.model import Profile
from stallscope.converters.model.gpus import Gpu, GpuLimit
from stallscope.converters.model.locks import KERNEL
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.pressure import HARD, SOFT, STOLEN, Interrupts, Pressure
from stallscope.converters.model.processes import CpuLimit, ProcessTimes
from summary_profiles import MS, SECOND

TEN = 10 * SECOND


def in_queue(**fields: object) -> dict[str, object]:
    """Fields of a lock for which three wait at a time: 4 times as long as alone."""
    return {"time": 3 * SECOND, "waits": 230, "judged": 230, "judged_time": 3 * SECOND, "alone": 30} | {
        "alone_time": 110 * MS,
        "busy": SECOND,
        **fields,
    }


def busy_host(name: str = "") -> Profile:
    """A scan in which something is short, taken, contended and made; ``name``: that of everything."""
    profile = scanned_host(name=name)
    profile.pressure = [
        Pressure("cpu", 7 * SECOND, 0, TEN),
        Pressure("io", 3 * SECOND, 2 * SECOND, TEN),
        Pressure("memory", 0, 0, TEN),
        Pressure("io", 9 * SECOND, 8 * SECOND, TEN, name or "/job_1.slice"),
    ]
    profile.interrupts = [
        Interrupts(HARD, "", 2 * SECOND, 9_000, 4 * TEN),
        Interrupts(SOFT, "", 4 * SECOND, 70_000, 4 * TEN),
        Interrupts(STOLEN, "", SECOND, 0, 4 * TEN),
        Interrupts(HARD, name or "28 PCI-MSIX mlx5_comp0", 0, 8_000, 4 * TEN),
        Interrupts(SOFT, "NET_RX", 0, 60_000, 4 * TEN),
        Interrupts(HARD, "", 2 * SECOND, 0, TEN, 3),
        Interrupts(SOFT, "", 4 * SECOND, 0, TEN, 3),
        Interrupts(STOLEN, "", SECOND // 2, 0, TEN, 1),
    ]
    own: dict[str, object] = {"name": name, "process": name} if name else {}
    profile.locks = [
        lock(**in_queue(), **own),
        lock(name="inode.i_rwsem", kind="rwsem", owned_by=KERNEL, process="", pid=0, time=SECOND),
    ]
    profile.file_locks = [
        replace(SEEN, pid=pid, path=name or SEEN.path, busy=8, waiting=20, owner_pid=300) for pid in (100, 101)
    ]
    first, made_in = profile.threads[0], (name or "main", name or "next_epoch")
    profile.threads += [
        replace(first, tid=900 + i, thread="w", on_cpu=MS, runnable=MS, exited=i < 30, creator=100, made_in=made_in)
        for i in range(40)
    ]
    limit = CpuLimit(name or "/job_1.slice", 200_000, 100_000, 100, 40, 5 * SECOND)
    profile.processes = [ProcessTimes(100, name or "train", cpus="3", limits=(limit,)), *profile.processes[1:]]
    profile.neighbours = [Neighbour(name or "backup", 77, 3 * SECOND, "0-3")]
    figures = {"memory_used": 60 << 30, "memory": 80 << 30, "clock": 1_200, "clock_most": 1_980}
    gpu = Gpu(0, name or "NVIDIA H100 80GB HBM3", 10, 850, 300, *figures.values(), 650_000, 700_000, 0, 0, 0, 0, 0)
    profile.gpus = [replace(gpu, limits=[GpuLimit("power cap", 8)])]
    return profile
