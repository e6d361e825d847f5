"""Runtimes of languages: where their threads wait for work, and which functions are their standard library."""

from __future__ import annotations

import re
from functools import lru_cache

from ..model import Frame
from .ownership import is_own

_OF_GO = frozenset(
    (
        *("runtime.findRunnable", "runtime.findrunnable", "runtime.stopm", "runtime.sysmon"),
        *("runtime.templateThread", "os/signal.signal_recv"),
    )
)
"""A thread without a goroutine (runtime/proc.go), the monitor, and the reader of signals. Programs in C++ and Rust have
no such names."""
_OF_HOTSPOT = frozenset(
    (
        *("CallJavaMainInNewThread", "GangWorker::loop", "WorkerThread::run", "ConcurrentGCThread::run"),
        *("CompileQueue::get", "VMThread::wait_for_operation", "WatcherThread::sleep", "NMethodSweeper::sweeper_loop"),
        *("ServiceThread::service_thread_entry", "NotificationThread::notification_thread_entry"),
        *("MonitorDeflationThread::monitor_deflation_thread_entry", "os::signal_wait"),
        *("JVM_WaitForReferencePendingList",),
    )
)
"""In libraries: the launcher's thread, workers and services of the virtual machine (src/hotspot/share/runtime, gc)."""

_GO = re.compile(
    r"(runtime|syscall)(/[\w/]+)?\.\w|internal/[\w/.]+\.[\w(]|"
    r"(bufio|context|database|encoding|fmt|io|log|net|os|reflect|sort|sync|testing|time)(/[\w/]+)?"
    r"\.(\(\*?\w|[A-Z]|runtime_)"
)
"""Go links its standard library into each program: only the names of its packages tell it apart."""


def is_parked(function: str) -> bool:
    """Whether a name is one that `parked_in` may return."""
    return function in _OF_GO or function in _OF_HOTSPOT


@lru_cache(maxsize=1 << 14)
def of_go_library(name: str) -> bool:
    """Whether a function is one of Go's standard library."""
    return "." in name and "::" not in name and _GO.match(name) is not None


def parked_in(frame: Frame) -> str:
    """The function, if a thread waits in it until its runtime has work for it; else ""."""
    name = _function(frame.name)
    return name if name in _OF_GO or (name in _OF_HOTSPOT and not is_own(frame)) else ""


def _function(name: str) -> str:
    """Without the arguments of C++."""
    return name[: name.index("(")] if name[-1:] == ")" and "(" in name else name
