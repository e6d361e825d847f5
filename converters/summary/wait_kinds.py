"""What a blocked thread waits for, as far as its stack tells: a lock, a timer, another thread, a peer, a device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..model.states import IDLE, INTERRUPTIBLE, OTHER, RUNNABLE, STOPPED, TRACED
from .call_kinds import BY_CHILD, BY_EVENTS, BY_FILE, BY_PEER, BY_THREAD, BY_TIMER, FEW_EVENTS_CALLS, ended_by
from .frame_names import without_line
from .runtimes import is_parked

LOCK = "lock"
"""A lock with a holder: a mutex of the program or of the kernel, a file's."""
HELD = "held"
"""A device, a disk, memory, a page, another kernel's answer: all that no other kind covers."""
HALTED = "stopped"
"""Halted by a signal or a debugger."""
SLEEP = "sleep"
"""A timer that the thread set."""
THREAD = "thread"
"""Another thread: a condition variable, a semaphore, a join."""
PEER = "peer"
"""The other end of a pipe or a socket."""
CHILD = "child"
"""The end of another process."""
EVENTS = "events"
"""The first of several: epoll, poll, a signal, a connection."""
CORE = "core"
"""A core: it is runnable."""
WORK = "work"
"""Work, in an idle kernel thread or a thread of a language's runtime."""
UNKNOWN = "unknown"
"""Neither a state nor a stack was reported: nothing is said about it."""

TOLD_BY_OTHERS = frozenset((SLEEP, THREAD, PEER, CHILD, EVENTS, WORK))
"""Kinds of waits that another thread, a process, a peer or a timer ends: effects of a cause elsewhere."""

_SLEEPS = frozenset(("do_nanosleep", "hrtimer_nanosleep"))
_THREADS = frozenset(("futex_wait",))
_PEERS = frozenset(
    (
        *("pipe_read", "pipe_write", "eventfd_read", "wait_for_partner"),
        *("sk_wait_data", "unix_stream_data_wait", "unix_stream_read_generic", "sock_alloc_send_pskb"),
        *("__skb_wait_for_more_packets", "sk_stream_wait_memory", "unix_wait_for_peer"),
    )
)
FEW_EVENTS = frozenset(("do_poll", "do_sys_poll", "do_select"))
"""Functions of the kernel that wait for one of a few files; many are waited for with epoll."""
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
TAKE_GIL = "take_gil"
"""CPython's function that waits for its interpreter lock (Python/ceval_gil.h)."""
_USER_LOCKS = (
    *("pthread_mutex_", "pthread_rwlock_", "lll_lock_wait", "std::mutex::", "std::shared_mutex::"),
    *(TAKE_GIL, "ObjectMonitor::EnterI", "ObjectMonitor::enter"),
)
"""User functions whose futex wait is for a lock with a holder."""


_LOCKS_BY_EVENTS = frozenset(("ProcSleep",))
"""The same for locks that another process frees with a signal or a byte (PostgreSQL's, storage/lmgr/proc.c)."""
_CONNECTIONS = frozenset(("accept", "accept4"))
_OF_PEER = re.compile(r"(.*[_:.]|)(recv|read|send|write|connect)|.*(Recv|Read|Send|Write|Connect)", re.DOTALL)
"""Functions that wait with poll for what one other end does."""
_LIBPQ = re.compile(r"PQ[a-z]\w*|pq[A-Z]\w*")
"""Functions of PostgreSQL's client library, which waits with poll for its one server (interfaces/libpq/fe-misc.c)."""
_SELECTS_FOR_PEER = re.compile(r"(Connection\.)?_poll|(Popen\.)?_communicate")
"""Functions of Python's multiprocessing and subprocess that do it with a selector."""
_NO_PLACE = frozenset(("[lost]", "[not sampled]", "[other stacks]", "[stopped by eu-stack]"))
"""What stands for time whose place is not known, or that the engine itself took: nothing is said of it as of a wait."""
_BY_STATE = {STOPPED: HALTED, TRACED: HALTED, IDLE: WORK}
_BY_CALL = {BY_THREAD: THREAD, BY_TIMER: SLEEP, BY_CHILD: CHILD, BY_EVENTS: EVENTS, BY_PEER: PEER, BY_FILE: PEER}


def is_of_peer(frame: str) -> bool:
    """Whether a function, given by its label, waits with poll for what one other end does."""
    return bool(_OF_PEER.match(without_line(frame)) or _LIBPQ.fullmatch(frame)) or selects_for_peer(frame)


def selects_for_peer(frame: str) -> bool:
    """Whether a function of Python, given by its label, waits with a selector for what one other end does."""
    return bool(_SELECTS_FOR_PEER.fullmatch(frame))


def is_placeholder(frame: str) -> bool:
    """Whether it stands for a missing stack: ``[no stack]``, ``[switch not reported]``."""
    return frame[:1] == "[" and (" " in frame or frame in _NO_PLACE)


def is_nowhere(frames: Sequence[str], kernel: str) -> bool:
    """Whether nothing is known of the place of a wait."""
    return bool(frames) and not kernel and all(map(is_placeholder, frames))


def waits_for_few(frames: Sequence[str], kernel: str) -> bool:
    """Whether it waits for one of a few files: not with epoll."""
    return kernel in FEW_EVENTS if kernel else bool(frames) and frames[-1] in FEW_EVENTS_CALLS


def user_lock(frames: Sequence[str], kernel: str) -> str:
    """The function that waits for a lock of the program; "" if there is none."""
    by = ended_by(frames[-1]) if frames and not kernel else ""
    if kernel in _EVENTS or by == BY_EVENTS:
        return next((frame for frame in frames if frame in _LOCKS_BY_EVENTS), "")
    if by not in ("", BY_THREAD) or (kernel and kernel not in _THREADS):
        return ""
    return next((frame for frame in frames if frame.startswith(_USER_LOCKS)), "")


@lru_cache(maxsize=1 << 16)
def kind_of(state: str, frames: tuple[str, ...], kernel: str) -> str:
    """The kind of a wait in this state and place (`wait_sites.Site`)."""
    if state.startswith(RUNNABLE):
        return CORE
    if _is_unknown(state, frames, kernel):
        return UNKNOWN
    if state in _BY_STATE:
        return _BY_STATE[state]
    if user_lock(frames, kernel) or _KERNEL_LOCKS.match(kernel):
        return LOCK
    if state == INTERRUPTIBLE or (state == OTHER and _tells(frames, kernel)):
        return _told_by_others(frames, kernel)
    return HELD


def _is_unknown(state: str, frames: Sequence[str], kernel: str) -> bool:
    if kernel:
        return False
    if frames and _NO_PLACE.issuperset(frames):
        return True
    # An interruptible wait without a stack is, as a rule, that of an idle thread.
    is_told = state in _BY_STATE or state == INTERRUPTIBLE or not (frames or state == OTHER)
    return not is_told and all(map(is_placeholder, frames))


def _tells(frames: Sequence[str], kernel: str) -> bool:
    """Whether the place alone shows that a wait, whose state is not known, is not for a disk."""
    if kernel:
        return kernel in _SLEEPS | _THREADS | _PEERS | _EVENTS | _CHILDREN
    return bool(frames) and (is_parked(frames[0]) or ended_by(frames[-1]) not in ("", BY_FILE))


def _told_by_others(frames: Sequence[str], kernel: str) -> str:
    if frames and is_parked(frames[0]):
        return WORK
    if frames and frames[-1] in _CONNECTIONS:
        return EVENTS
    if waits_for_few(frames, kernel) and any(map(is_of_peer, frames[-3:-1])):
        return PEER
    kinds = ((_SLEEPS, SLEEP), (_THREADS, THREAD), (_PEERS, PEER), (_EVENTS, EVENTS), (_CHILDREN, CHILD))
    for names, kind in kinds:
        if kernel in names:
            return kind
    if not kernel and frames and (by := ended_by(frames[-1])):
        return _BY_CALL[by]
    return HELD if any(not frame.startswith("[") for frame in frames) else WORK
