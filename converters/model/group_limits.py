"""Limits of control groups on memory, on disks and on the number of processes, and how much of them was used."""

from __future__ import annotations

from dataclasses import dataclass, field

MEMORY, READ_BYTES, WRITTEN_BYTES, READS, WRITES = "memory", "bytes read", "bytes written", "reads", "writes"
PROCESSES = "processes"
KINDS = (MEMORY, READ_BYTES, WRITTEN_BYTES, READS, WRITES, PROCESSES)
"""Kinds: of `MEMORY` in bytes; of disks per second; of threads and processes."""
OF_DISKS = (READ_BYTES, WRITTEN_BYTES, READS, WRITES)


@dataclass(slots=True)
class GroupLimit:
    """One limit of one control group in which traced processes were."""

    cgroup: str
    """Folder of the control group, as /proc/PID/cgroup names it (hostile)."""
    kind: str
    """One of `KINDS`."""
    name: str
    """The kernel's name of the limit: ``memory.high``, ``io.max rbps``, ``blkio.throttle.read_bps_device``."""
    limit: int
    """Limit in bytes, in bytes or operations per second, or in processes."""
    used: int
    """Use while it was looked at: how often memory reached the limit, how many processes were refused; of disks, bytes
    or operations."""
    time: int
    """ns from the first look to the last one."""
    devices: list[str] = field(default_factory=list)
    """Numbers of the disk and of what is on it, as in mountinfo: ``8:0``, ``8:1``; the disk comes first."""
    pids: list[int] = field(default_factory=list)
    """Processes in the group or below it that were traced; at most `MOST_PIDS`."""

    @property
    def part_used(self) -> float:
        """Part of a disk's limit that was used."""
        return self.used * 1e9 / (self.limit * self.time) if self.limit and self.time else 0.0


MOST_PIDS = 1 << 12
MOST_DEVICES = 512
