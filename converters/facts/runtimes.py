"""Runtimes of languages: where their threads wait for work, and which functions are their standard library."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from ..model import Frame
from .ownership import is_own

_OF_GO = frozenset(
    (
        *("runtime.findRunnable", "runtime.findrunnable", "runtime.stopm", "runtime.sysmon"),
        *("runtime.templateThread", "os/signal.signal_recv", "runtime.stoplockedm", "runtime.mexit"),
    )
)
"""A thread without a goroutine, or whose own one does not run (runtime/proc.go), the monitor, and the reader of
signals. Programs in C++ and Rust have no such names."""
_GO_WAITS = re.compile(
    r"runtime\.(futex|futexsleep|futexwakeup|semasleep|semawakeup|notesleep|notetsleepg?|notetsleep_internal|notewakeup|"
    r"mPark|usleep|osyield|epollwait|netpoll|write1?)|"
    r"(runtime/internal|internal/runtime)/syscall(/linux)?\.\w+"
)
"""Functions in which Go's runtime waits (runtime/lock_futex.go, os_linux.go, netpoll_epoll.go): their callers tell
what for."""
_GO_STARTS = re.compile(r"runtime\.(goexit|mcall|systemstack|morestack|mstart[01]?|rt0_go)")
"""Functions with which stacks of goroutines and of the scheduler begin."""
LAUNCHER = "CallJavaMainInNewThread"
"""The main thread of Java waits in it for the end of the one that runs the program (src/java.base/*/native/libjli)."""
_OF_HOTSPOT = frozenset(
    (
        *(LAUNCHER, "GangWorker::loop", "WorkerThread::run", "ConcurrentGCThread::run"),
        *("CompileQueue::get", "VMThread::wait_for_operation", "WatcherThread::sleep", "NMethodSweeper::sweeper_loop"),
        *("ServiceThread::service_thread_entry", "NotificationThread::notification_thread_entry"),
        *("MonitorDeflationThread::monitor_deflation_thread_entry", "os::signal_wait"),
        *("JVM_WaitForReferencePendingList",),
    )
)
"""Functions in libraries: the launcher's thread, workers and services of the virtual machine
(src/hotspot/share/runtime, gc)."""

PROGRESS = frozenset(("ncclProxyProgress", "ncclRmaProxyProgressThread", "persistentSocketThread"))
"""Functions of NCCL's threads that look again and again whether the network or a GPU has moved something, as long as an
operation is under way: they use a core while they wait (src/proxy.cc, src/rma/, src/transport/net_socket.cc;
the names are those in the symbol table of PyPI's nvidia-nccl-cu12 2.32.3)."""
_HELPERS_OF_NCCL = PROGRESS | {
    *("ncclProxyService", "ncclProxyServiceUDS", "rasThreadMain", "ncclIbAsyncThreadMain", "ncclProfilerThreadFunc"),
}
"""Functions of all threads that NCCL starts beside those of the program: where these wait, they wait for work."""
_OF_PROGRAMS = {
    **dict.fromkeys(_HELPERS_OF_NCCL, re.compile(r"lib(nccl|rccl|torch_(cuda|hip))([-_.][-\w.]*)?\.so[.\d]*")),
    **dict.fromkeys(
        (
            *("WalWriterMain", "BackgroundWriterMain", "CheckpointerMain", "AutoVacLauncherMain", "ApplyLauncherMain"),
            *("SysLoggerMain", "PgArchiverMain", "WalSummarizerMain"),
        ),
        re.compile(r"postgres(ql)?"),
    ),
    **dict.fromkeys(
        (
            *("handle_connections_sockets", "handle_manager", "signal_hand"),
            *("tpool::thread_pool_generic::wait_for_tasks", "tpool::waiter_task"),
        ),
        re.compile(r"mariadbd|mysqld"),
    ),
    "fuse_session_loop_mt": re.compile(r"libfuse3?\.so[.\d]*"),
}
"""Functions of servers, with the file that has them: PostgreSQL's processes in the background (src/backend/postmaster,
replication), the threads of MariaDB that wait for connections and tasks (sql/mysqld.cc, tpool), and the main thread of
a FUSE file system, which waits for the end of the threads that serve it (lib/fuse_loop_mt.c)."""
_MASTERS = {
    **dict.fromkeys(("PostmasterMain", "ServerLoop"), re.compile(r"postgres(ql)?")),
    **dict.fromkeys(("ngx_master_process_cycle",), re.compile(r"nginx")),
}
"""Functions of processes that only start others, if nothing of the program is below them, with the file that has them
(src/backend/postmaster, src/os/unix/ngx_process_cycle.c)."""
_SCRIPTS = re.compile(
    r"(^|.*/)("
    r"socketserver\.py:(\w+\.)?serve_forever|http/server\.py:(\w+\.)?handle_one_request|"
    r"wsgiref/simple_server\.py:(\w+\.)?handle|"
    r"multiprocessing/pool\.py:worker|concurrent/futures/(process\.py:_process_worker|thread\.py:_worker)|"
    r"gunicorn/(workers/sync\.py:(\w+\.)?wait|workers/gthread\.py:(\w+\.)?run|arbiter\.py:(\w+\.)?sleep)|"
    r"waitress/wasyncore\.py:poll2?|billiard/pool\.py:(\w+\.)?(workloop|_wait_for_job|wait_for_job)|"
    r"distributed/threadpoolexecutor\.py:_worker|anyio/_backends/_asyncio\.py:(WorkerThread\.)?run|"
    r"sentry_sdk/worker\.py:(\w+\.)?_target|apscheduler/schedulers/blocking\.py:(\w+\.)?_main_loop|"
    r"torch/utils/data/_utils/(worker\.py:_worker_loop|pin_memory\.py:(_pin_memory_loop|do_one_step))"
    r")"
)
"""Functions of Python's libraries (``file:function``) in which servers wait for the next request or connection, and
workers for what they have to do. They also call what they are given, so that nothing but `_BELOW` may be below them."""
_BELOW = re.compile(
    r"(^|.*/)(socket|selectors|ssl|queue|threading|connection|queues|synchronize|compat)\.py|.*/(multiprocessing|billiard)/.*"
)
"""Files of Python's library, and of billiard, whose functions wait for them."""

_GO = re.compile(
    r"(runtime|syscall)(/[\w/]+)?\.\w|internal/[\w/.]+\.[\w(]|"
    r"(bufio|context|database|encoding|fmt|io|log|net|os|reflect|sort|sync|testing|time)(/[\w/]+)?"
    r"\.(\(\*?\w|[A-Z]|runtime_)"
)
"""Go links its standard library into each program: only the names of its packages tell it apart."""


class Scripted(Protocol):
    """A function, as `stacks.Told` has it."""

    is_python: bool
    file: str
    name: str


def waits_for_request(library: Iterable[Scripted]) -> bool:
    """Whether a function of a server's or a pool's library waits for the next request or task. ``library``: the frames
    between the program and the C library, innermost first."""
    for frame in library:
        if frame.is_python:
            if _SCRIPTS.fullmatch(f"{frame.file}:{frame.name}"):
                return True
            if not _BELOW.fullmatch(frame.file):
                return False
    return False


def is_master(innermost: Frame) -> bool:
    """Whether the program's innermost function is one in which a process waits until it has to start others."""
    files = _MASTERS.get(_function(innermost.name))
    return files is not None and is_in(innermost, files)


def is_parked(function: str) -> bool:
    """True for a name that `parked_in` may return."""
    return function in _OF_GO or function in _OF_HOTSPOT or function in _OF_PROGRAMS


@lru_cache(maxsize=1 << 14)
def of_go_library(name: str) -> bool:
    """Whether a function is one of Go's standard library."""
    return "." in name and "::" not in name and _GO.match(name) is not None


def go_caller(names: Iterable[str], called: str) -> str:
    """The function of Go's runtime that waits, by means of ``called``. ``names``: a stack of nothing but Go's library,
    innermost function first."""
    if not _GO_WAITS.fullmatch(called):
        return called
    caller = next((name for name in names if not _GO_WAITS.fullmatch(name)), "")
    return caller if of_go_library(caller) and not _GO_STARTS.fullmatch(caller) else called


def parked_in(frame: Frame) -> str:
    """The function, if a thread waits in it until its runtime has work for it; else ""."""
    name = _function(frame.name)
    if files := _OF_PROGRAMS.get(name):
        return name if is_in(frame, files) else ""
    return name if name in _OF_GO or (name in _OF_HOTSPOT and not is_own(frame)) else ""


def is_in(frame: Frame, files: re.Pattern[str]) -> bool:
    """Whether a function is one of an executable or a library of this name."""
    return frame.module is not None and files.fullmatch(frame.module.path.rpartition("/")[2]) is not None


def _function(name: str) -> str:
    """Name of a function without the arguments of C++."""
    return name[: name.index("(")] if name[-1:] == ")" and "(" in name else name
