"""The program that notes the address of each page fault: what a wait in one is on."""

from __future__ import annotations

from collections.abc import Iterable

from ...kernel.bpfobject import Link, Object
from ...kernel.shapes import Shape
from .measures.protocol import Collector

PROGRAM = "page_fault"


def wanted(collectors: Iterable[Collector], shape: Shape) -> set[str]:
    """Name of the program, if it is of use: without the tasks' registers nothing asks for the addresses."""
    of_use = shape.knobs.get("task_regs") and any(each.knobs().get("wait_objects") for each in collectors)
    return {PROGRAM} if of_use else set()


def attached(loaded: Object) -> list[Link]:
    """Link of the program, if it was loaded."""
    program = loaded.programs[PROGRAM]
    return [program.attach()] if program.is_loaded else []
