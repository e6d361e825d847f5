"""GPUs as NVIDIA's driver tells of them (NVML), once a second; and the cost of asking."""

from __future__ import annotations

from dataclasses import dataclass, field

UNKNOWN = -1
"""Figure that the driver does not tell."""
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
"""Reasons for clocks below the highest, by bit: nvmlClocksEventReason… of nvml.h."""
IDLE = REASONS[0x1]


@dataclass(slots=True)
class GpuLimit:
    """Reason for clocks below the highest."""

    reason: str
    """One of `REASONS`."""
    samples: int
    """Number of samples in which it held."""


@dataclass(slots=True)
class Gpu:
    """A GPU during a trace. Figures are `UNKNOWN` where the driver does not tell them."""

    minor: int
    """Minor number of its device, as in /dev/nvidia3."""
    name: str
    """Name of the product (hostile)."""
    samples: int
    """Number of samples; those that failed count."""
    busy: int
    """Mean part of the time in which a kernel ran, in 1/1000."""
    copying: int
    """Mean part of the time in which its memory was read or written, in 1/1000."""
    memory_used: int
    """Bytes, at most."""
    memory: int
    """Bytes of all of it."""
    clock: int
    """Mean clock of the multiprocessors in MHz."""
    clock_most: int
    """Highest clock in MHz."""
    power: int
    """Mean power in mW."""
    power_limit: int
    """Enforced limit of the power in mW."""
    calls: int
    """Number of calls of the driver that asked for this."""
    call_time: int
    """ns in these calls."""
    call_most: int
    """ns of the longest one."""
    failed: int
    """Number of these calls that failed with anything but "not supported"."""
    silent: int
    """ns for which the driver had not answered at the end of the trace; 0: it answered."""
    limits: list[GpuLimit] = field(default_factory=list)
    """Reasons for low clocks, each with at least one sample."""
