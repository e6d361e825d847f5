"""Shortage of cores, memory and devices on the host, and the time that interrupts take from its cores."""

from __future__ import annotations

from dataclasses import dataclass

CPU, IO, MEMORY, IRQ = RESOURCES = ("cpu", "io", "memory", "irq")
"""Resources as the kernel names them in the folder /proc/pressure (Documentation/accounting/psi.rst)."""
HARD, SOFT, STOLEN = KINDS = ("hard", "soft", "stolen")
"""Kinds of time that is taken from cores: in handlers of interrupts, in soft interrupts, by other virtual machines."""
ALL = -1
"""Stands for all cores."""


@dataclass(slots=True)
class Pressure:
    """Time in which tasks stood still for want of one resource (PSI), in ns."""

    resource: str
    """One of `RESOURCES`."""
    some: int
    """Time in which at least one task stood still."""
    full: int
    """Time in which all tasks that were not idle stood still; 0 for the cores of a host."""
    elapsed: int
    """Time between the two looks."""
    cgroup: str = ""
    """Control group (hostile); "" for the host."""


@dataclass(slots=True)
class Interrupts:
    """Interrupts of one kind on all cores, or those of one source."""

    kind: str
    """One of `KINDS`."""
    name: str
    """Source as the kernel names it, with the names that drivers chose (hostile); "" for all of the kind."""
    time: int
    """ns in which cores were in them; 0 for a single source, of which it is not known."""
    count: int
    """Number of them; 0 for time that is stolen."""
    capacity: int
    """Time of all these cores between the two looks, in ns."""
    core: int = ALL
    """Number of the core, of a kind's time on a single one; `ALL`: of all cores."""


@dataclass(slots=True)
class CoreThread:
    """A thread that ran on a core from which something is taken. Names are hostile."""

    core: int
    """Number of the core."""
    process: str
    thread: str
    pid: int
    tid: int
    time: int
    """ns for which it had the core, what was taken from it meanwhile included."""
