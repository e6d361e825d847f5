"""Places in the kernel where threads wait: the system call, and the function that waits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..model import Frame
from .frame_names import label

_SCHEDULER = (
    # schedule, schedule_timeout, schedule_hrtimeout_range, schedule_preempt_disabled, schedule_rtlock …
    "schedule",
    "__schedule",
    "io_schedule",
    "preempt_schedule",
    "rt_mutex_schedule",
    "__cond_resched",
    # Their callers show what is waited for: do_poll, wait_for_completion, sk_wait_data.
    "poll_schedule_timeout",
    "__wait_for_common",
    "wait_woken",
    # The probes themselves.
    "bpf_prog_",
    "bpf_trace_run",
    "__bpf_trace_",
    "__traceiter_",
)
"""Prefixes of kernel entries into the scheduler."""

_SAME_WAIT = {
    "futex_wait_queue": "futex_wait",
    "futex_wait_queue_me": "futex_wait",
    "futex_do_wait": "futex_wait",
    "__futex_wait": "futex_wait",
    # The kernel leaves the scheduler's own functions out of the stack of a thread that slept when the trace began.
    "hrtimer_nanosleep": "do_nanosleep",
    "anon_pipe_read": "pipe_read",
    "anon_pipe_write": "pipe_write",
}
"""Names that differ from one kernel version to the next."""

_SYSCALL = re.compile(r"(?:__(?:(?:x64|ia32|arm64|riscv|do|se)_)?sys_|ksys_|kernel_(?=wait))(\w+)")
PAGE_FAULT = frozenset(("asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "do_page_fault"))
"""Functions of the kernel that a page fault is in."""


def is_system_call(name: str) -> bool:
    """Whether a function of the kernel is a system call's."""
    return _SYSCALL.match(name) is not None


def system_call_of(kernel: Sequence[Frame]) -> str:
    """``ioctl`` of ``__x64_sys_ioctl``; ``page fault``, also in a system call; "" when neither is on the stack."""
    found = ""
    for frame in kernel:
        if frame.name in PAGE_FAULT:
            return "page fault"
        if not found and (match := _SYSCALL.match(frame.name)):
            found = match.group(1)
    return found


def kernel_wait_of(kernel: Sequence[Frame]) -> str:
    """The innermost function that is not the scheduler's; "" when there is none."""
    # Whatever __schedule called is the probe that took this stack, under any name.
    into_scheduler = [i for i, frame in enumerate(kernel) if frame.name == "__schedule"]
    for frame in reversed(kernel[: into_scheduler[-1]] if into_scheduler else kernel):
        name = label(frame)
        if not name.startswith(_SCHEDULER):
            return _SAME_WAIT.get(name, name)
    return ""
