"""Events made by hand, in rings as the kernel side fills them."""

from __future__ import annotations

import threading
from typing import Any, Literal

import numpy as np
import pytest
from stallscope.converters.model.scheduling import NEW as FIRST_TIME
from stallscope.converters.model.scheduling import NO_STACK, OPEN
from stallscope.tracers.engines.ebpf.measures import recorder
from stallscope.tracers.engines.ebpf.measures.protocol import Ended, Recorded
from stallscope.tracers.engines.ebpf.measures.recorder import EVENT, MADE, RING, SAMPLED, SWITCHED, WOKEN, Recorder
from stallscope.tracers.kernel import records
from stallscope.tracers.kernel.records import Origin, Thread, ThreadRecord, WaitSum

BEGAN, STOPPED = 1_000_000, 2_000_000
SLOTS = 8
INTERRUPTIBLE, UNINTERRUPTIBLE, FOR_EVER = 1, 2, 9


def thread(
    tid: int,
    *,
    tgid: int = 1,
    start: int = BEGAN,
    out: int = 0,
    woken: int = 0,
    state: int = INTERRUPTIBLE,
    phase: int = records.ON_CPU,
    exited: bool = False,
    stack: int = 0,
) -> ThreadRecord:
    key = Origin(stack, 0, 0, tid, tgid, 0, state)
    nothing = Origin(0, 0, 0, 0, 0, 0, 0)
    found = Thread(start, start, out, woken, 0, 0, (0,) * 8, 0, (), key, nothing, WaitSum(*[0] * 7), phase, 0)
    return ThreadRecord(STOPPED, b"name", found, exited)


class Kernel:
    """Two cores with rings."""

    def __init__(self, limit: int = 100, kept: Literal["newest", "first"] = "newest") -> None:
        self.events, self.rings = np.zeros(2 * SLOTS, EVENT), np.zeros(2, RING)
        self.rings["first"], self.rings["slots"] = [0, SLOTS], SLOTS
        self.recorder = Recorder(self.events, self.rings, limit, kept)

    def write(self, cpu: int, **fields: Any) -> None:
        """Writes as written() in bpf/timeline.bpf.c does."""
        ring = self.rings[cpu]
        if ring["head"] - ring["tail"] >= ring["slots"]:
            ring["lost"] += 1
            ring["pending"] += 1
            return
        event = np.zeros((), EVENT)
        for name, value in {"cpu": cpu, "lost": ring["pending"], **fields}.items():
            event[name] = value
        self.events[int(ring["first"]) + int(ring["head"]) % SLOTS] = event
        ring["pending"] = 0
        ring["head"] += 1

    def switch(self, cpu: int, at: int, leaves: int, comes: int, left: int = INTERRUPTIBLE, **wait: int) -> None:
        self.write(cpu, kind=SWITCHED, time=BEGAN + at, other=leaves, tid=comes, left=left, **wait)

    def finish(self, *threads: ThreadRecord, exits: bytes = b"") -> Recorded:
        self.recorder.take()
        self.recorder.close()
        return self.recorder.finish(Ended(BEGAN, STOPPED, threads), exits, BEGAN + 10, every_switch=False)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_BLOCK", 4)


def test_nothing() -> None:
    found = Kernel().finish()
    assert found.scheduling.count() == 0
    assert (found.scheduling.begin, found.scheduling.end, found.scheduling.monotonic) == (0, STOPPED - BEGAN, BEGAN)
    assert (found.lives, found.places) == ([], [])


def test_every_kind_of_event() -> None:
    kernel = Kernel()
    kernel.switch(0, 100, 7, 0, UNINTERRUPTIBLE)
    kernel.write(1, kind=MADE, time=BEGAN + 120, out=BEGAN + 110, woken=1, tid=8, other=6, what=5, prio=120)
    kernel.write(1, kind=WOKEN, time=BEGAN + 150, out=1, woken=0, tid=7, other=6, prio=-1)
    kernel.switch(0, 160, 0, 7, 7, out=BEGAN + 100, woken=BEGAN + 150, ustack=3, kstack=4, what=2, wait=2)
    kernel.switch(1, 170, 6, 8, 0)
    kernel.switch(1, 180, 8, 6, FOR_EVER)
    exits = np.array([(BEGAN + 175, 1, 8, 5)], [("time", "<i8"), ("cpu", "<u2"), ("tid", "<i4"), ("tgid", "<i4")])
    lives = [thread(6), thread(7), thread(8, tgid=5, start=BEGAN + 110, exited=True)]
    found = kernel.finish(*reversed(lives), exits=exits.tobytes())
    events = found.scheduling
    assert events.switches.tolist() == [
        (100, 0, 2, 7, 0, 0),
        (160, 0, 0, 0, 7, 0),
        (170, 1, 0x100, 6, 8, 0),
        (180, 1, 0x10, 8, 6, 0),
    ]
    assert events.wakeups.tolist() == [(120, 1, 1, 8, 6, 120, FIRST_TIME), (150, 1, 0, 7, 6, -1, 0)]
    assert events.created.tolist() == [(110, 1, 8, 5, 6)]
    assert events.exited.tolist() == [(175, 1, 8, 5)]
    assert [(row["tid"], row["tgid"], row["begin"]) for row in events.threads] == [(6, 1, 0), (7, 1, 0), (8, 5, 110)]
    assert [found.lives[row["name"]] for row in events.threads] == lives
    assert events.blocked.tolist() == [(100, 150, 160, 7, 0, 2)]
    (where,) = found.places
    assert (where.origin.ustack, where.origin.kstack, where.origin.life, where.origin.tgid) == (3, 4, 2, 1)
    assert not where.is_open


def test_samples_are_no_events_of_the_scheduler() -> None:
    kernel = Kernel(3)
    for at in (104, 106, 108):
        kernel.write(0, kind=SAMPLED, time=BEGAN + at, tid=7, what=2, ustack=3, kstack=at % 4)
    for i in range(4):
        kernel.switch(1, 105 + i, 0, 7, out=BEGAN + 20 + i, wait=1, ustack=5)
    found = kernel.finish(thread(7))
    events = found.scheduling
    assert (events.count(), events.dropped, events.begin) == (3, 1, 106)
    assert [(row["time"], row["tid"]) for row in events.samples] == [(106, 7), (108, 7)]
    origins = [found.places[i].origin for i in events.samples["stack"]]
    assert [(origin.ustack, origin.kstack, origin.tgid, origin.state) for origin in origins] == [
        (3, 2, 1, records.RUNNING),
        (3, 0, 1, records.RUNNING),
    ]
    assert {found.places[i].origin.ustack for i in events.blocked["stack"]} == {5}


def test_samples_are_not_told_as_dropped_events() -> None:
    kernel = Kernel(3)
    for i in range(5):
        kernel.write(0, kind=SAMPLED, time=BEGAN + i, tid=7, ustack=3)
    kernel.recorder.take()
    for i in range(4):
        kernel.switch(1, 105 + i, 0, 7)
    events = kernel.finish(thread(7)).scheduling
    assert (events.count(), events.dropped, len(events.samples)) == (3, 1, 0)


def test_rings_go_round_and_losses_are_told_where_they_were() -> None:
    kernel = Kernel()
    for i in range(5):
        kernel.switch(0, i, 0, 7)
    kernel.recorder.take()
    for i in range(5, 16):
        kernel.switch(0, i, 0, 7)
    assert kernel.recorder.lost == 0, "as of the last look"
    kernel.recorder.take()
    assert kernel.recorder.lost == 3
    kernel.switch(0, 20, 0, 7)
    for i in range(10):
        kernel.switch(1, 30 + i, 0, 7)
    events = kernel.finish(thread(7)).scheduling
    assert events.switches["time"].tolist() == [*range(13), 20, *range(30, 38)]
    assert events.losses.tolist() == [(20, 3, 0), (STOPPED - BEGAN, 2, 1)]
    assert events.lost()["scheduler events"] == 5


@pytest.mark.parametrize(("kept", "times"), [("newest", range(37, 40)), ("first", range(3))])
def test_a_limit(kept: Literal["newest", "first"], times: range) -> None:
    kernel = Kernel(3, kept)
    for i in range(40):
        kernel.switch(i % 2, i, 0, 7)
        if i % 5 == 4:
            kernel.recorder.take()
    assert len(kernel.recorder._blocks) <= 3
    events = kernel.finish(thread(7)).scheduling
    assert events.switches["time"].tolist() == [*times]
    assert (events.dropped, events.kept) == (37, kept)
    assert events.begin == (37 if kept == "newest" else 0)
    assert events.end == (STOPPED - BEGAN if kept == "newest" else 2)


def test_what_is_dropped_is_all_before_what_is_kept() -> None:
    """The cores are not read at the same moment."""
    kernel = Kernel(4)
    for i in range(4):
        kernel.switch(0, 100 + i, 0, 7)
    kernel.recorder.take()
    for i in range(3):
        kernel.switch(0, 104 + i, 0, 7)
    kernel.switch(1, 102, 0, 7)
    events = kernel.finish(thread(7)).scheduling
    assert events.switches["time"].tolist() == [104, 105, 106]
    assert (events.begin, events.dropped) == (104, 5)


def test_two_threads_do_not_take_the_same_events(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    kernel.switch(0, 10, 1, 2)
    inside, go_on = threading.Event(), threading.Event()
    add = kernel.recorder._add

    def slowly(part: Any) -> None:
        inside.set()
        go_on.wait(10)
        add(part)

    monkeypatch.setattr(kernel.recorder, "_add", slowly)
    takers = [threading.Thread(target=kernel.recorder.take) for _ in range(2)]
    takers[0].start()
    inside.wait(10)
    takers[1].start()
    takers[1].join(0.1)
    go_on.set()
    for each in takers:
        each.join()
    assert kernel.finish().scheduling.count() == 1


def test_a_wait_is_told_whose_end_is_not_kept() -> None:
    kernel = Kernel(4, "first")
    for i in range(4):
        kernel.switch(0, 10 + i, 7, 0)
    kernel.recorder.take()
    kernel.switch(0, 30, 0, 7, out=BEGAN + 13, wait=1, ustack=9)
    kernel.switch(0, 50, 0, 7, out=BEGAN + 40, wait=1, ustack=9)
    found = kernel.finish(thread(7))
    assert found.scheduling.blocked.tolist() == [(13, 0, OPEN, 7, 0, 1)]


def test_waits_that_began_before() -> None:
    kernel = Kernel()
    kernel.switch(0, 100, 0, 7, out=BEGAN + 5, woken=BEGAN + 90, wait=1, first=1)
    kernel.switch(0, 200, 0, 8, out=BEGAN + 150, woken=BEGAN + 190, wait=1, first=1)
    kernel.switch(0, 300, 0, 9, out=BEGAN + 6, woken=BEGAN + 290, wait=1)
    found = kernel.finish(thread(7), thread(8), thread(9))
    assert [(span["begin"], span["stack"]) for span in found.scheduling.blocked] == [
        (-1, NO_STACK),
        (6, NO_STACK),
        (150, NO_STACK),
    ]


def test_who_was_woken_before_he_left_did_not_wait() -> None:
    kernel = Kernel()
    kernel.switch(0, 100, 0, 7, out=BEGAN + 90, woken=BEGAN + 90, wait=1, ustack=4)
    found = kernel.finish(thread(7))
    assert len(found.scheduling.blocked) == 0


def test_waits_of_others_are_left_out() -> None:
    kernel = Kernel()
    kernel.switch(0, 100, 0, 7, out=BEGAN + 90, wait=1, ustack=4)
    found = kernel.finish()
    assert len(found.scheduling.blocked) == 0
    assert found.places == []


def test_waits_that_have_not_ended() -> None:
    waiting = {"phase": records.BLOCKED, "out": BEGAN + 50, "stack": 6}
    woken = {"phase": records.RUNNABLE, "out": BEGAN + 60, "woken": BEGAN + 70}
    found = Kernel().finish(
        thread(7, **waiting),  # type: ignore[arg-type]
        thread(8, **woken, state=UNINTERRUPTIBLE),
        thread(9, **woken, state=records.PREEMPTED),
        thread(10, **woken, state=records.NEW),
        thread(11, **waiting, exited=True),  # type: ignore[arg-type]
        thread(12, phase=records.BLOCKED, start=BEGAN + 5, out=BEGAN + 5),
        thread(13, phase=records.RUNNABLE, out=BEGAN + 60, woken=BEGAN + 60),
    )
    assert found.scheduling.blocked.tolist() == [
        (-1, 0, OPEN, 12, NO_STACK, 1),
        (50, 0, OPEN, 7, 0, 1),
        (60, 70, OPEN, 8, NO_STACK, 2),
    ]
    (where,) = found.places
    assert where.is_open
    assert where.origin.ustack == 6


def test_lives_of_one_id() -> None:
    lives = [thread(7, start=BEGAN + 500, tgid=3), thread(7, start=BEGAN + 5, exited=True), thread(8)]
    kernel = Kernel()
    kernel.switch(0, 600, 0, 7, out=BEGAN + 550, wait=1, ustack=4)
    kernel.switch(0, 60, 0, 7, out=BEGAN + 55, wait=1, ustack=4)
    found = kernel.finish(*lives)
    assert [(row["tid"], row["tgid"], row["begin"]) for row in found.scheduling.threads] == [
        (7, 1, 0),
        (7, 3, 500),
        (8, 1, 0),
    ]
    spans = found.scheduling.blocked
    assert [found.places[i].origin.tgid for i in spans["stack"]] == [1, 3]


def test_an_interval_has_its_own_events() -> None:
    """A wait that crosses its begin began before it; what was read of the time after its end is not part of it."""
    kernel = Kernel()
    kernel.switch(0, -500, 7, 0)
    kernel.switch(0, 100, 0, 7, out=BEGAN - 500, woken=BEGAN - 20, ustack=3, what=1)
    kernel.recorder.take()
    kernel.switch(0, 200, 7, 0)
    kernel.switch(1, 900, 8, 0)
    kernel.recorder.take()
    kernel.recorder.begin(BEGAN)
    kernel.recorder.within(BEGAN, BEGAN + 900)
    lives = [thread(7, out=BEGAN + 200, phase=records.BLOCKED, stack=4)]
    events = kernel.finish(*lives).scheduling
    assert events.switches["time"].tolist() == [100, 200]
    assert (events.begin, events.dropped) == (0, 0)
    spans = events.blocked
    assert spans["begin"].tolist() == [-1, 200]
    assert spans["woken"].tolist() == [1, 0]
    assert spans["end"].tolist() == [100, OPEN]


def test_the_next_interval_knows_nothing_of_what_was_lost_before() -> None:
    kernel = Kernel(limit=3)
    for at in range(SLOTS + 2):
        kernel.switch(0, at, 7, 0)
    kernel.recorder.take()
    assert kernel.recorder.lost == 2
    kernel.recorder.begin(BEGAN + 50)
    assert kernel.recorder.lost == 0
    kernel.switch(0, 60, 7, 0)
    kernel.recorder.take()
    assert kernel.recorder.lost == 0
    events = kernel.finish().scheduling
    assert (len(events.switches), events.dropped, events.lost_outside) == (1, 0, 0)
