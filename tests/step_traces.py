"""A thread's events written down by hand, with three steps."""

from __future__ import annotations

from typing import Any

from scheduling_traces import rows
from stallscope.converters.model import Stack
from stallscope.converters.model.scheduling import BLOCKED, CALL, SWITCH, THREAD, CallName, Scheduling
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import SlowSteps, Spent, StepWait
from summary_profiles import EXE, kernel, user

SYNC: Stack = (*user(EXE, "main", "train_step", "synchronise"), *kernel("__x64_sys_read", "pipe_read"))
BATCH: Stack = (*user(EXE, "main", "next_batch"), *kernel("__x64_sys_read", "pipe_read"))
STEP = CallName("demo:train_step", "step")
LOOP = [(100, 200), (250, 400), (430, 500)]
"""Begins and ends of three steps."""
WAITS = [(140, 180, 190, 0), (210, 230, 240, 1), (300, 360, 360, 0), (405, 425, 425, 1), (450, 460, 480, 0)]
"""Begin, wake-up, end and stack."""


def recorded(loop: list[tuple[int, int]] = LOOP, begin: int = 0, **changes: Any) -> Scheduling:
    """A thread, 7, that begins on its core."""
    times = [time for wait in WAITS for time in (wait[0], wait[2])]
    outs = [7 if i % 2 == 0 else 0 for i in range(len(times))]
    waits = [list(column) for column in zip(*WAITS, strict=True)]
    given: dict[str, Any] = {
        "switches": rows(SWITCH, time=times, prev_tid=outs, next_tid=[7 - tid for tid in outs]),
        "threads": rows(THREAD, tid=[7], tgid=[5], name=[1]),
        "blocked": rows(
            BLOCKED, begin=waits[0], woken=waits[1], end=waits[2], stack=waits[3], tid=[7] * 5, state=[1] * 5
        ),
        "names": ["python3", "worker"],
        "stacks": [SYNC, BATCH],
        "calls": rows(CALL, begin=[call[0] for call in loop], end=[call[1] for call in loop], tid=[7] * len(loop)),
        "call_names": [STEP],
        **changes,
    }
    return Scheduling(600, begin, **given)


def slow(every: int | None) -> SlowSteps:
    """Five steps that wait much longer than 95 others."""
    waits = StepWait(Site(("load",), ""), 195, 5), StepWait(Site(("save", "fsync"), ""), 190, 5)
    spent = Spent(5, 500, 255, 205, waits)
    return SlowSteps(spent, Spent(95, 475, 380, 95, (StepWait(Site(("load",), ""), 190, 95),)), 3, every)
