"""Sums of threads that ended. With real storms: tests/live/test_ended.py."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pytest
from stallscope.tracers.base.conditions import Conditions
from stallscope.tracers.engines.ebpf import folding
from stallscope.tracers.engines.ebpf.folding import Folding
from stallscope.tracers.engines.ebpf.lives import Lives
from stallscope.tracers.engines.ebpf.measures.offcpu import OffCpuCollector
from stallscope.tracers.engines.ebpf.measures.timeline import TimelineCollector
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.kernel import records
from stallscope.tracers.kernel.records import ORIGIN, OTHER_STACKS, WAIT_SUM, Origin, RecordSink, pack_thread
from stallscope.tracers.measures.offcpu import FOREVER, OffCpu
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.symbols.process import ProcessSpaces

GONE = 1 << 22
"""Pids from here on belong to nobody."""
CODE = Mapping(0x1000, 0x2000, 0, "/nonexistent/x", 1, 2)


@dataclass
class Storm:
    """A trace with threads that ended: of each, 10 ns on a core, and a wait of its life at its stack."""

    monkeypatch: pytest.MonkeyPatch
    spaces: ProcessSpaces = field(default_factory=lambda: ProcessSpaces(fd_budget=0))
    sink: RecordSink = field(default_factory=RecordSink)
    measure: OffCpuCollector = field(default_factory=lambda: OffCpuCollector(OffCpu()))
    lives: int = 0

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(folding, "LIMIT", 4)
        self.monkeypatch.setattr(folding, "_MORE", 1)
        self.folding = Folding([self.measure], self.sink, self.spaces, Conditions())

    def process(self, pid: int, name: str, *, code: Mapping = CODE, ended: bool = True) -> None:
        self.spaces.fork(1, pid, self.lives)
        self.spaces.mmap(pid, code, self.lives)
        self.spaces.processes[pid].comm = name
        self.spaces.processes[pid].exited = ended

    def thread(self, tid: int, tgid: int, comm: bytes, *, wall: int = 100, stack: int = 5, made_in: int = 0) -> int:
        self.lives += 1
        life, start = self.lives, self.lives * 1000
        thread = bytearray(pack_thread((tid, tgid), life, "interruptible", 3, start))
        thread[48:56] = (10).to_bytes(8, "little")  # on_cpu
        thread[-8:] = made_in.to_bytes(8, "little")
        head = records._THREAD_RECORD_HEAD.pack(records.RECORD_EXIT, 0, start + wall, comm)
        self.sink(head + bytes(thread))
        key = ORIGIN.pack(stack, 6, 0, tid, tgid, life, 1)
        self.measure.totals().add(key, WAIT_SUM.pack(1, 90, 90, 90, 0, 0, 0))
        return life

    def poll(self, ours: frozenset[int] = frozenset(), before: int = 1 << 62) -> None:
        self.folding.poll(lambda: None, set(ours), before)

    def rows(self) -> dict[Origin, int]:
        return {origin: values[0] for origin, values in self.measure.totals().take()}


@pytest.fixture
def storm(monkeypatch: pytest.MonkeyPatch) -> Storm:
    return Storm(monkeypatch)


def test_processes_that_ended_are_added_up_by_name(storm: Storm) -> None:
    for i in range(20):
        storm.process(GONE + i, "child")
        storm.thread(GONE + i, GONE + i, b"child")
        storm.poll()
    (total,) = storm.folding.records()
    assert (total.comm, total.main, total.exited) == (b"child", True, True)
    assert total.number + len(storm.sink.ended) == 20
    assert len(storm.sink.ended) < 4
    assert (total.end - total.thread.start, total.on_cpu) == (100 * total.number, 10 * total.number)
    process = storm.spaces.processes[total.thread.key.tgid]
    assert (process.pid, process.life, process.comm, len(process.epochs)) == (0, 2, "child", 1)
    lives = Lives(storm.folding.records(), storm.folding.lives(), storm.spaces)
    rows = {origin: count for origin, count in storm.rows().items() if not origin.tid}
    ((origin, count),) = rows.items()
    assert (origin.ustack, origin.kstack, count) == (5, 6, total.number)
    assert lives.threads[origin.life] == total.thread.first
    assert lives.numbered(origin) == origin
    space = storm.spaces.space(origin.tgid, lives.epoch(origin))
    assert space is not None
    assert list(space) == [CODE]
    assert len(storm.spaces.processes) <= 1 + len(storm.sink.ended), "who is in a sum is forgotten"


def test_the_longest_are_kept_one_by_one(storm: Storm) -> None:
    long = [storm.thread(GONE + i, GONE + i, b"x", wall=10_000) for i in range(2)]
    for i in range(2, 6):
        storm.thread(GONE + i, GONE + i, b"x")
    storm.poll()
    assert sorted(record.thread.first for record in storm.sink.threads([])) == long
    assert [record.number for record in storm.folding.records()] == [4]


def test_other_mappings_keep_their_stacks_up_to_a_number(storm: Storm) -> None:
    storm.monkeypatch.setattr(folding, "_SPACES", 2)
    for i in range(6):
        storm.process(GONE + i, "child", code=CODE._replace(start=0x1000 + i, end=0x3000))
        storm.thread(GONE + i, GONE + i, b"child", wall=100 - i)
    storm.poll()
    (total,) = storm.folding.records()
    assert total.number == 4
    lives = Lives([total], storm.folding.lives(), storm.spaces)
    rows = {origin: count for origin, count in storm.rows().items() if not origin.tid}
    assert sorted((origin.ustack, count) for origin, count in rows.items()) == [(OTHER_STACKS, 2), (5, 1), (5, 1)]
    assert {lives.threads[origin.life] for origin in rows} == {total.thread.first}
    found = [storm.spaces.space(origin.tgid, lives.epoch(origin)) for origin in rows if origin.ustack == 5]
    assert {mapping.start for space in found if space for mapping in space} == {0x1005, 0x1004}


def test_threads_of_a_process_that_lives_stay_with_it(storm: Storm) -> None:
    pid = os.getpid()
    storm.process(pid, "server", ended=False)
    for i in range(3):
        storm.thread(GONE + i, pid, b"worker")
        storm.thread(GONE + 10 + i, pid, b"other", wall=50)
    storm.poll()
    sums = {record.comm: record for record in storm.folding.records()}
    assert {name: (each.number, each.thread.key.tgid, each.main) for name, each in sums.items()} == {
        b"other": (3, pid, False),
        b"worker": (1, pid, False),
    }
    storm.spaces.processes[pid].exited = True
    for i in range(6):
        storm.thread(GONE + 20 + i, GONE + 20 + i, b"later", wall=10)
    storm.poll()
    process = {storm.spaces.processes[each.thread.key.tgid].comm: each for each in storm.folding.records()}
    assert {name: each.number for name, each in process.items() if name == "server"} == {"server": 1}
    assert sum(record.number for record in storm.folding.records()) + len(storm.sink.ended) == 12
    lives = Lives(storm.folding.records(), storm.folding.lives(), storm.spaces)
    firsts = {record.thread.first for record in storm.folding.records()}
    assert {lives.threads[origin.life] for origin in storm.rows() if not origin.tid} == firsts


def test_threads_of_too_many_names_stay_with_their_process(storm: Storm) -> None:
    storm.monkeypatch.setattr(folding, "_NAMES", 2)
    pid = os.getpid()
    storm.process(pid, "server", ended=False)
    for i in range(8):
        storm.thread(GONE + i, pid, b"job-%d" % i)
    storm.poll()
    sums = {record.comm: record for record in storm.folding.records()}
    assert sums[b"[other names]"].number > 1
    assert {each.thread.key.tgid for each in sums.values()} == {pid}


def test_lives_before_an_exec_go_with_the_thread(storm: Storm) -> None:
    for i in range(6):
        life = storm.thread(GONE + i, GONE + i, b"x")
        storm.sink(records._EXEC.pack(records.RECORD_EXEC, GONE + i, life * 1000, 0, 100 + life, life))
        storm.measure.totals().add(
            ORIGIN.pack(5, 6, 0, GONE + i, GONE + i, 100 + life, 1), WAIT_SUM.pack(1, 1, 1, 1, 0, 0, 0)
        )
    storm.poll()
    assert len(storm.sink.execs) == 2
    assert sum(count for origin, count in storm.rows().items() if not origin.tid) == 8


def test_ours_and_those_of_the_next_interval_are_left_out(storm: Storm) -> None:
    for i in range(6):
        storm.thread(GONE + i, GONE + i, b"x", wall=100 - i)
    storm.poll(before=4000)
    assert [record.number for record in storm.folding.records()] == [1], "three ended before: two are kept"
    storm.thread(GONE + 6, GONE + 6, b"x")
    storm.poll(ours=frozenset({GONE + 5}))
    assert sum(record.number for record in storm.folding.records()) + len(storm.sink.ended) == 6
    storm.folding.reset()
    assert storm.folding.records() == []
    assert storm.spaces.processes == {}


def test_threads_that_were_too_early_are_added_up_at_the_end(storm: Storm) -> None:
    storm.monkeypatch.setattr(folding, "_MORE", 9)
    for i in range(6):
        storm.thread(GONE + i, GONE + i, b"x", wall=100 - i)
    storm.poll(before=0)
    storm.poll()
    assert storm.folding.records() == []
    storm.poll(before=FOREVER)
    assert [record.number for record in storm.folding.records()] == [4]


def test_very_many_names_have_one_sum(storm: Storm) -> None:
    storm.monkeypatch.setattr(folding, "_NAMES", 3)
    for i in range(9):
        storm.thread(GONE + i, GONE + i, b"name-%d" % i)
    storm.poll()
    assert sorted((record.comm[:5], record.number) for record in storm.folding.records()) == [
        (b"[othe", 4), (b"name-", 1), (b"name-", 1), (b"name-", 1),
    ]  # fmt: skip


def test_a_timeline_needs_every_thread(storm: Storm) -> None:
    whole = Folding([storm.measure, TimelineCollector(Timeline())], storm.sink, storm.spaces, Conditions())
    for i in range(9):
        storm.thread(GONE + i, GONE + i, b"x")
    whole.poll(lambda: None, set(), 1 << 62)
    assert (whole.records(), len(storm.sink.ended)) == ([], 9)


def test_threads_that_were_created_elsewhere_are_another_sum(storm: Storm) -> None:
    pid = os.getpid()
    storm.process(pid, "server", ended=False)
    for i in range(9):
        storm.thread(GONE + i, pid, b"worker", made_in=21 if i % 3 else 23)
    storm.poll()
    sums = {record.thread.made_in: record for record in storm.folding.records()}
    assert {place: each.number for place, each in sums.items()} == {21: 4, 23: 3}
    assert storm.folding.made_in() == {21, 23}
    rows = {origin.life for origin in storm.rows() if not origin.tid}
    lives = storm.folding.row_lives()
    assert {lives[each.thread.first] for each in sums.values()} == rows
    storm.spaces.processes[pid].exited = True
    for i in range(6):
        storm.thread(GONE + 20 + i, GONE + 20 + i, b"later", wall=10)
    storm.poll()
    ended = {each.thread.made_in: each for each in storm.folding.records()}
    assert {place: (each.number, each.thread.key.tgid != pid) for place, each in ended.items() if place} == {
        21: (4, True),
        23: (3, True),
    }
    assert sum(record.number for record in ended.values()) + len(storm.sink.ended) == 15


def test_places_of_processes_that_ended_are_bounded(storm: Storm) -> None:
    """Processes of one name have the same place at many addresses."""
    storm.monkeypatch.setattr(folding, "_PLACES", 2)
    for i in range(9):
        storm.process(GONE + i, "child")
        storm.thread(GONE + 100 + i, GONE + i, b"worker", made_in=21 + 2 * i)
    storm.poll()
    numbers = {record.thread.made_in: record.number for record in storm.folding.records()}
    assert numbers == {21: 1, 23: 1, 0: 5}


def test_places_of_a_process_that_lives_are_bounded(storm: Storm) -> None:
    """One that creates its threads in very many places leaves room for the sums of others."""
    storm.monkeypatch.setattr(folding, "_PLACES", 2)
    pid = os.getpid()
    storm.process(pid, "server", ended=False)
    for i in range(9):
        storm.thread(GONE + i, pid, b"worker", made_in=21 + 2 * i)
    storm.poll()
    numbers = {record.thread.made_in: record.number for record in storm.folding.records()}
    assert sum(numbers.values()) + len(storm.sink.ended) == 9
    assert numbers.keys() == {21, 23, 0}
