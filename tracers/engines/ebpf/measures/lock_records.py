"""The maps and records of bpf/locks.bpf.c."""

from __future__ import annotations

import struct

KIND_SHIFT = FLAGS_SHIFT = 8
PRIVATE, PI, SEVERAL, LOOKS_LIKE_MUTEX, OF_PYTHON, OF_KERNEL = 1, 2, 4, 8, 16, 128
"""enum lock_kind."""
SPIN_FLAG, READ, WRITE, RT, PERCPU, MUTEX = 1, 2, 4, 8, 16, 32
"""LCB_F_… of include/trace/events/lock.h: flags of a lock of the kernel."""
UNREADABLE, UNSEEN = "locks in shared memory of processes that were gone", "waits for spinlocks"
"""Kinds of losses for which no table is too small."""
SMALL_TABLE = 4
SPIN_SLOTS, SPIN_FRAMES = 256, 12

SUM = struct.Struct("<3Q")
WAITING = struct.Struct("<QQ4IQQ80x")
"""struct lock_wait, without what it knows of the last wait, and its place in the queue."""
HOLDER = struct.Struct("<QIIIIQQ5I4x")
"""struct holder_key."""
QUEUE_KEY = struct.Struct("<QII")
QUEUE = struct.Struct("<10Q")
"""struct lock_queue."""
SHARED_WORD = struct.Struct("<QI4x")
RECORD = struct.Struct("<IIQ")
SPIN = struct.Struct(f"<5Q4I{SPIN_FRAMES}Q")
"""struct spin_sum."""
