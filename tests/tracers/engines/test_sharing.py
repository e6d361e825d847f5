"""Processes that were inside, from events that come in any order. With real calls: tests/live/test_ioctl.py."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from stallscope.converters.model.sharing import SharedCall
from stallscope.tracers.engines.ebpf.measures.recorder import RING
from stallscope.tracers.engines.ebpf.measures.shared_rings import SharedRings
from stallscope.tracers.engines.sharing import EVENT, Sharing

Event = tuple[int, int, int, int, int, int]
"""begin, end, number, process, thread, whether it is a wait."""
SLOTS = 64


def call(pid: int, begin: int, end: int, tid: int = 0, number: int = 1) -> Event:
    return begin, end, number, pid, tid or pid, 0


def wait(pid: int, begin: int, end: int) -> Event:
    return begin, end, 1, pid, pid, 1


class Rings:
    """Two rings, as the probes write them."""

    def __init__(self) -> None:
        self.events, self.rings = bytearray(2 * SLOTS * EVENT.itemsize), bytearray(2 * RING.itemsize)
        self._rings, self._events = np.frombuffer(self.rings, RING), np.frombuffer(self.events, EVENT)
        self._rings["slots"], self._rings["first"] = SLOTS, [0, SLOTS]
        self.sharing = SharedRings(self.events, self.rings, lambda number: number // 10)

    def write(self, *events: Event) -> None:
        for event in events:
            ring = self._rings[event[5] : event[5] + 1]
            if ring["head"][0] - ring["tail"][0] >= SLOTS:
                ring["lost"] += 1
                continue
            self._events[int(ring["first"][0] + ring["head"][0] % SLOTS)] = event
            ring["head"] += 1

    def of(self, *events: Event, upto: int = 1000) -> SharedCall:
        self.write(*events)
        self.sharing.take()
        self.sharing.settle(upto, {}, final=True)
        return self.sharing.found[1]


def figures(found: SharedCall) -> tuple[int, ...]:
    return found.busy, found.shared, found.inside, found.count, found.time, found.alone, found.alone_time


def test_one_after_the_other_share_nothing() -> None:
    found = Rings().of(call(1, 100, 200), call(2, 200, 250), call(1, 300, 310))
    assert figures(found) == (160, 0, 160, 3, 160, 3, 160)
    assert found.factor is None, "no call had another process beside it"
    assert found.turns == {1: 110, 2: 50}
    assert found.waits == {}


def test_threads_of_a_process_are_one_process() -> None:
    found = Rings().of(call(1, 100, 200, tid=7), call(1, 150, 300, tid=8))
    assert figures(found) == (200, 0, 200, 2, 250, 2, 250)


def test_who_waits_for_whom() -> None:
    """2 has the lock first, then 1, then 3; each is blocked until the one before returns."""
    rings = Rings()
    found = rings.of(
        *(call(1, 100, 260), call(2, 110, 200), call(3, 120, 300), call(1, 400, 410)),
        *(wait(1, 105, 200), wait(3, 125, 260)),
    )
    assert figures(found) == (210, 150, 160 + 90 + 180 + 10, 4, 440, 1, 10)
    assert found.turns == {1: 60 + 10, 2: 90, 3: 40}
    assert found.waits == {(1, 2): 90, (3, 2): 75, (3, 1): 60}
    assert found.factor == pytest.approx((160 + 90 + 180) / 3 / 10)
    assert found.held() == {2: 165, 1: 60}


def test_a_call_that_goes_on_is_inside() -> None:
    rings = Rings()
    rings.write(call(1, 100, 200))
    rings.sharing.take()
    rings.sharing.settle(500, {(1, 2): 150})
    assert rings.sharing.found[1].busy == 50  # what comes later depends on the one that goes on
    rings.sharing.settle(500, {(1, 2): 150}, final=True)
    assert figures(rings.sharing.found[1]) == (400, 50, 450, 1, 100, 0, 0)


def test_another_command_of_the_device_is_not_alone() -> None:
    """20 is of another device: it changes nothing."""
    rings = Rings()
    events = call(1, 100, 200), call(2, 150, 260, number=2), call(2, 300, 310), call(1, 305, 306, number=20)
    found = rings.of(*events, wait(1, 160, 190))
    assert figures(found) == (110, 0, 110, 2, 110, 1, 10)
    assert (found.factor, found.waits, found.turns) == (pytest.approx(10), {}, {1: 100, 2: 10})
    assert figures(rings.sharing.found[2]) == (110, 0, 110, 1, 110, 0, 0)
    assert figures(rings.sharing.found[20]) == (1, 0, 1, 1, 1, 1, 1)


def test_a_command_that_goes_on_holds_up_its_device() -> None:
    rings = Rings()
    rings.write(call(1, 100, 200), call(1, 100, 200, number=20))
    rings.sharing.take()
    rings.sharing.settle(500, {(2, 2): 150})
    assert rings.sharing.found[1].count == 0
    assert rings.sharing.found[20].count == 1
    rings.write(call(2, 150, 510, number=2))
    rings.sharing.take()
    rings.sharing.settle(600, {})
    assert figures(rings.sharing.found[1]) == (100, 0, 100, 1, 100, 0, 0)


def test_who_was_there_at_a_boundary_is_not_alone() -> None:
    """Calls that ended before are forgotten at the boundary."""
    rings = Rings()
    rings.write(call(1, 100, 200))
    rings.sharing.take()
    rings.sharing.settle(500, {(2, 2): 150}, final=True)
    rings.write(call(2, 150, 510, number=2))
    rings.sharing.take()
    rings.sharing.settle(600, {})
    assert figures(rings.sharing.found[2])[3:] == (1, 360, 0, 0)


def test_what_ended_long_ago_is_forgotten() -> None:
    """Calls of a command that was called once are forgotten, while another goes on being called."""
    rings = Rings()
    for time in range(100, 1000, 10):
        rings.write(call(1, time, time + 5, number=2 if time == 100 else 1))
        rings.sharing.take()
        rings.sharing.settle(time + 7, {})
    assert sum(len(state.events) for state in rings.sharing._states.values()) == 0
    assert rings.sharing.found[1].count == 89


def test_a_full_ring_counts_what_it_loses() -> None:
    rings = Rings()
    found = rings.of(*(call(1, i, i + 1) for i in range(1, SLOTS + 6)))
    assert (found.count, rings.sharing.lost) == (SLOTS, 5)


def by_hand(everything: list[Event], number: int) -> SharedCall:
    """Shared calls of one command, counted a ns at a time."""
    anywhere = [event for event in everything if not event[5]]
    events = [event for event in everything if event[2] == number]
    calls, found = [event for event in events if not event[5]], SharedCall("", "")
    calls.sort(key=lambda event: event[1])
    for time in range(max(event[1] for event in calls)):
        inside = {pid for begin, end, _, pid, *_ in calls if begin <= time < end}
        found.busy += bool(inside)
        found.shared += len(inside) > 1
        found.inside += len(inside)
        holder = next((event for event in calls if event[1] > time), None)
        if holder is None or holder[0] > time:
            continue
        found.turns[holder[3]] = found.turns.get(holder[3], 0) + 1
        for pid in {pid for begin, end, _, pid, _, is_wait in events if is_wait and begin <= time < end} - {holder[3]}:
            found.waits[pid, holder[3]] = found.waits.get((pid, holder[3]), 0) + 1
    for begin, end, _, pid, *_ in calls:
        found.count += 1
        found.time += end - begin
        if not any(b < end and e > begin for b, e, _, other, *_ in anywhere if other != pid):
            found.alone += 1
            found.alone_time += end - begin
    return found


@pytest.mark.parametrize("seed", range(20))
def test_in_pieces_it_is_the_same_as_by_hand(seed: int) -> None:
    """Calls of four threads, each with a wait; worked on at any time, while some go on."""
    chance = random.Random(seed)
    events = []
    for tid in range(1, 5):
        time = chance.randint(1, 50)
        while time < 400:
            end = time + chance.randint(2, 60)
            begin = chance.randint(time, end - 1)
            number = chance.choice([1, 1, 2])
            events += [(time, end, number, tid % 3 + 1, tid, 0), (begin, end, number, tid % 3 + 1, tid, 1)]
            time = end + chance.randint(1, 60)
    ends = [event[1] for event in events]
    events = [event for event in events if ends.count(event[1]) <= 2]  # the order of equal ends is not defined
    rings, before = Rings(), 0
    for now in [*sorted(chance.sample(range(1, 450), 5)), 1000]:
        rings.write(*(event for event in events if before < event[1] <= now))
        rings.sharing.take()
        going_on: dict[tuple[int, int], int] = {}
        for begin, end, number, pid, _, is_wait in events:
            if begin < now < end and not is_wait:
                going_on[number, pid] = min(begin, going_on.get((number, pid), begin))
        rings.sharing.settle(now, going_on)
        before = now
    for each in (1, 2):
        found, wanted = rings.sharing.found[each], by_hand(events, each)
        assert figures(found) == figures(wanted)
        assert found.turns == wanted.turns
        for pair in itertools.permutations(range(1, 4), 2):
            assert found.waits.get(pair, 0) == wanted.waits.get(pair, 0), pair


def test_events_that_are_handed_over() -> None:
    sharing = Sharing(lambda number: number)
    sharing.hand([(100, 190, 1, 1, 1, 0), (120, 220, 1, 2, 2, 0), (130, 190, 1, 2, 2, 1)])
    sharing.settle(1000, {}, final=True)
    found = sharing.found[1]
    assert (found.count, found.busy, found.shared, found.waits) == (2, 120, 70, {(2, 1): 60})
