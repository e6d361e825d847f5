"""The table of locks, as text."""

from __future__ import annotations

import io

from host_profiles import in_queue
from lock_profiles import HOSTILE, MS, lock
from rich.console import Console
from stallscope.converters.model.locks import CONDITION, FUTEX, KERNEL, SHARED, WAKER, LockThread, LockTimes
from stallscope.converters.summary.locks_table import locks_table, shown_locks


def text(*locks: LockTimes, wall: int = 900 * MS) -> str:
    file = io.StringIO()
    Console(file=file, width=200, color_system=None, markup=False, highlight=False).print(locks_table(locks, wall))
    return file.getvalue()


def test_lock_its_waiters_and_its_holder() -> None:
    said = text(lock())
    assert "mutex table+0x40 of train (7)" in said
    assert "2 threads waited in step → lock" in said
    assert "held by train (saver) 10 in save → unlock 97.8 %" in said
    assert "10.0 %" in said
    assert "1 wait had not ended" in said


def test_who_only_ended_waits_is_not_said_to_have_had_it() -> None:
    giver = LockThread("train", "train", 7, 10, 90 * MS, 29, WAKER)
    assert "given back by train 10 100.0 %" in text(lock(kind=FUTEX, holders=[giver]))
    assert "futex, or another kind of wait, table+0x40" in text(lock(kind=FUTEX))
    assert "who had it is not known" in text(lock(holders=[]))


def test_whose_it_is() -> None:
    assert "mutex /dev/shm/x+0x0 of several processes" in text(lock(owned_by=SHARED, name="/dev/shm/x+0x0"))
    assert "kernel's rwsem table+0x40" in text(lock(owned_by=KERNEL, kind="rwsem", pid=0))
    own = lock(owned_by=KERNEL, kind="rwsem", name="mm_struct.mmap_lock", process="app", pid=7)
    assert "kernel's rwsem mm_struct.mmap_lock of app (7)" in text(own)


def test_lock_of_the_kernel_without_a_name() -> None:
    """Has the function that takes it; others need none."""
    own = lock(owned_by=KERNEL, pid=0, name="0xffff888101", taken_in="tun_chr_ioctl")
    assert "kernel's mutex 0xffff888101, taken in tun_chr_ioctl" in text(own)
    own.name = "in kmalloc-2k #3"
    assert "kernel's mutex in kmalloc-2k #3, taken in tun_chr_ioctl" in text(own)
    own.name = "rtnl_mutex"
    assert "taken in" not in text(own)


def test_how_much_longer_waits_are_with_others() -> None:
    assert "3.0 waited at a time; with others a wait takes 3.9 times as long as alone" in text(lock(**in_queue()))
    few = text(lock(**in_queue(alone=9)))
    assert "3.0 waited at a time" in few
    assert "as alone" not in few
    assert "at a time" not in text(lock(), lock(**in_queue(judged=30, judged_time=110 * MS)))


def test_convoy_is_named() -> None:
    assert "convoy: somebody always waited for 300 ms, 40 waits" in text(lock(queue=300 * MS, queue_waits=40))


def test_waits_to_be_told_and_short_ones_are_left_out() -> None:
    long, short, told = lock(), lock(time=MS // 10), lock(kind=CONDITION)
    assert shown_locks([long, short, told], 900 * MS) == [long]


def test_hostile_names_are_made_printable() -> None:
    holder = LockThread(HOSTILE, HOSTILE, 1, 2, 90 * MS, 3, frames=(HOSTILE,))
    said = text(lock(name=HOSTILE, process=HOSTILE, holders=[holder]))
    assert "\x1b" not in said
    assert "\u202e" not in said
