from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.base.descriptors import Budget
from stallscope.tracers.engines.ebpf import unwinding as module
from stallscope.tracers.engines.ebpf.unwinding import Unwinding
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.unwind.store import Wanted


class Clock:
    """Clock that time.monotonic() tells."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Recorder:
    """Stands for the loader, the store, the engine's object and the processes: notes what it was told."""

    def __init__(self, clock: Clock) -> None:
        self.told: list[tuple[str, Any]] = []
        self.wanted = Wanted(set(), set())
        self.known: set[int] = set()
        self.alive = True
        self.ready = False
        self.cost = 0.0
        self.clock = clock
        self.processes: dict[int, object] = {7: object()}
        self.descriptors = Budget(4)
        self.restacks = 0

    def read(self, pid: int) -> bool:
        self.told.append(("read", pid))
        self.known.add(pid)
        self.clock.now += self.cost
        return self.alive

    def map(self, pid: int, mapping: Mapping, time_ns: int) -> bool:
        return pid in self.known

    def tell(self, pid: int) -> None:
        self.told.append(("tell", pid))
        self.clock.now += self.cost

    def forget(self, pid: int) -> None:
        self.known.discard(pid)

    def unmap(self, pid: int) -> None:
        self.told.append(("unmap", pid))

    def missed(self, tables: set[int]) -> None:
        if tables:
            self.told.append(("missed", sorted(tables)))

    def poll(self) -> bool:
        return self.ready

    def begin(self) -> None:
        self.told.append(("begin", None))

    def expect(self, pid: int, mapping: Mapping) -> None:
        self.told.append(("expect", mapping.path))

    def expect_file(self, elf: ElfFile, path: str) -> None:
        assert isinstance(elf.source, FileSource)
        assert os.path.samestat(os.fstat(elf.source.fd), os.stat(path))
        self.told.append(("expect file", path))

    def next_epoch(self) -> int:
        return 9

    def take_wanted(self) -> Wanted:
        wanted, self.wanted = self.wanted, Wanted(set(), set())
        return wanted

    def refresh(self, pid: int) -> None:
        self.told.append(("refresh", pid))

    def adopt(self, pid: int) -> None:
        self.told.append(("adopt", pid))

    def set_variable(self, name: str, value: int) -> None:
        self.told.append((name, value))

    def restack(self) -> None:
        self.restacks += 1
        self.clock.now += 0.01

    def close(self) -> None:
        self.told.append(("close", None))

    def take(self) -> list[tuple[str, Any]]:
        """Calls that were told since the last time, without the epochs."""
        told, self.told = [each for each in self.told if each[0] != "unwind_epoch"], []
        return told


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made, thread_time=made))
    return made


@pytest.fixture
def told(clock: Clock) -> Recorder:
    return Recorder(clock)


@pytest.fixture
def made(told: Recorder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unwinding]:
    monkeypatch.setattr(module, "Store", lambda *_: told)
    monkeypatch.setattr(module, "Loader", lambda *_: told)
    engine = SimpleNamespace(object=told, restack=told.restack, began=1)
    made = Unwinding(engine, told, 1 << 20)  # type: ignore[arg-type]
    assert told.take() == [("unwind_generation", 1)]
    yield made


MAPPING = Mapping(0x1000, 0x2000)


def test_files_that_are_expected_are_open_until_the_end(made: Unwinding, told: Recorder, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    before = set(os.listdir("/proc/self/fd"))
    made.expect_vdso()
    for path in (sys.executable, str(tmp_path / "text"), str(tmp_path), str(tmp_path / "missing"), "/dev/null", "\0"):
        made.expect_file(path)
    assert told.take() == [("expect", "[vdso]"), ("expect file", sys.executable)]
    assert set(os.listdir("/proc/self/fd")) > before
    made.close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_no_more_files_are_expected_than_may_be_open(made: Unwinding, told: Recorder) -> None:
    told.descriptors = Budget(1)
    for path in ("/", sys.executable, sys.executable):
        made.expect_file(path)
    assert told.take() == [("expect file", sys.executable)]
    made.close()
    assert told.descriptors.take()


def test_nobody_is_walked_before_the_trace_begins(made: Unwinding, told: Recorder) -> None:
    made._engine.began = 0
    told.ready = True
    made.poll()
    assert told.restacks == 0
    told.ready = False
    made._engine.began = 1
    made.begin()
    made.poll()
    assert told.restacks == 1
    assert ("begin", None) in told.take()


def test_the_turns_of_others_do_not_count_as_ours(
    made: Unwinding, told: Recorder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock, on a busy host, makes telling the probes take long; the processor does it as fast as ever."""
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock, thread_time=lambda: 0.0))
    told.cost = 0.05
    for _ in range(5):
        made.mapped(7, MAPPING, 6)
        made.poll()
    assert sum(name in ("read", "tell") for name, _ in told.take()) == 5


def test_a_process_whose_mappings_are_known_is_only_told_of(made: Unwinding, told: Recorder) -> None:
    made.mapped(7, MAPPING, 5)
    made.poll()
    assert told.take() == [("read", 7), ("unwind_generation", 2)]
    made.mapped(7, MAPPING, 6)
    made.mapped(7, MAPPING, 7)
    assert told.take() == []
    made.poll()
    assert ("tell", 7) in told.take()
    made.poll()
    assert told.take() == []


def test_another_program_is_read_anew(made: Unwinding, told: Recorder, clock: Clock) -> None:
    told.read(7)
    told.take()
    made.began(7)
    made.mapped(7, MAPPING, 6)
    made.poll()
    assert told.take()[0] == ("read", 7)


def test_a_process_that_maps_all_the_time_takes_a_tenth(made: Unwinding, told: Recorder, clock: Clock) -> None:
    told.cost = 0.02
    looks = 0
    for _ in range(1000):
        made.mapped(7, MAPPING, 6)
        made.poll()
        looks += sum(name in ("read", "tell") for name, _ in told.take())
        clock.now += 0.004
    assert 10 <= looks <= (clock.now - 100) * 0.1 / 0.02 + 1


def test_what_walks_missed_is_looked_for_less_and_less_often(made: Unwinding, told: Recorder, clock: Clock) -> None:
    times = []
    for _ in range(400):
        told.wanted = Wanted({7}, set())
        before = clock.now
        made.poll()
        if ("read", 7) in told.take():
            times.append(before)
        clock.now += 0.05
    gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
    assert gaps[0] < 0.3
    assert gaps == sorted(gaps)
    assert 4.5 < gaps[-1] < 5.5


def test_acquaintances_are_looked_at_again_strangers_when_no_event_has_told_of_them(
    made: Unwinding, told: Recorder, clock: Clock
) -> None:
    told.wanted = Wanted({7, 8}, {12, 11})
    made.poll()
    found = told.take()
    assert ("refresh", 7) in found
    assert ("missed", [11, 12]) in found
    assert ("adopt", 8) not in found
    clock.now += 0.2
    told.wanted = Wanted({8}, set())
    made.poll()
    assert told.take()[:2] == [("adopt", 8), ("read", 8)]


def test_waiting_threads_are_walked_again_when_something_came_but_not_all_the_time(
    made: Unwinding, told: Recorder, clock: Clock
) -> None:
    made.poll()
    assert told.restacks == 0
    told.ready = True
    for _ in range(100):
        made.poll()
        clock.now += 0.004
    assert 3 <= told.restacks <= (clock.now - 100) * 0.1 / 0.01 + 1
    told.ready = False
    clock.now += 1
    made.poll()
    restacks = told.restacks
    made.poll()
    assert told.restacks == restacks
    assert ("unwind_generation", restacks + 1) in told.take()


def test_a_process_that_is_gone_is_not_read(made: Unwinding, told: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.procfs, "tids", lambda pid: [])
    monkeypatch.setattr(module.procfs, "state", lambda pid: "")
    told.alive = False
    made.mapped(7, MAPPING, 5)
    made.exited(7)
    made.poll()
    assert told.take() == [("unmap", 7)]
    made.mapped(8, MAPPING, 5)
    made.poll()
    assert told.take() == [("read", 8), ("unmap", 8)]
    assert told.restacks == 0


def test_use_is_told_apart_every_two_seconds(made: Unwinding, told: Recorder, clock: Clock) -> None:
    for _ in range(11):
        made.poll()
        clock.now += 1
    assert told.told.count(("unwind_epoch", 9)) == 6


def test_many_processes_are_read_a_slice_at_a_time(made: Unwinding, told: Recorder) -> None:
    told.cost = module._SLICE / 2
    for pid in range(10, 30):
        made.began(pid)
    made.poll()
    assert sum(name == "read" for name, _ in told.take()) == 4
    for _ in range(4):
        made.poll()
    assert sum(name == "read" for name, _ in told.take()) == 16


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """States that /proc tells of the threads of process 7."""
    found = {7: "Z", 71: "S"}
    monkeypatch.setattr(module.procfs, "state", lambda tid: found.get(tid, ""))
    monkeypatch.setattr(module.procfs, "tids", lambda pid: list(found) if pid == 7 else [])
    return found


def test_threads_without_a_main_thread_keep_their_tables(
    made: Unwinding, told: Recorder, clock: Clock, states: dict[int, str]
) -> None:
    made.poll()
    made.exited(7)
    clock.now += 10
    made.poll()
    assert ("unmap", 7) not in told.take()
    del states[71]
    clock.now += 10
    made.poll()
    assert ("unmap", 7) in told.take()
    clock.now += 10
    made.poll()
    assert ("unmap", 7) not in told.take()


def test_a_process_id_that_another_took_is_read_anew(
    made: Unwinding, told: Recorder, clock: Clock, states: dict[int, str]
) -> None:
    made.poll()
    made.exited(7)
    states[7] = "S"
    clock.now += 10
    made.poll()
    found = told.take()
    assert ("unmap", 7) not in found
    assert ("read", 7) in found


def test_nothing_is_kept_of_a_process_that_is_gone(
    made: Unwinding, told: Recorder, clock: Clock, states: dict[int, str]
) -> None:
    states.clear()
    told.alive = False
    told.wanted = Wanted({7}, set())
    made.poll()
    assert not made._looks
    assert not made._busy_until
    assert ("unmap", 7) in told.take()


def test_a_new_program_is_looked_at_soon(made: Unwinding, told: Recorder, clock: Clock) -> None:
    for _ in range(200):
        told.wanted = Wanted({7}, set())
        made.poll()
        clock.now += 0.05
    made.began(7)
    made.poll()
    told.take()
    told.wanted = Wanted({7}, set())
    clock.now += 0.2
    made.poll()
    assert ("read", 7) in told.take()


def test_many_strangers_are_looked_at_a_slice_at_a_time(
    made: Unwinding, told: Recorder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(pid: int) -> None:
        told.told.append(("refresh", pid))
        clock.now += module._SLICE / 4

    monkeypatch.setattr(told, "refresh", slow)
    told.processes = {pid: object() for pid in range(10, 30)}
    told.wanted = Wanted(set(told.processes), set())
    made.poll()
    assert sum(name == "refresh" for name, _ in told.take()) == 4


def test_what_was_missed_once_is_looked_at_all_the_same(made: Unwinding, told: Recorder, clock: Clock) -> None:
    """A thread that sleeps is walked when it is taken in, and not again before tables have come."""
    told.wanted = Wanted({8}, set())
    made.poll()
    assert told.take() == []
    told.processes[8] = object()  # it was adopted meanwhile
    made.poll()
    assert told.take()[:2] == [("refresh", 8), ("read", 8)]
