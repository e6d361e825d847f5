"""What a blocked thread waits for, as far as its stack tells: a lock, a timer, another thread, a peer, a device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..model.states import IDLE, INTERRUPTIBLE, RUNNABLE, STOPPED, TRACED

LOCK = "lock"
"""Somebody holds it: a mutex of the program or of the kernel, a file's lock."""
HELD = "held"
"""A device, a disk, memory, a page, another kernel's answer: all that the other words do not name."""
HALTED = "stopped"
"""By a signal or a debugger."""
SLEEP = "sleep"
"""The thread asked for it: a timer."""
THREAD = "thread"
"""Another thread: a condition variable, a semaphore, a join."""
PEER = "peer"
"""Who is at the other end of a pipe or a socket."""
CHILD = "child"
"""The end of another process."""
EVENTS = "events"
"""Whatever comes first: epoll, poll, a signal, a connection."""
CORE = "core"
"""It could run."""
WORK = "work"
"""A thread of the kernel that has nothing to do."""

TOLD_BY_OTHERS = frozenset((SLEEP, THREAD, PEER, CHILD, EVENTS, WORK))
"""Kinds of waits that another thread, a process, a peer or a timer ends: an effect of what that one does."""

_SLEEPS = frozenset(("do_nanosleep", "hrtimer_nanosleep"))
_THREADS = frozenset(("futex_wait",))
_PEERS = frozenset(
    (
        *("pipe_read", "pipe_write", "eventfd_read", "wait_for_partner"),
        *("sk_wait_data", "unix_stream_data_wait", "unix_stream_read_generic", "sock_alloc_send_pskb"),
        *("__skb_wait_for_more_packets", "sk_stream_wait_memory", "unix_wait_for_peer"),
    )
)
_EVENTS = frozenset(
    (
        *("ep_poll", "do_epoll_wait", "do_poll", "do_sys_poll", "do_select", "io_cqring_wait", "inet_csk_accept"),
        *("do_sigtimedwait", "sigsuspend", "__do_sys_pause", "read_events", "userfaultfd_read_iter"),
    )
)
_CHILDREN = frozenset(("do_wait",))
_KERNEL_LOCKS = re.compile(
    r"_*(rt_)?(mutex_lock|rwsem_down_|down_(read|write|interruptible|killable|timeout)?|rwbase_|rtmutex|percpu_rwsem|"
    r"locks_lock_inode_wait|fcntl_setlk|posix_lock_|lock_sock|ww_mutex)"
)
_USER_LOCKS = ("pthread_mutex_", "pthread_rwlock_", "lll_lock_wait", "std::mutex::", "std::shared_mutex::", "take_gil")
"""User functions whose futex wait is for a lock that somebody holds."""


def user_lock(frames: Sequence[str], kernel: str) -> str:
    """The function of the program's lock that is waited for; "" when it is none."""
    if kernel not in _THREADS:
        return ""
    return next((frame for frame in frames if frame.startswith(_USER_LOCKS)), "")


@lru_cache(maxsize=1 << 16)
def kind_of(state: str, frames: tuple[str, ...], kernel: str) -> str:
    """One of the words above, for a wait in this state and place (`wait_sites.Site`)."""
    if state.startswith(RUNNABLE):
        return CORE
    if state in (STOPPED, TRACED):
        return HALTED
    if state == IDLE:
        return WORK
    if user_lock(frames, kernel) or _KERNEL_LOCKS.match(kernel):
        return LOCK
    return _told_by_others(frames, kernel) if state == INTERRUPTIBLE else HELD


def _told_by_others(frames: Sequence[str], kernel: str) -> str:
    kinds = ((_SLEEPS, SLEEP), (_THREADS, THREAD), (_PEERS, PEER), (_EVENTS, EVENTS), (_CHILDREN, CHILD))
    for names, kind in kinds:
        if kernel in names:
            return kind
    return HELD if any(not frame.startswith("[") for frame in frames) else WORK
