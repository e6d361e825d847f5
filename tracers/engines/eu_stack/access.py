"""Processes that eu-stack can look into, and why it cannot look into others."""

from __future__ import annotations

import os

from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable
from ...base import procfs
from ...base.scope import Scope
from ...outside.reads import Memory
from ..protocol import EngineUnavailable

_CLOSED = "this user may not look into"
_DEBUGGED = "is being debugged"
_KERNEL = "is a thread of the kernel"


def require_access(scope: Scope) -> None:
    """EngineUnavailable if this user may not look into one of the processes that are there, or nobody into any.

    If only some of them cannot be sampled by anybody, the others are: the samples that fail are told, with the reason.
    """
    processes = sorted(scope.tgids | {tgid for tid in scope.tids if (tgid := procfs.tgid_of(tid)) is not None})
    reasons = {pid: reason for pid in processes if (reason := obstacle(pid))}
    if reasons and len(reasons) == len(processes):
        raise unavailable(reasons[processes[0]], len(reasons) - 1)
    closed = [pid for pid in processes if pid not in reasons and not _is_open(pid)]
    if closed:
        reason = f"{_CLOSED} process {closed[0]} ({_name(closed[0])})"
        raise unavailable(reason, len(closed) - 1)


def obstacle(pid: int) -> str:
    """Reason why nobody can sample a process, root included; "" if somebody can."""
    if procfs.is_of_kernel(pid):
        return f"process {pid} ({_name(pid)}) {_KERNEL}: it has no user stack"
    for tid in procfs.tids(pid):
        if tracer := _tracer(pid, tid):
            by = f"{_name(tracer)} (pid {tracer})"
            return f"process {pid} ({_name(pid)}) {_DEBUGGED} by {by}: only one process can trace it by ptrace"
    return ""


def unavailable(reason: str, more: int = 0) -> StallscopeError:
    """The error with the remedy for this reason. ``more``: number of other processes with one."""
    if _KERNEL in reason:
        remedy = "use trace-offcpu or trace-oncpu, with another engine"
    elif _DEBUGGED in reason:
        remedy = "end that, or use another engine"
    elif _CLOSED not in reason and os.geteuid() == 0:
        remedy = "use another engine"
    else:
        remedy = "trace your own processes, or run it as root"
    return EngineUnavailable(f"{reason}, and {more:,} more" if more else reason, remedy)


def _is_open(pid: int) -> bool:
    """Whether ptrace(2) may be used on it: the kernel applies the same rules to its memory."""
    memory = Memory(pid)
    try:
        memory.read_some([(0, 0)])
    except PermissionError:
        return False
    except OSError:  # gone
        return True
    finally:
        memory.close()
    return True


def _tracer(pid: int, tid: int) -> int:
    """The process that traces a thread by ptrace(2); 0: none, or the thread is gone."""
    try:
        with open(f"/proc/{pid}/task/{tid}/status", "rb") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(b"TracerPid:")), 0)
    except OSError:
        return 0


def _name(pid: int) -> str:
    return printable(procfs.comm(pid))
