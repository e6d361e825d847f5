from __future__ import annotations

import struct

import pytest
from stallscope.tracers.engines.bcc import layouts
from stallscope.tracers.engines.bcc.layouts import NEW, OTHER, PREEMPTED, KernelAccount, Phase, WaitSum

LETTERS = {1 << i: letter for i, letter in enumerate("SDTtXZPI")}


def test_a_thread_that_is_taken_in() -> None:
    account = KernelAccount.unpack(KernelAccount.seed(7, 2, 1000))
    assert (account.tgid, account.state, account.phase, account.is_new) == (7, 2, Phase.UNKNOWN, 0)
    assert account.life == account.start == account.since == account.out == 1000
    assert (account.woken, account.on_cpu, account.switches, account.comm) == (0, 0, 0, b"")
    assert account.blocked == (0,) * layouts.STATES


@pytest.mark.parametrize(
    ("letter", "index", "name"),
    [
        ("S", 1, "interruptible"),
        ("D", 2, "uninterruptible"),
        ("t", 4, "traced"),
        ("P", 7, "other"),
        ("I", 8, "idle"),
        ("?", OTHER, "other"),
    ],
)
def test_states(letter: str, index: int, name: str) -> None:
    assert layouts.state_index(letter, LETTERS) == index
    assert layouts.state_name(index, LETTERS) == name


def test_states_that_are_no_bit() -> None:
    assert layouts.state_index("R", LETTERS) == PREEMPTED
    assert {layouts.state_name(index, LETTERS) for index in (PREEMPTED, OTHER, NEW, 12)} == {"other"}


def test_frames() -> None:
    value = struct.pack("=Q", 16) + struct.pack("=127Q", *range(1, 128))
    assert layouts.frames(value) == (1, 2)
    assert len(layouts.frames(struct.pack("=Q", 1 << 40) + value[8:])) == layouts.FRAMES


def test_sums() -> None:
    one, other = WaitSum(1, 10, 10, 10, 5, 5, 5), WaitSum(2, 30, 4, 26, 0, 0, 0)
    assert one.plus(other) == WaitSum(3, 40, 4, 26, 5, 0, 5)
