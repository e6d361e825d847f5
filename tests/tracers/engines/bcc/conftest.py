"""Formats of tracepoints as kernels have them."""

from __future__ import annotations

import pytest
from stallscope.tracers.kernel.tracepoint_format import Format

FLAGS = ", ".join(f'{{ {1 << i:#010x}, "{letter}" }}' for i, letter in enumerate("SDTtXZPI"))


@pytest.fixture
def formats() -> dict[str, Format]:
    """Formats of the tracepoints that the programs use."""
    switch = {"prev_pid": (24, 4), "prev_state": (32, 8), "next_pid": (56, 4)}
    return {
        "sched:sched_switch": Format("sched:sched_switch", 1, switch, FLAGS),
        "sched:sched_wakeup": Format("sched:sched_wakeup", 2, {"pid": (24, 4)}, ""),
        "task:task_newtask": Format("task:task_newtask", 3, {"pid": (8, 4), "clone_flags": (32, 8)}, ""),
        "sched:sched_process_exec": Format("sched:sched_process_exec", 4, {"pid": (12, 4), "old_pid": (16, 4)}, ""),
    }
