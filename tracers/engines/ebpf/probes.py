"""Loads the BPF object in the best shape that the kernel accepts, and runs it over a scope."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ....converters.base.errors import StallscopeError
from ....converters.model.states import BY_LETTER, OTHER
from ...base import privilege, procfs
from ...base.scope import Scope
from ...holder.client import HOLDER
from ...kernel.bpfmap import RingBuffer
from ...kernel.bpfobject import Link, Object
from ...kernel.libbpf import BpfError
from ...kernel.records import (
    BLOCKED,
    COUNTERS,
    RUNNABLE,
    THREAD_RECORD_SIZE,
    ThreadRecord,
    pack_thread,
    parse_seeds,
    parse_thread,
    parse_thread_record,
)
from ...kernel.shapes import BTF_SHAPES, RAW_SHAPES, Shape, kernel_helpers, refusal
from ...kernel.sleepers import Sleepers
from ...outside.client import CLIENT
from ..limits import MEMORY, MOST_OBJECTS
from . import further_programs
from .measures.protocol import Collector

KERNEL_BTF = Path("/sys/kernel/btf/vmlinux")
_THREADS = 1 << 16
"""Entries of the hash by tid, where the kernel has no task storage for us."""
_IDS = 1 << 14
"""Entries of the sets of process and thread ids."""
_WOKEN = 1 << 12
"""Threads whose wakers are known, where there is no task storage."""
_PYTHON_PROCESSES, _PYTHON_THREADS = 1 << 14, 1 << 16
"""Processes with a Python interpreter, and threads whose state in it is remembered."""
_SLEEPERS = 1 << 16
"""Sleeping threads whose stacks user space walks in one round."""
FREED = "python_freed"
"""The program that counts code objects which interpreters free."""
_SCOPE = ("scope_fork", "scope_exec")
"""Programs that every trace has."""
_EXITS = "sched_exit"
"""Program that stays until the remaining threads have been listed: it reports those that end meanwhile."""
_MEMOS = {"user_memo": 1, "user_memo_check": 256, "memo_check": 256}
"""Stacks that a thread had before are recognised; one in this many is walked anyway, and compared."""


@dataclass(frozen=True)
class ProbeOptions:
    """``knobs``: global variables of the programs; they override the values from the measures."""

    scope: Scope
    collectors: tuple[Collector, ...]
    knobs: Mapping[str, int] = field(default_factory=dict)
    user_stacks: bool = True
    kernel_stacks: bool = True
    btf: Path | None = None
    table_entries: int = 1 << 16
    buffer_bytes: int = 8 << 20
    unwind_bytes: int = 256 << 20
    """Kernel memory for unwind tables; 0: user stacks by frame pointers."""
    intervals: bool = False
    """The trace may be cut."""
    python: bool = False
    """Python functions in user stacks."""
    memory: int = MEMORY
    """Bytes of this process, about: rows and stacks beyond them are folded."""

    @property
    def has_python(self) -> bool:
        """Whether stacks may have Python functions."""
        return self.python and self.user_stacks


class Probes:
    """The programs in the kernel, from loading to the final dump of the threads.

    ``began`` and ``stopped`` bound the trace (CLOCK_MONOTONIC ns; 0: not yet).
    """

    def __init__(self, options: ProbeOptions, on_record: Callable[[bytes], None]) -> None:
        """Loads and attaches. StallscopeError when this machine does not allow it."""
        self.options = options
        self.began = 0
        self.stopped = 0
        self._links: list[Link] = []
        self._exits: list[Link] = []
        self._iterator: Link | None = None
        self._sleepers: Sleepers | None = None
        self._ids: dict[str, set[int]] = {}
        privilege.require()
        if any(collector.on_files for collector in options.collectors):
            HOLDER.begin()
        self.object, self.shape = _load(options)
        self._stack_generation = 0
        self._life = 1 << 32
        self._ring = RingBuffer(self.object.find_map("records"), on_record)
        self._attach()

    def _attach(self) -> None:
        suffix, collectors = "_raw" if self.shape.raw else "", self.options.collectors
        try:
            for collector in collectors:
                collector.open(self.object, self.options.table_entries)
            for name in dict.fromkeys([*(name for collector in collectors for name in collector.programs), *_SCOPE]):
                links = self._exits if name == _EXITS else self._links
                links.append(self.object.programs[name + suffix].attach())
            for collector in collectors:
                self._links += collector.attach(self.object, suffix)
            self._links += further_programs.attached(self.object)
            if self.shape.seed:
                self._iterator = self.object.programs[self.shape.seed].attach_iterator()
            if self.shape.sleepers and self.options.user_stacks:
                self._sleepers = Sleepers(self.object, self.shape.sleepers)
        except BpfError as error:
            self.close()
            raise StallscopeError(
                f"the kernel lets no program be attached: {error.cause}", "`trace-doctor` says what is missing"
            ) from error
        except BaseException:
            self.close()
            raise

    def keep(self, link: Link) -> None:
        """Takes over a link of a program: closed when the trace ends."""
        self._links.append(link)

    def begin(self) -> list[tuple[int, int]]:
        """Starts the clock and adds the scope's threads; returns their (tid, tgid)."""
        self.began = time.monotonic_ns()
        self.object.set_variable("run", self.began)
        threads = self.seed()
        self.object.set_variable("all_seeded", 1)
        for collector in self.options.collectors:
            collector.seeded()
        if self._sleepers:
            self._sleepers.restack()
        return threads

    def seed(self) -> list[tuple[int, int]]:
        """Adds the threads that belong to the scope by now; returns (tid, tgid) of all."""
        self._set_ids("scope_tgids", self.options.scope.tgids)
        self._set_ids("scope_tids", self.options.scope.tids)
        if self._iterator:
            return parse_seeds(self._iterator.read_iterator())
        return self._seed_hash()

    def expect_exec(self, pid: int) -> None:
        """Adds process ``pid`` to the scope at its next exec."""
        self._set_ids("scope_expected", {pid})

    def _set_ids(self, name: str, ids: set[int]) -> None:
        if len(ids) > _IDS:
            raise StallscopeError(f"{len(ids)} processes or threads are too many to list", "trace all with -a")
        target = self.object.find_map(name)
        known = self._ids.get(name, set())
        for number in known - ids:
            target.delete(number.to_bytes(4, "little"))
        for number in ids - known:
            target.update(number.to_bytes(4, "little"), b"\1")
        self._ids[name] = set(ids)

    def _seed_hash(self) -> list[tuple[int, int]]:
        """Does what scope_seed does, from /proc: the stacks of sleeping threads are not known."""
        scope = self.options.scope
        wanted = set(procfs.pids()) - {os.getpid()} if scope.everything else scope.tgids
        threads = [(tid, tgid) for tgid in wanted for tid in procfs.tids(tgid)]
        threads += [(tid, tgid) for tid in scope.tids if (tgid := procfs.tgid_of(tid))]
        hash_by_tid = self.object.find_map("thread_hash")
        for tid, tgid in threads:
            self._life -= 1
            key = tid.to_bytes(4, "little")
            if hash_by_tid.lookup(key) is None:
                letter = procfs.state(tid)
                phase, state = (RUNNABLE, "preempted") if letter == "R" else (BLOCKED, BY_LETTER.get(letter, OTHER))
                hash_by_tid.update(key, pack_thread((tid, tgid), self._life, state, phase, time.monotonic_ns()))
        return threads

    def restack(self) -> None:
        """Walks the incomplete stacks of waiting threads again."""
        if self._sleepers:
            self._sleepers.restack()

    def send_stacks_again(self) -> None:
        """Makes room for new stacks: known ones are sent again when they are walked."""
        self.object.find_map("known_stacks").clear()

    def forget_stacks(self) -> None:
        """Forgets stacks, recognised ones, too: they are walked again. Threads may still refer to stacks of before."""
        self.send_stacks_again()
        # Not before: a stack that is still known, and remembered by the new generation, would not be sent again.
        self._stack_generation += 1
        self.object.set_variable("stack_generation", self._stack_generation & 0xFFFFFFFF)

    def consume(self) -> None:
        """Delivers the records that are in the ring buffer; the measures read their own."""
        self._ring.consume()
        for collector in self.options.collectors:
            collector.consume()

    def stop(self) -> list[ThreadRecord]:
        """Ends the trace; returns the threads that are still there. The programs are detached.

        Threads that end meanwhile are records (`RecordSink.take_rest`)."""
        CLIENT.hurry()
        HOLDER.hurry()
        # Only then the clock: until the programs know it, they count what happens, and this process may lose its core.
        self.object.set_variable("run", self.began | 1 << 64)
        self.stopped = time.monotonic_ns()
        self.object.set_variable("run", self.began | self.stopped << 64)
        self._detach_most()
        self.consume()
        for collector in self.options.collectors:
            collector.read(self.object)
        threads = self.living()
        self._detach()
        self._ring.consume()
        return threads

    def living(self) -> list[ThreadRecord]:
        """The threads of the scope that exist."""
        if not self.shape.dump:
            return self._dump_hash()
        link = self.object.programs[self.shape.dump].attach_iterator()
        try:
            data = link.read_iterator()
        finally:
            link.close()
        size = THREAD_RECORD_SIZE
        return [parse_thread_record(data[i : i + size], exited=False) for i in range(0, len(data), size)]

    def without_event(self, boundary: int) -> list[ThreadRecord]:
        """The threads without an event since ``boundary``; others have sent their account up to there. No program may
        run any more that began before it."""
        self.object.set_variable("dumped_at", boundary)
        try:
            return self.living()
        finally:
            self.object.set_variable("dumped_at", 0)

    def _dump_hash(self) -> list[ThreadRecord]:
        records = []
        for _, value in self.object.find_map("thread_hash").items():
            thread = parse_thread(value)
            comm = os.fsencode(procfs.comm(thread.key.tgid, thread.key.tid))
            records.append(ThreadRecord(max(self.stopped, thread.since), comm, thread, exited=False))
        return records

    def counters(self) -> dict[str, int]:
        """The programs' counters by name."""
        counters = self.object.find_map("counters")
        return {name: counters.lookup_percpu_u64(i) for i, name in enumerate(COUNTERS)}

    def _detach(self) -> None:
        self._detach_most()
        exits, self._exits = self._exits, []
        for link in exits:
            link.close()

    def _detach_most(self) -> None:
        # Forgotten before they are closed: a Ctrl-C in between must not close one twice.
        links, self._links = self._links, []
        iterator, self._iterator = self._iterator, None
        sleepers, self._sleepers = self._sleepers, None
        for link in links:
            link.close()
        if iterator:
            iterator.close()
        if sleepers:
            sleepers.close()

    def close(self) -> None:
        self._detach()
        self._ring.close()
        for collector in self.options.collectors:
            collector.close()
        self.object.close()
        HOLDER.end()


def object_path() -> Path:
    """The compiled BPF programs. StallscopeError when they were not built."""
    path = Path(__file__).resolve().parents[3] / "bpf" / "stallscope.bpf.o"
    if not path.is_file():
        raise StallscopeError(f"{path.name} is missing from the installation", "run `make build`, or install the wheel")
    return path


def _load(options: ProbeOptions) -> tuple[Object, Shape]:
    if options.btf is None and not KERNEL_BTF.exists():
        raise StallscopeError(
            "this kernel carries no BTF type information",
            "give a file made for this kernel with --btf PATH, or run a kernel with CONFIG_DEBUG_INFO_BTF=y",
        )
    if options.btf is not None and not _is_btf(options.btf):
        what = "no file with BTF type information" if options.btf.exists() else "not a file"
        raise StallscopeError(f"{options.btf} is {what}", "give --btf the BTF file of the running kernel")
    failures: list[tuple[Shape, BpfError]] = []
    for shape in RAW_SHAPES if options.btf else BTF_SHAPES:
        try:
            return _load_with_less(options, shape), shape
        except BpfError as error:
            failures.append((shape, error))
    helpers = frozenset() if options.btf else kernel_helpers()
    raise refusal(
        failures, helpers, release=os.uname().release, root=os.geteuid() == 0, own_btf=options.btf is not None
    ) from failures[0][1]


def _load_with_less(options: ProbeOptions, shape: Shape) -> Object:
    """Loads one shape; without what a measure can do without, if the kernel refuses that."""
    try:
        return load_shape(options, shape)
    except BpfError as error:
        if not any(collector.does_without(error.program) for collector in options.collectors):
            raise
    return load_shape(options, shape)


def _is_btf(path: Path) -> bool:
    """Raw BTF (its magic is 0xeb9f) or an ELF file that may hold some."""
    try:
        with path.open("rb") as file:
            return file.read(4).startswith((b"\x9f\xeb", b"\xeb\x9f", b"\x7fELF"))
    except OSError:
        return False


def load_shape(options: ProbeOptions, shape: Shape) -> Object:
    """The object loaded in one shape. BpfError when the kernel rejects it."""
    loaded = Object(object_path(), options.btf)
    try:
        suffix = "_raw" if shape.raw else ""
        names = {name for collector in options.collectors for name in (*collector.programs, *collector.placed)}
        others = further_programs.wanted(options.collectors, shape) | ({FREED} if options.has_python else set())
        if options.has_python or any(collector.on_files for collector in options.collectors):
            names = {*names, *filter(None, [shape.locked])}
        loaded.select({name + suffix for name in names | {*_SCOPE}} | shape.iterators | others)
        for collector in options.collectors:
            for name, attach_type in collector.attach_types().items():
                loaded.programs[name + suffix].set_attach_type(attach_type)
            for name, (number, function) in collector.kfuncs().items():
                loaded.programs[name + suffix].call_function(number, function)
        scope = options.scope
        knobs = {
            "trace_all": int(scope.everything),
            "follow_children": int(scope.children),
            "user_stacks": int(options.user_stacks),
            "python_frames": int(options.has_python),
            "kernel_stacks": int(options.kernel_stacks),
            "intervals": int(options.intervals),
            "self_tgid": os.getpid(),
            **_MEMOS,
            **shape.knobs,
        }
        for each in (knobs, *(collector.knobs() for collector in options.collectors), options.knobs):
            for name, value in each.items():
                loaded.set_variable(name, value)
        _size_maps(loaded, options, shape)
        further_programs.leave_out_tails(loaded, names)
        loaded.load()
    except BaseException:
        loaded.close()
        raise
    return loaded


def _size_maps(loaded: Object, options: ProbeOptions, shape: Shape) -> None:
    sizes = {"known_stacks": options.table_entries, "known_objects": MOST_OBJECTS, **further_programs.SIZES}
    for collector in options.collectors:
        for name, entries in collector.sizes(options.table_entries).items():
            sizes[name] = max(entries, sizes.get(name, 0))
    for name, entries in sizes.items():
        loaded.find_map(name).set_max_entries(entries)
    for name in ("scope_tgids", "scope_tids", "scope_expected"):
        loaded.find_map(name).set_max_entries(_IDS)
    loaded.find_map("python_spaces").set_max_entries(_PYTHON_PROCESSES if options.has_python else 1)
    loaded.find_map("python_code_caches").set_max_entries(sizes.get("rule_caches", 1) if options.has_python else 1)
    loaded.find_map("python_threads").set_max_entries(_PYTHON_THREADS if options.has_python else 1)
    loaded.find_map("records").set_max_entries(options.buffer_bytes)
    if shape.knobs.get("use_storage"):
        loaded.find_map("thread_hash").set_max_entries(1)
    else:
        loaded.find_map("thread_hash").set_max_entries(_THREADS)
        loaded.find_map("thread_storage").set_autocreate(False)
        loaded.find_map("wakeup_hash").set_max_entries(_WOKEN)
        for name in ("memo_storage", "user_memo_storage", "wakeup_storage"):
            loaded.find_map(name).set_autocreate(False)
    if shape.sleepers:
        loaded.find_map("walked_stacks").set_max_entries(_SLEEPERS)
