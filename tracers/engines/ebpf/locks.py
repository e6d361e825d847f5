"""Names for locks and for those who waited for them or had them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ....converters.facts.frame_names import bare
from ....converters.facts.wait_sites import Sites
from ....converters.facts.wakers import Wakers as Telling
from ....converters.model import Sample, Stack
from ....converters.model.locks import (
    BARRIER,
    CONDITION,
    FUTEX,
    GIL,
    JOIN,
    KERNEL,
    MOST_LOCKS,
    MOST_PLACES,
    MOST_THREADS,
    MUTEX,
    OTHER_LOCKS,
    OWNER,
    PI_MUTEX,
    PROCESS,
    RWLOCK,
    SEMAPHORE,
    SHARED,
    WAKER,
    WRITER,
    LockPlace,
    LockThread,
    LockTimes,
)
from ...base import procfs
from ...kernel.records import BY_THREAD
from ..rows import Row
from ..wakers import Wakers
from .capture import Capture
from .inner_ids import InnerIds
from .lock_names import LockNames
from .lock_places import joined, taken_in
from .measures.lock_records import (
    FLAGS_SHIFT,
    LOOKS_LIKE_MUTEX,
    OF_KERNEL,
    OF_PYTHON,
    PERCPU,
    PI,
    PRIVATE,
    RT,
    SPIN_FLAG,
    UNREADABLE,
)
from .measures.lock_records import (
    MUTEX as MUTEX_FLAG,
)
from .measures.protocol import LockHolder, LockRows, LockWait
from .names import Names
from .stacks import Stacks

_API = (
    (re.compile(r"_*pthread_mutex_\w*lock$|_*lll_(mutex_)?lock_wait$"), MUTEX),
    (re.compile(r"_*pthread_rwlock_\w*lock$"), RWLOCK),
    (re.compile(r"_*pthread_cond_\w*wait$|_*cnd_\w*wait$"), CONDITION),
    (re.compile(r"_*(new_)?sem_(timed|clock)?wait"), SEMAPHORE),
    (re.compile(r"_*pthread_barrier_wait$"), BARRIER),
    (re.compile(r"_*pthread_\w*join\w*$|_*thrd_join$"), JOIN),
)
"""Public functions of C libraries in which a thread waits: from the innermost frame outward."""
_TAKE_GIL, _DROP_GIL = "take_gil", "drop_gil"
"""CPython's functions. The first one waits for it by a condition variable, and both take the mutex of that."""
_FUTEX_CALL = re.compile(r"(__x64_sys_|__ia32_sys_|__do_sys_|__se_sys_)?(do_)?futex")
"""Functions of the kernel, one of which is on the stack of each wait for a futex."""

Key = tuple[str, int, int]
"""`PROCESS`, `SHARED` or `KERNEL`; the process, or 0; the address, or the number of what is shared."""


def locks_of(
    capture: Capture, rows: Mapping[int, Row], stacks: Stacks, names: Names, wakers: Wakers
) -> list[LockTimes]:
    """The locks, most time first. ``rows``: by the `id` of a wait's row, the same with a completed stack."""
    if capture.locks is None:
        return []
    finder = LockNames(capture, capture.locks, kernel_addresses=stacks.kernel_addresses)
    return _Assembling(capture, rows, stacks, names, wakers).locks(finder)


class _Assembling:
    def __init__(self, capture: Capture, rows: Mapping[int, Row], stacks: Stacks, names: Names, wakers: Wakers) -> None:
        self._capture, self._found, self._rows = capture, capture.locks or LockRows(), rows
        self._stacks, self._names, self._wakers = stacks, names, wakers
        self._sites, self._telling = Sites(), Telling()
        self._kept: list[Stack] = []
        self._threads = {(r.thread.key.tgid, r.thread.key.tid): r.thread.first for r in capture.threads}
        self._tgids: dict[int, int] = {tid: tgid for tgid, tid in self._threads}
        self._inner = InnerIds(capture)
        self._kinds: dict[Key, Counter[str]] = defaultdict(Counter)
        self._known: dict[Key, LockTimes] = {}
        self._waiters: dict[Key, dict[tuple[int, int], LockThread]] = defaultdict(dict)
        self._holders: dict[Key, dict[tuple[int, int, str], LockThread]] = defaultdict(dict)
        self._places: dict[Key, dict[tuple[str, ...], LockPlace]] = defaultdict(dict)
        self._sharers: dict[Key, set[int]] = defaultdict(set)
        self._taken: dict[Key, Counter[str]] = defaultdict(Counter)
        self._joined: dict[tuple[int, int], int] = {}
        self._parts: dict[Key, set[int]] = defaultdict(set)

    def locks(self, finder: LockNames) -> list[LockTimes]:
        waits = list(self._waits())
        own = [(row.origin.tgid, wait.address, kind) for wait, row, _, kind in waits if not wait.kind & OF_KERNEL]
        self._joined = joined(own)
        for each in waits:
            self._add_wait(*each)
        for key, kinds in self._kinds.items():
            self._known[key].kind = GIL if GIL in kinds else kinds.most_common(1)[0][0]
        # A thread that is joined is waited for as if other processes could, too.
        self._capture.losses[UNREADABLE] = sum(
            self._known[key].kind != JOIN
            for key in {self._key(*word, 0) for word in self._found.unreadable} & self._known.keys()
        )
        for holder in self._found.holders:
            self._add_holder(holder)
        found: list[LockTimes] = []
        for key in sorted(self._known, key=lambda key: -self._known[key].time):
            lock = self._known[key]
            if len(found) < MOST_LOCKS:
                lock.name = finder.name(key, lock.kind)
                self._say_whose(key, lock)
                self._finish(key, lock)
                found.append(lock)
            else:
                _put_together(found, lock)
        return found

    def _say_whose(self, key: Key, lock: LockTimes) -> None:
        """A lock of the kernel that is one process's: that of its memory."""
        object_ = self._found.objects.get(key[2]) if key[0] == KERNEL else None
        if object_ and object_.tgid and not object_.changed:
            lock.pid, lock.process = self._names.pid(object_.tgid)[0], self._names.process(object_.tgid)

    def _key(self, tgid: int, address: int, kind: int) -> Key:
        if kind & OF_KERNEL:
            return KERNEL, 0, address
        word = self._found.shared.get((tgid, address)) if not kind & PRIVATE else None
        if word:
            return SHARED, 0, self._found.numbers[word]
        key = PROCESS, tgid, self._joined.get((tgid, address), address)
        self._parts[key].add(address)
        return key

    def _waits(self) -> Iterator[tuple[LockWait, Row, Stack, str]]:
        """Waits for locks, with the kind of each."""
        for wait in self._found.waits:
            row = self._rows.get(id(wait.row), wait.row)
            stack = self._stacks.of(row)
            if wait.kind & OF_KERNEL or _in_futex(stack):
                kind = _kind(wait.kind, stack)
                # Debian's Python has no name for it, but its place is known.
                yield wait, row, stack, GIL if kind == CONDITION and _TAKE_GIL in self._site(stack) else kind

    def _add_wait(self, wait: LockWait, row: Row, stack: Stack, kind: str) -> None:
        origin = row.origin
        key = self._key(origin.tgid, wait.address, wait.kind)
        lock = self._known.get(key)
        if lock is None:
            lock = self._known[key] = LockTimes("", FUTEX, key[0])
            if key[0] == PROCESS:
                lock.pid, lock.process = self._names.pid(origin.tgid)[0], self._names.process(origin.tgid)
        self._sharers[key].add(origin.tgid)
        lock.time += wait.sum.time
        lock.waits += wait.sum.waits
        lock.max = max(lock.max, wait.sum.max)
        lock.open_count += wait.sum.waits if row.is_open else 0
        self._kinds[key][kind] += wait.sum.time
        if key[0] == KERNEL and (function := taken_in(stack)):
            self._taken[key][function] += wait.sum.time
        first = self._capture.lives.threads.get(origin.life, -1)
        who = origin.tgid, origin.tid
        thread = self._waiters[key].get(who)
        if thread is None:
            name = self._names.thread(origin.tgid, first)
            pid = self._names.pid(origin.tgid)[0]
            thread = self._waiters[key][who] = LockThread(self._names.process(origin.tgid), name, pid, origin.tid)
        thread.time += wait.sum.time
        thread.waits += wait.sum.waits
        frames = self._site(stack)
        place = self._places[key].setdefault(frames, LockPlace(frames))
        place.time += wait.sum.time
        place.waits += wait.sum.waits

    def _site(self, stack: Stack) -> tuple[str, ...]:
        self._kept.append(stack)  # sites are known by the identity of their stacks
        site = self._sites.of(stack)
        return (*site.frames, site.kernel) if site.kernel and not site.frames else site.frames

    def _add_holder(self, holder: LockHolder) -> None:
        key = self._key(holder.tgid, holder.address, holder.kind)
        lock = self._known.get(key)
        if lock is None:
            return
        (waker,) = holder.row.wakers
        frames, labels = self._wakers.of(holder.row.wakers)
        by_thread = bool(waker.tid) and waker.context == BY_THREAD
        tgid, tid, source = self._owner(key, holder, lock.kind)
        if not tid and by_thread:
            tgid, tid, source = waker.tgid, waker.tid, WAKER
        if not tid:
            return
        who = tgid, tid, source
        thread = self._holders[key].get(who)
        if thread is None:
            thread = self._holders[key][who] = self._thread(tgid, tid, source)
        if by_thread and waker.tid == tid and not thread.frames and labels:
            told = self._telling.of(Sample(frames, (), labels))
            thread.frames = told.frames if told else ()
        thread.time += holder.sum.time
        thread.waits += holder.sum.waits

    def _owner(self, key: Key, holder: LockHolder, kind: str) -> tuple[int, int, str]:
        """Process and thread that had it as the lock says, if that is one that can have it; else zeros."""
        if kind == GIL and not holder.kind & OF_PYTHON:
            return 0, 0, ""  # the word tells who has the mutex that it has inside
        if key[0] == KERNEL:
            return holder.second, holder.owner, OWNER
        if holder.owner and (tgid := self._sharer(key, holder.tgid, holder.owner)):
            return tgid, self._inner.outside(tgid, holder.owner), OWNER
        if kind == RWLOCK and holder.second and (tgid := self._sharer(key, holder.tgid, holder.second)):
            return tgid, self._inner.outside(tgid, holder.second), WRITER
        return 0, 0, ""

    def _sharer(self, key: Key, waiter: int, tid: int) -> int:
        """The process of a thread that may have the lock; 0: there is none with this id."""
        others: set[int] = self._sharers[key] if key[0] == SHARED else set()
        for tgid in (waiter, *others):
            outside = self._inner.outside(tgid, tid)
            if outside and ((tgid, outside) in self._threads or procfs.tgid_of(outside) == tgid):
                return tgid
        if key[0] == SHARED and tid not in self._inner.of(waiter):
            return self._tgids.get(tid) or procfs.tgid_of(tid) or 0
        return 0

    def _thread(self, tgid: int, tid: int, source: str) -> LockThread:
        process = self._names.process(tgid)
        first = self._threads.get((tgid, tid))
        name = self._names.thread(tgid, first) if first is not None else procfs.comm(tgid, tid)
        return LockThread(process, name or process, self._names.pid(tgid)[0], tid, source=source)

    def _finish(self, key: Key, lock: LockTimes) -> None:
        parts = {key[2], *self._parts[key]}
        lock.queue, lock.queue_waits = max(self._found.queues.get((part, key[1]), (0, 0)) for part in parts)
        for crowd in (found for part in parts if (found := self._found.crowds.get((part, key[1])))):
            lock.judged += crowd.judged
            lock.judged_time += crowd.judged_time
            lock.alone += crowd.alone
            lock.alone_time += crowd.alone_time
            lock.busy += crowd.busy
        lock.taken_in = next((name for name, _ in self._taken[key].most_common(1)), "")
        waiters, holders = _longest(self._waiters[key].values()), _longest(self._holders[key].values())
        lock.waiters, lock.more_waiters = waiters[:MOST_THREADS], max(len(waiters) - MOST_THREADS, 0)
        lock.holders = holders[:MOST_THREADS]
        places = sorted(self._places[key].values(), key=lambda place: (-place.time, place.frames))
        lock.places = places[:MOST_PLACES]


def _longest(threads: Iterable[LockThread]) -> list[LockThread]:
    return sorted(threads, key=lambda thread: (-thread.time, thread.pid, thread.tid))


def _put_together(found: list[LockTimes], lock: LockTimes) -> None:
    if found[-1].name != OTHER_LOCKS:
        found.append(LockTimes(OTHER_LOCKS, "", lock.owned_by))
    rest = found[-1]
    rest.time += lock.time
    rest.waits += lock.waits
    rest.max = max(rest.max, lock.max)
    rest.open_count += lock.open_count


def _in_futex(stack: Stack) -> bool:
    """Whether the kernel's part of the stack is that of a futex call; a page of memory can be waited for in it, too."""
    kernel = [frame.name for frame in stack if frame.kind == "kernel"]
    return not kernel or any(_FUTEX_CALL.match(name) for name in kernel)


def _kind(kind: int, stack: Stack) -> str:
    if kind & OF_KERNEL:
        return kernel_kind(kind >> FLAGS_SHIFT)
    if kind & PI:
        return PI_MUTEX
    if kind & OF_PYTHON:
        return GIL
    names = [bare(frame.name) for frame in reversed(stack) if frame.kind != "kernel"]
    if _TAKE_GIL in names or (_DROP_GIL in names and kind & LOOKS_LIKE_MUTEX):
        return GIL
    if kind & LOOKS_LIKE_MUTEX:
        return MUTEX
    return next((found for name in names for pattern, found in _API if pattern.match(name)), FUTEX)


def kernel_kind(flags: int) -> str:
    """The type of a lock of the kernel, by the flags that its tracepoint gives: include/trace/events/lock.h."""
    if flags & MUTEX_FLAG:
        return "mutex"
    if flags & RT:
        return "rt_mutex"
    if flags & PERCPU:
        return "percpu_rwsem"
    if flags & SPIN_FLAG:
        return "spinlock" if flags == SPIN_FLAG else "rwlock"
    return "rwsem" if flags else "mutex"
