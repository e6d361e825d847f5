"""The states of a thread that is not running, as named in the label ``state`` and in `ThreadTimes.blocked`."""

from __future__ import annotations

INTERRUPTIBLE, UNINTERRUPTIBLE, STOPPED, TRACED, IDLE, OTHER = BLOCKED = (
    "interruptible",
    "uninterruptible",
    "stopped",
    "traced",
    "idle",
    "other",
)
"""Blocked: waits for something; in the order in which they are reported."""

RUNNABLE = "runnable-"
"""Prefix of the next two names."""
WOKEN, PREEMPTED = RUNNABLE_STATES = ("runnable-woken", "runnable-preempted")
"""Runnable: waits for a core, after a wait or after another thread took its core."""

RUNNING = "running"
"""State of a thread on a core."""

ENDED = "ended"
"""State of a thread that has exited."""

UNKNOWN = "unknown"
"""The events that would show the state were lost, or were not recorded."""

BY_LETTER = {
    "S": INTERRUPTIBLE,
    "D": UNINTERRUPTIBLE,
    "K": UNINTERRUPTIBLE,
    "T": STOPPED,
    "t": TRACED,
    "I": IDLE,
    "P": OTHER,
}
"""The kernel's letters, as in proc(5) and in the event sched_switch (include/trace/events/sched.h of Linux)."""


PREEMPTED_BIT, UNKNOWN_BIT = 0x100, 0x200
"""Bits of the next table: still runnable when it lost its core; unknown (ours, the kernel has no such bit)."""

BY_BITS = {
    0: PREEMPTED,
    0x01: INTERRUPTIBLE,
    0x02: UNINTERRUPTIBLE,
    0x04: STOPPED,
    0x08: TRACED,
    0x10: ENDED,
    0x20: ENDED,
    0x40: OTHER,
    0x80: IDLE,
    PREEMPTED_BIT: PREEMPTED,
    UNKNOWN_BIT: UNKNOWN,
}
"""State of a thread after leaving its core, by ``prev_state`` of sched_switch in kernels from 4.14 on
(``__trace_sched_switch_state`` in include/trace/events/sched.h): TASK_REPORT, then REPORT_TASK_IDLE, then preempted."""
