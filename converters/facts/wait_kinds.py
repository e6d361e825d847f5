"""The kinds of waits, by who or what ends them."""

from __future__ import annotations

LOCK = "lock"
"""A lock with a holder: a mutex of the program or of the kernel, a file's."""
HELD = "held"
"""A device, a disk, memory, a page, another kernel's answer: all that no other kind covers."""
HALTED = "stopped"
"""Halted by a signal, a debugger or a freezer."""
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
"""Kind of a wait without a reported state or stack: nothing is said about it."""

TOLD_BY_OTHERS = frozenset((SLEEP, THREAD, PEER, CHILD, EVENTS, WORK))
"""Kinds of waits that another thread, a process, a peer or a timer ends: effects of a cause elsewhere."""
