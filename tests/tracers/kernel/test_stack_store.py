from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from stallscope.tracers.kernel import stack_store
from stallscope.tracers.kernel.stack_store import StackStore

COMPLETE, FAULT = 0, 4


def record(number: int, frames: tuple[int, ...], end: int = COMPLETE) -> bytes:
    return struct.pack(f"<IHHQ{len(frames)}Q", 1, len(frames), end, number, *frames)


def test_empty() -> None:
    store = StackStore()
    assert (len(store), store.bytes, store.find([1])) == (0, 0, ({}, {}))


@pytest.fixture(params=[1, 1 << 10, 1 << 22])
def batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that are indexed at a time."""
    monkeypatch.setattr(stack_store, "_BATCH", request.param)
    monkeypatch.setattr(stack_store, "_SOME", 3)
    return int(request.param)


def test_every_stack_is_found(batch: int) -> None:
    chance = random.Random(batch)
    stacks = {
        chance.getrandbits(64) | 1: tuple(chance.getrandbits(64) for _ in range(chance.randint(1, 127)))
        for _ in range(300)
    }
    ends = {number: FAULT for number in stacks if number % 3 == 0}
    store = StackStore()
    for number in [*stacks, *chance.choices(list(stacks), k=300)]:
        store.add(record(number, stacks[number], ends.get(number, COMPLETE)))
    assert store.find([*stacks, 8]) == (stacks, ends)
    assert len(store) == 300
    size = sum(16 + 8 * len(frames) for frames in stacks.values())
    assert store.bytes == size + 300 * stack_store._PER_STACK


def test_what_is_not_kept_is_gone_and_may_come_again(batch: int) -> None:
    store = StackStore()
    for number in range(1, 100, 2):
        store.add(record(number, (number, 5)))
    before = store.bytes
    with store.sorting():
        store.add(record(201, (7,)))
        store.keep(np.array([9, 5, 5, 4711], np.uint64))
        store.add(record(203, (8,)))
    assert store.bytes < before
    assert store.find(range(300)) == ({5: (5, 5), 9: (9, 5), 201: (7,), 203: (8,)}, {})
    store.add(record(7, (6, 6, 6)))
    assert store.find([7])[0] == {7: (6, 6, 6)}
    with store.sorting():
        store.keep(np.zeros(0, np.uint64))
    assert len(store) == 0


def test_equal_addresses_share_an_object() -> None:
    """A million frames would otherwise take 32 bytes each."""
    store = StackStore()
    store.add(record(1, (1 << 40, 5)))
    store.add(record(3, (9, 1 << 40)))
    frames, _ = store.find([1, 3])
    assert frames[1][0] is frames[3][1]


def test_taken_stacks_are_forgotten() -> None:
    store = StackStore()
    store.add(record(1, (5, 6), FAULT))
    store.add(record(3, (7,)))
    assert (len(store), store.frames) == (2, 3)
    assert store.take([1]) == ({1: (5, 6)}, {1: FAULT})
    assert (len(store), store.bytes, store.find([1, 3])) == (0, 0, ({}, {}))
