"""The programs that note the address of each page fault, of user code and of system calls: what a wait in one is on."""

from __future__ import annotations

from collections.abc import Iterable

from ...kernel.bpfobject import Link, Object
from ...kernel.shapes import Shape
from .measures.protocol import Collector

PROGRAMS = ("page_fault", "page_fault_in_kernel")


def wanted(collectors: Iterable[Collector], shape: Shape) -> set[str]:
    """Names of the programs, if they are of use: without the tasks' registers nothing asks for the addresses."""
    of_use = shape.knobs.get("task_regs") and any(each.knobs().get("wait_objects") for each in collectors)
    return set(PROGRAMS) if of_use else set()


def attached(loaded: Object) -> list[Link]:
    """Links of the programs, if they were loaded."""
    return [loaded.programs[name].attach() for name in PROGRAMS if loaded.programs[name].is_loaded]
