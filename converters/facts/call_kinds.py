"""Kinds of waits where the kernel's functions are not known: told by the function of the C library, or of a runtime, in
which a thread is blocked. Engines that walk stacks from outside (eu-stack) see no others."""

from __future__ import annotations

import re
from functools import lru_cache

_NOTIFIED = re.compile(
    r"(pthread_(cond|barrier)_.*wait|pthread_.*join|sem_.*wait|(new|old)_sem_wait|do_futex_wait|futex|"
    r"runtime\.futex|std::condition_variable|std::thread::join)"
)
"""Begins of functions that wait for another thread (glibc's nptl/; Go's runtime)."""
_TIMERS = frozenset(("clock_nanosleep", "nanosleep", "usleep", "sleep", "thrd_sleep"))
_CHILDREN = frozenset(("wait", "wait3", "wait4", "waitid", "waitpid"))
FEW_EVENTS_CALLS = frozenset(("poll", "ppoll", "select", "pselect", "pselect6"))
"""The calls that wait for one of a few files."""
_EVENTS = FEW_EVENTS_CALLS | {
    *("epoll_wait", "epoll_pwait", "epoll_pwait2", "io_getevents", "io_uring_enter", "pause", "sigsuspend"),
    *("sigwait", "sigwaitinfo", "sigtimedwait", "rt_sigtimedwait", "rt_sigsuspend"),
}
_SOCKETS = re.compile(r"(recv|send)(|from|to|msg|mmsg)")
_FILES = frozenset(("read", "write", "readv", "writev", "splice", "sendfile"))
"""Functions that wait uninterruptibly for a disk, but interruptibly for a pipe, a socket or a terminal."""

ASKING = frozenset(
    (*FEW_EVENTS_CALLS, "epoll_wait", "epoll_pwait", "epoll_pwait2", "sched_yield", "pthread_yield", "thrd_yield")
)
"""The calls with which a thread asks whether something has happened: one that runs in them polls."""

BY_THREAD, BY_TIMER, BY_CHILD, BY_EVENTS, BY_PEER, BY_FILE = "thread", "timer", "child", "events", "peer", "file"
"""Kinds of what ends a wait."""


@lru_cache(maxsize=1 << 12)
def ended_by(call: str) -> str:
    """Kind of what ends a wait in this function; "" if its name does not tell."""
    if _NOTIFIED.match(call):
        return BY_THREAD
    kinds = ((_TIMERS, BY_TIMER), (_CHILDREN, BY_CHILD), (_EVENTS, BY_EVENTS), (_FILES, BY_FILE))
    found = next((kind for names, kind in kinds if call in names), "")
    return BY_PEER if not found and _SOCKETS.fullmatch(call) else found
