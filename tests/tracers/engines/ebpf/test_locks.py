"""Locks that waits are for, and who had them: from rows that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from stallscope.converters.model import Frame, Module, Stack
from stallscope.converters.model.locks import KERNEL, OWNER, PROCESS, SHARED, WAKER, WRITER, LockTimes
from stallscope.converters.model.wakers import SEPARATOR
from stallscope.tracers.base import procfs
from stallscope.tracers.engines.ebpf import locks as module
from stallscope.tracers.engines.ebpf.locks import kernel_kind, locks_of
from stallscope.tracers.engines.ebpf.measures.lock_objects import OBJECT, LockObject
from stallscope.tracers.engines.ebpf.measures.lock_records import (
    FLAGS_SHIFT,
    LOOKS_LIKE_MUTEX,
    OF_KERNEL,
    OF_PYTHON,
    PI,
    PRIVATE,
    UNREADABLE,
)
from stallscope.tracers.engines.ebpf.measures.protocol import (
    LockHolder,
    LockRows,
    LockSum,
    LockWait,
    SharedWord,
)
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import BY_THREAD, BY_UNKNOWN, STATES, Origin, Waker

SLEEP = STATES.index("interruptible")
FUTEX = ("__x64_sys_futex", "futex_wait")
PLACES = {
    1: ("main", "step", "pthread_mutex_lock"),
    2: ("main", "step", "pthread_rwlock_rdlock"),
    3: ("main", "step", "pthread_cond_wait@@GLIBC_2.3.2"),
    4: ("main", "step", "__new_sem_wait_slow64.constprop.0"),
    5: ("main", "take_gil", "pthread_cond_timedwait"),
    6: ("main", "own_lock"),
    7: ("main", "pthread_barrier_wait"),
    8: ("main", "__pthread_clockjoin_ex"),
    9: ("main", "drop_gil", "pthread_cond_wait"),
}
NOBODY = Waker(0, 0, 0, 0, 0, 0, BY_UNKNOWN)
GIVER = Waker(0, 0, 9, 7, 0, 0, BY_THREAD)
ADDRESS = 0x5000
APP = Module("/opt/app")


class Stacks:
    kernel_addresses = False

    def of(self, row: Row) -> Stack:
        kernel = FUTEX if row.origin.kstack == 1 else ("asm_exc_page_fault", "folio_wait_bit")
        user = PLACES.get(row.origin.ustack, ())
        return (*(Frame(name) for name in user), *(Frame(name, "kernel") for name in kernel))


class Names:
    def process(self, pid: int) -> str:
        return f"app{pid}"

    def thread(self, pid: int, first: int) -> str:
        return f"thread{first}" if first >= 0 else f"app{pid}"

    def pid(self, number: int) -> tuple[int, int]:
        return number, 1


class Wakers:
    def of(self, wakers: tuple[Waker, ...]) -> Any:
        (waker,) = wakers
        if not waker.tid:
            return (SEPARATOR, Frame("[unknown waker]", "waker")), (("waker", "[unknown waker]"),)
        frames = tuple(
            Frame(name, "waker", APP) for name in ("try_to_wake_up", "give_back", "main", f"app-{waker.tgid}")
        )
        labels = (("waker", f"app-{waker.tgid}"), ("waker_thread", "app"), ("waker_tid", waker.tid))
        return (SEPARATOR, *frames), labels


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "tgid_of", lambda tid: None)
    monkeypatch.setattr(
        module, "LockNames", lambda capture, found, **_: SimpleNamespace(name=lambda key, kind: f"{key} {kind}")
    )


def wait(ustack: int = 1, kind: int = PRIVATE, *, time: int = 50, tid: int = 8, tgid: int = 7, kstack: int = 1,
         address: int = ADDRESS) -> LockWait:  # fmt: skip
    row = Row(Origin(ustack, kstack, 0, tid, tgid, tid, SLEEP), STATES[SLEEP], ())
    return LockWait(row, address, kind, LockSum(time, 2, time))


def holder(owner: int = 0, second: int = 0, kind: int = PRIVATE, *, waker: Waker = NOBODY, time: int = 50,
           tgid: int = 7, address: int = ADDRESS) -> LockHolder:  # fmt: skip
    row = Row(Origin(0, 0, 0, 0, tgid, 0, SLEEP), STATES[SLEEP], (), wakers=(waker,))
    return LockHolder(tgid, address, kind, owner, second, row, LockSum(time, 2, time))


def locks(
    waits: list[LockWait],
    holders: list[LockHolder] | None = None,
    processes: dict[int, Any] | None = None,
    lost: dict[str, int] | None = None,
    **more: Any,
) -> list[LockTimes]:
    found = LockRows(waits, holders or [], **more)
    ids = [(7, tid) for tid in (7, 8, 9)] + [(20, 20)]
    records = [SimpleNamespace(thread=SimpleNamespace(key=SimpleNamespace(tgid=g, tid=t), first=t)) for g, t in ids]
    capture = SimpleNamespace(
        locks=found,
        threads=records,
        lives=SimpleNamespace(threads={tid: tid for _, tid in ids}),
        spaces=SimpleNamespace(processes=processes or {}),
        losses=lost if lost is not None else {},
    )
    given = (cast(Any, each) for each in (Stacks(), Names(), Wakers()))
    return locks_of(cast(Any, capture), {}, *given)


@pytest.mark.parametrize(
    ("ustack", "kind", "expected"),
    [
        (1, PRIVATE, "mutex"),
        (1, PRIVATE | PI, "PI mutex"),
        (2, PRIVATE, "rwlock"),
        (3, PRIVATE, "condition"),
        (3, PRIVATE | LOOKS_LIKE_MUTEX, "mutex"),  # it takes the mutex again
        (4, PRIVATE, "semaphore"),
        (5, PRIVATE, "GIL"),
        (5, PRIVATE | LOOKS_LIKE_MUTEX, "GIL"),
        (9, PRIVATE | LOOKS_LIKE_MUTEX, "GIL"),
        (9, PRIVATE, "condition"),  # until another thread has taken it
        (6, PRIVATE, "futex"),
        (6, PRIVATE | OF_PYTHON, "GIL"),  # of an interpreter without names of functions
        (7, PRIVATE, "barrier"),
        (8, 0, "join"),
    ],
)
def test_kinds(ustack: int, kind: int, expected: str) -> None:
    (lock,) = locks([wait(ustack, kind)])
    assert (lock.kind, lock.owned_by) == (expected, PROCESS)


def test_waits_are_added_up_by_thread_and_place() -> None:
    (lock,) = locks([wait(), wait(time=30), wait(tid=9, time=100)])
    assert (lock.time, lock.waits, lock.max, lock.pid, lock.process) == (180, 6, 100, 7, "app7")
    assert [(thread.tid, thread.time) for thread in lock.waiters] == [(9, 100), (8, 80)]
    assert sum(place.time for place in lock.places) == 180


def test_parts_of_pythons_lock_are_one() -> None:
    """The parts are a mutex and a condition variable. Who has the mutex does not have the lock."""
    mutex = wait(5, PRIVATE | LOOKS_LIKE_MUTEX, address=ADDRESS + 40)
    holders = [holder(9, kind=PRIVATE | LOOKS_LIKE_MUTEX, address=ADDRESS + 40, waker=GIVER), holder(waker=GIVER)]
    queues = {(ADDRESS, 7): (20, 2), (ADDRESS + 40, 7): (30, 3)}
    (lock,) = locks([wait(5), wait(5, address=ADDRESS + 4), mutex], holders, queues=queues)
    assert (lock.kind, lock.time, lock.waits, lock.queue) == ("GIL", 150, 6, 30)
    assert [(each.tid, each.source, each.time) for each in lock.holders] == [(9, WAKER, 100)]


def test_holder_of_pythons_lock() -> None:
    """The holder is the one that the lock names, if that is a thread of the process; else who gave it back."""
    waits = [wait(5, PRIVATE | OF_PYTHON), wait(5, PRIVATE)]
    of_python = PRIVATE | OF_PYTHON
    holders = [holder(8, kind=of_python, waker=GIVER, time=70), holder(8, kind=of_python), holder(waker=GIVER)]
    (lock,) = locks(waits, [*holders, holder(20, kind=of_python, waker=GIVER, time=5), holder(20, kind=of_python)])
    assert lock.kind == "GIL"
    assert [(each.tid, each.source, each.time) for each in lock.holders] == [(8, OWNER, 120), (9, WAKER, 55)]


def test_function_that_takes_a_lock_of_the_kernel() -> None:
    (lock,) = locks([wait(kind=OF_KERNEL, kstack=2), wait(kind=OF_KERNEL, time=9)])
    assert lock.taken_in == "folio_wait_bit"
    (lock,) = locks([wait()])
    assert lock.taken_in == ""


def test_a_page_that_is_waited_for_in_the_call_is_no_lock() -> None:
    assert not locks([wait(kstack=2)])


def test_owner_is_believed_if_it_is_a_thread_of_the_process() -> None:
    (lock,) = locks([wait()], [holder(9, waker=GIVER)])
    (found,) = lock.holders
    assert (found.pid, found.tid, found.thread, found.source, found.time) == (7, 9, "thread9", OWNER, 50)
    assert "give_back" in found.frames
    (lock,) = locks([wait()], [holder(20, waker=GIVER)])  # of another process, which cannot have it
    assert [(found.tid, found.source) for found in lock.holders] == [(9, WAKER)]
    (lock,) = locks([wait()], [holder(4711)])
    assert not lock.holders


def test_writer_is_only_asked_of_a_rwlock() -> None:
    (lock,) = locks([wait(2)], [holder(second=9)])
    assert [(found.tid, found.source) for found in lock.holders] == [(9, WRITER)]
    (lock,) = locks([wait(6)], [holder(second=9)])
    assert not lock.holders


def test_shared_lock_is_one_for_all_processes() -> None:
    word = SharedWord(1, 2, 0x40, "/dev/shm/x")
    shared = {(7, ADDRESS): word, (20, 0x9000): word}
    waits = [wait(kind=0), wait(kind=0, tid=20, tgid=20, address=0x9000), wait(tid=9)]
    holders = [holder(20, kind=0), holder(9, kind=0, tgid=20, address=0x9000)]
    queues = {(1, 0): (70, 5), (ADDRESS, 7): (3, 1)}
    both, own = locks(waits, holders, shared=shared, numbers={word: 1}, queues=queues)
    assert (both.owned_by, both.time, both.queue, both.queue_waits) == (SHARED, 100, 70, 5)
    assert {(found.pid, found.tid) for found in both.holders} == {(20, 20), (7, 9)}
    assert (own.owned_by, own.time, own.queue) == (PROCESS, 50, 3)


def test_owner_in_another_pid_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "tids", lambda pid: [7, 8, 9])
    monkeypatch.setattr(procfs, "innermost_id", lambda tid: tid - 6)
    inside = {7: SimpleNamespace(pid=7, nspid=1)}
    (lock,) = locks([wait()], [holder(3)], inside)
    assert [found.tid for found in lock.holders] == [9]
    (lock,) = locks([wait()], [holder(9)], inside)  # no thread there has this id
    assert not lock.holders


def test_lock_of_the_kernel() -> None:
    kind = OF_KERNEL | 32 << FLAGS_SHIFT
    waits = [wait(kind=kind, kstack=2), wait(kind=kind, kstack=2, tid=20, tgid=20)]
    (lock,) = locks(waits, [holder(20, 20, kind, tgid=0, time=100)])
    assert (lock.owned_by, lock.kind, lock.pid, lock.time) == (KERNEL, "mutex", 0, 100)
    assert [(found.pid, found.tid, found.source) for found in lock.holders] == [(20, 20, OWNER)]


def test_lock_of_the_kernel_that_is_a_process_own() -> None:
    kind = OF_KERNEL | 2 << FLAGS_SHIFT
    own = LockObject.parse(OBJECT.pack(*[0] * 7, 1, 20, 0, 0, b""))
    waits = [wait(kind=kind, kstack=2), wait(kind=kind, kstack=2, tid=20, tgid=20)]
    for found, pid in ((own, 20), (own._replace(tgid=0), 0), (own._replace(changed=True), 0)):
        (lock,) = locks(waits, objects={ADDRESS: found})
        assert (lock.owned_by, lock.kind, lock.pid, bool(lock.process)) == (KERNEL, "rwsem", pid, bool(pid))


@pytest.mark.parametrize(
    ("flags", "kind"),
    [(1, "spinlock"), (3, "rwlock"), (5, "rwlock"), (2, "rwsem"), (4, "rwsem"), (8, "rt_mutex"), (18, "percpu_rwsem"),
     (32, "mutex"), (33, "mutex"), (0, "mutex")],
)  # fmt: skip
def test_types_of_the_kernels_locks(flags: int, kind: str) -> None:
    assert kernel_kind(flags) == kind


def test_many_locks_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LOCKS", 2)
    found = locks([wait(time=100 - i, address=ADDRESS + 64 * i) for i in range(5)])
    assert [lock.time for lock in found] == [100, 99, 98 + 97 + 96]
    assert found[-1].name == "[other locks]"


def test_shared_memory_that_was_gone_is_counted() -> None:
    """The word of a thread that is joined, which is never shared, is not counted."""
    lost: dict[str, int] = {}
    locks([wait(kind=0)], lost=lost, unreadable={(7, ADDRESS)})
    assert lost == {UNREADABLE: 1}
    locks([wait(8, kind=0)], lost=lost, unreadable={(7, ADDRESS)})
    assert lost == {UNREADABLE: 0}


def test_trace_without_the_measure() -> None:
    assert locks_of(cast(Any, SimpleNamespace(locks=None)), {}, *cast(Any, (None, None, None))) == []
