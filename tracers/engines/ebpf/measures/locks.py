"""Waits for locks of programs and of the kernel: which lock, who waits, who has it. Beside the measure of wake-ups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ....images.data_maps import DataMap, find, read_data_maps
from ....kernel.bpfobject import Link, Object
from ....kernel.kernel_types import CACHE_OF_MEMORY, kernel_has
from ....kernel.libbpf import BpfError
from ....kernel.records import BLOCKED, BY_UNKNOWN, RECORD_LOCK, STATES, Origin, Waker
from ....kernel.sum_table import SumTable
from ....measures.locks import Locks
from ...rows import Row
from .lock_objects import ASKED, ASKS, LockObject, join_objects
from .lock_records import (
    FLAGS_SHIFT,
    HOLDER,
    KIND_SHIFT,
    OF_KERNEL,
    QUEUE,
    QUEUE_KEY,
    RECORD,
    SHARED_WORD,
    SMALL_TABLE,
    SPIN,
    SPIN_SLOTS,
    SUM,
    UNSEEN,
    WAITING,
)
from .protocol import Ended, LockCrowd, LockHolder, LockRows, LockSum, LockWait, SharedWord
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

_WAITING = 1 << 15
"""Threads that can wait for a lock at a time."""
_QUEUES = 1 << 14
"""Locks whose queues are known."""
_CROWDS = 1 << 15
"""Locks whose waits are compared with others at the same time."""
_SHARED = 1 << 14
"""Futexes in shared memory, per process."""
_WORDS = 1 << 15
"""Futexes in shared memory kept, and of those that could not be looked up."""
_KEPT_QUEUES = 1 << 15
_HOLDERS = 1 << 15
"""Rows of holders kept; others are added up without who ended the wait."""
_OBJECTS = 1 << 13
"""Locks of the kernel in allocated memory between two times that the tables are taken out."""
_KEPT_OBJECTS = 1 << 15
_CONTEXTS = 5
"""Entries of scratch maps, up to CONTEXT_LOCK: enum context of bpf/include/maps.bpf.h."""
_ASKING = "locks_begin_asking"
_MASK = (1 << KIND_SHIFT) - 1
_SLEEPING, _UNINTERRUPTIBLE = STATES.index("interruptible"), STATES.index("uninterruptible")
_NOBODY = Waker(0, 0, 0, 0, 0, 0, BY_UNKNOWN)
_LOSSES = (
    "waits for locks",
    "places of waits for locks",
    "holders of locks",
    "queues of locks",
    "locks in shared memory not recognised",
    UNSEEN,
    "what holds locks of the kernel",
)
"""enum lock_loss, in its order."""


def kernel_tells() -> bool:
    """Whether the running kernel reports waits for its own locks (16edd9b511a1, 5.19)."""
    return kernel_has("btf_trace_contention_begin", otherwise=True)  # without type information, it is tried


def kernel_knows_caches() -> bool:
    """Whether the running kernel tells programs from which cache memory is."""
    return kernel_has(CACHE_OF_MEMORY)


class LocksCollector(Summed):
    """Has no rows: its result is `LockRows`, beside the rows of others. Needs wake-ups in the same trace."""

    name = Locks.name
    columns = ()
    programs = ()
    entries = "new_locks"
    table = "lock_sums"
    value_size = SUM.size
    more = 1

    def __init__(self, _: Locks) -> None:
        self._of_kernel = kernel_tells()
        begin = _ASKING if kernel_knows_caches() else "locks_begin"
        self.placed = (begin, "locks_end") if self._of_kernel else ()
        self._object: Object | None = None
        self._holders_table: SumTable | None = None
        self._holders: dict[bytes, LockSum] = {}
        self._queues: dict[tuple[int, int], tuple[int, int]] = {}
        self._crowds: dict[tuple[int, int], LockCrowd] = {}
        self._waiting: dict[int, tuple[int, ...]] = {}
        self._spins: dict[bytes, LockSum] = {}
        self._objects: dict[int, LockObject] = {}
        self._before: dict[int, LockObject] = {}
        self._new_words: list[tuple[int, int]] = []
        self._words: dict[tuple[int, int], SharedWord] = {}
        self._numbers: dict[SharedWord, int] = {}
        self._met: set[int] = set()
        self._to_meet: set[int] = set()
        self._unreadable: set[tuple[int, int]] = set()
        self._folded = self._unkept = self._short = self._untold = 0
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._lost_before = dict(self._lost)

    def knobs(self) -> Mapping[str, int]:
        return {"measure_locks": 1}

    def kfuncs(self) -> Mapping[str, tuple[int, str]]:
        return {_ASKING: (ASKED, ASKS)} if _ASKING in self.placed else {}

    def does_without(self, program: str) -> bool:
        if _ASKING not in self.placed or not program.startswith(_ASKING):
            return False
        self.placed = ("locks_begin", "locks_end")
        return True

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {
            "lock_waiting": _WAITING,
            "lock_queues": _QUEUES,
            "lock_crowds": _CROWDS,
            "lock_shared": _SHARED,
            "lock_objects": _OBJECTS if self._of_kernel else 1,
            **(dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS) if self._of_kernel else {}),
        }

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        self._object = loaded
        few = max(entries // SMALL_TABLE, 16)
        self._holders_table = SumTable(loaded, "lock_holders", SUM.size, few, key_size=HOLDER.size)
        self._holders, self._words, self._numbers, self._new_words = {}, {}, {}, []
        self._met, self._to_meet, self._unreadable = set(), set(), set()

    def close(self) -> None:
        super().close()
        if self._holders_table:
            self._holders_table.close()

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        links: list[Link] = []
        try:
            for name in reversed(self.placed):
                links.append(loaded.programs[name + suffix].attach())
        except BpfError:
            for link in links:
                link.close()
            self._of_kernel = False
            return []
        return links

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add, np.add, np.maximum)

    def on_record(self, data: bytes) -> bool:
        if data[0] != RECORD_LOCK:
            return False
        _, tgid, address = RECORD.unpack_from(data)
        self._new_words.append((tgid, address))
        return True

    def consume(self) -> None:
        """Finds the files behind new futexes in shared memory, while their processes live."""
        if not self._new_words or self._object is None:
            return
        new, self._new_words = self._new_words, []
        known: dict[int, list[DataMap]] = {}
        words = self._object.find_map("lock_shared")
        for tgid, address in new:
            if len(self._words) + len(self._unreadable) >= _WORDS:
                self._unkept += 1
                continue
            if tgid not in known:
                known[tgid] = read_data_maps(tgid)
            if not known[tgid]:
                self._unreadable.add((tgid, address))
                continue
            mapping = find(known[tgid], address)
            if mapping is None or not mapping.is_shared:
                continue  # of one process, though the call allows others
            word = SharedWord(mapping.dev, mapping.inode, mapping.offset + address - mapping.start, mapping.path)
            number = self._numbers.setdefault(word, len(self._numbers) + 1)
            self._words[tgid, address] = word
            words.update(SHARED_WORD.pack(address, tgid), number.to_bytes(8, "little"))

    def newcomers(self) -> Iterable[int]:
        met, self._to_meet = self._to_meet, set()
        return met

    def stacks(self) -> Sequence[int]:
        found = []
        for key in self._holders:
            ustack, kstack = HOLDER.unpack(key)[5:7]
            found += [stack for stack in (ustack, kstack) if stack]
        return found

    def held(self) -> int:
        return 300 * (len(self._holders) + len(self._words) + len(self._spins))

    def drain(self) -> None:
        super().drain()
        assert self._holders_table, "it was not opened"
        keys, values = self._holders_table.drain(self.slot)
        for i, value in enumerate(SUM.iter_unpack(values)):
            key = keys[i * HOLDER.size : (i + 1) * HOLDER.size]
            if key not in self._holders and len(self._holders) >= _HOLDERS:
                address, tgid, kind, owner, second, *_ = HOLDER.unpack(key)
                key = HOLDER.pack(address, tgid, kind, owner, second, *_NOBODY)
                self._folded += 1
            _add(self._holders, key, LockSum(*value))
            _, _, kind, _, second, *_ = HOLDER.unpack(key)
            if kind & OF_KERNEL and second and second not in self._met:
                self._met.add(second)
                self._to_meet.add(second)
        self._take_queues()
        self._take_objects()

    def _take_queues(self) -> None:
        """Takes out the longest queues. One that goes on is cut here."""
        assert self._object, "it was not opened"
        table = self._object.find_map("lock_queues")
        found = list(table.items())
        table.clear()
        for key, value in found:
            address, tgid, _ = QUEUE_KEY.unpack(key)
            _, _, _, longest, waits, *crowd = QUEUE.unpack(value)
            self._queues[address, tgid] = max((longest, waits), self._queues.get((address, tgid), (0, 0)))
            if any(crowd):
                made = LockCrowd(*crowd)
                known = self._crowds.get((address, tgid))
                self._crowds[address, tgid] = known.joined(made) if known else made
        if (excess := len(self._queues) - _KEPT_QUEUES) > 0:
            for place in sorted(self._queues, key=lambda place: self._queues[place])[:excess]:
                del self._queues[place]
                self._crowds.pop(place, None)
            self._short += excess

    def _take_objects(self) -> None:
        assert self._object, "it was not opened"
        table = self._object.find_map("lock_objects")
        found = list(table.items())
        table.clear()
        self._untold += join_objects(self._objects, found, _KEPT_OBJECTS)

    def read(self, loaded: Object) -> None:
        self.consume()
        self.drain()
        self._waiting = {
            int.from_bytes(key, "little"): WAITING.unpack(value)
            for key, value in loaded.find_map("lock_waiting").items()
        }
        if self.placed:
            self._read_spins(loaded)
        losses = loaded.find_map("lock_losses")
        self._lost = {kind: losses.lookup_percpu_u64(i) for i, kind in enumerate(_LOSSES)}
        self._lost["holders of locks"] += self._folded
        self._lost["queues of locks"] += self._short
        self._lost["locks in shared memory not recognised"] += self._unkept
        self._lost["what holds locks of the kernel"] += self._untold

    def _read_spins(self, loaded: Object) -> None:
        self._spins = {}
        table = loaded.find_map("lock_spins")
        for place in range(self.slot * SPIN_SLOTS, (self.slot + 1) * SPIN_SLOTS):
            for value in table.take_percpu(place):
                lock, _, length, waits, most, *who = SPIN.unpack(value)
                if lock:
                    _add(self._spins, SPIN.pack(lock, 0, 0, 0, 0, *who), LockSum(length, waits, most))

    def next(self) -> None:
        super().next()
        self._holders, self._spins, self._queues, self._crowds, self._waiting = {}, {}, {}, {}, {}
        self._before, self._objects = self._objects, {}
        self._lost_before = self._lost

    def rows(self, ended: Ended) -> list[Row]:
        return []

    def locks(self, ended: Ended) -> LockRows:
        waits, holders = [], []
        for origin, (address, *sums) in self.totals().take():
            waits.append(_wait(origin, address, origin.state >> KIND_SHIFT, LockSum(*sums)))
        for key, total in self._holders.items():
            holders.append(_holder(HOLDER.unpack(key), total))
        for wait, holder in self._open(ended):
            waits.append(wait)
            holders.append(holder)
        stacks: dict[int, tuple[int, ...]] = {}
        for key, total in self._spins.items():
            lock, _, _, _, _, tid, tgid, life, flags, *frames = SPIN.unpack(key)
            stack = hash((lock, *frames)) & (1 << 64) - 1 | 1
            stacks[stack] = tuple(filter(None, frames))
            origin = Origin(0, stack, 0, tid, tgid, life, _UNINTERRUPTIBLE)
            waits.append(_wait(origin, lock, OF_KERNEL | flags << FLAGS_SHIFT, total))
        objects = {**self._before, **self._objects}  # a wait may have begun in the interval before
        shared = self._words, self._numbers, self._unreadable
        return LockRows(waits, holders, self._queues, *shared, stacks, objects, crowds=self._crowds)

    def _open(self, ended: Ended) -> Iterable[tuple[LockWait, LockHolder]]:
        """Waits that had not ended when the trace did."""
        for record in ended.threads:
            thread, found = record.thread, self._waiting.get(record.thread.key.tid)
            if found is None or record.exited or thread.phase != BLOCKED:
                continue
            address, _, kind, owner, second, flags, lock, began = found
            if lock:
                address, kind = lock, OF_KERNEL | flags << FLAGS_SHIFT
            elif not address or thread.key.state != _SLEEPING:
                continue
            total = LockSum(record.end - max(began if lock else thread.out, ended.began), 1, 0)
            total = total._replace(max=total.time)
            tgid = 0 if lock else thread.key.tgid
            wait = _wait(thread.key, address, kind, total, is_open=True)
            yield wait, _holder((address, tgid, kind, owner, second, *_NOBODY), total)

    def losses(self) -> Mapping[str, int]:
        return {kind: number - self._lost_before.get(kind, 0) for kind, number in self._lost.items()}

    def remarks(self) -> Iterable[str]:
        if not self._of_kernel:
            yield "locks of the kernel are not told: this kernel does not report waits for them (Linux 5.19 does)"


def _add(sums: dict[bytes, LockSum], key: bytes, total: LockSum) -> None:
    known = sums.get(key)
    sums[key] = known.joined(total) if known else total


def _wait(origin: Origin, address: int, kind: int, total: LockSum, *, is_open: bool = False) -> LockWait:
    state = origin.state & _MASK
    return LockWait(Row(origin._replace(state=state), STATES[state], tuple(total), is_open), address, kind, total)


def _holder(key: tuple[int, ...], total: LockSum) -> LockHolder:
    address, tgid, kind, owner, second, *waker = key
    who = Waker(*waker)
    if not (who.tid or who.kstack or who.context):
        who = _NOBODY
    row = Row(Origin(0, 0, 0, 0, tgid, 0, _SLEEPING), STATES[_SLEEPING], tuple(total), wakers=(who,))
    return LockHolder(tgid, address, kind, owner, second, row, total)
