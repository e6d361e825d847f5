"""Description of a process besides what it has mapped: proc_pid_status(5), proc_pid_stat(5)."""

from __future__ import annotations

import os
import time
from typing import Protocol

from ..images.files import Root
from .roots import Roots


class _Process(Protocol):
    pid: int
    uid: int
    nspid: int
    comm: str
    started_ns: int
    root: Root


def describe(process: _Process, roots: Roots) -> None:
    """Fills in its user, names and root; what /proc no longer shows stays as it is."""
    folder = f"/proc/{process.pid}"
    try:
        with open(f"{folder}/status", "rb") as file:
            status = dict(line.split(b":", 1) for line in file.read().split(b"\n") if b":" in line)
        process.uid = int(status[b"Uid"].split()[1])
        process.nspid = int(status.get(b"NSpid", b"%d" % process.pid).split()[-1])
        with open(f"{folder}/comm", "rb") as file:
            process.comm = os.fsdecode(file.read().removesuffix(b"\n"))
        with open(f"{folder}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        since_boot = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        process.started_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot
        process.root = roots.of(process.pid)
    except (OSError, KeyError, IndexError, ValueError):
        return
