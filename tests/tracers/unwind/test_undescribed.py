from __future__ import annotations

import numpy as np
import pytest
from stallscope.tracers.unwind.rows import END, GAP, RSP, pack
from stallscope.tracers.unwind.undescribed import More, combine

A, B, C = pack(RSP, 1), pack(RSP, 2), pack(RSP, 3)
NONE, LAST = pack(GAP), pack(END)
Pairs = list[tuple[int, int]]


def combined(own: Pairs, more: More) -> Pairs:
    pcs, words = np.array(own or [(0, 0)], np.uint32)[: len(own)].T
    return [(int(pc), int(word)) for pc, word in zip(*combine(pcs, words, more), strict=True)]


@pytest.mark.parametrize(
    ("own", "more", "expected"),
    [
        ([(10, A), (20, NONE)], [], [(10, A), (20, NONE)]),
        ([], [(10, A), (20, NONE)], [(10, A), (20, NONE)]),
        # Read before, between and behind what is described; where one begins and another ends, it begins.
        ([(20, A), (30, NONE)], [(10, B), (20, NONE)], [(10, B), (20, A), (30, NONE)]),
        ([(20, A), (30, NONE)], [(30, B), (40, NONE)], [(20, A), (30, B), (40, NONE)]),
        (
            [(10, A), (20, NONE), (30, B), (40, NONE)],
            [(22, C), (28, NONE)],
            [(10, A), (20, NONE), (22, C), (28, NONE), (30, B), (40, NONE)],
        ),
    ],
)
def test_rules_take_the_place_of_gaps(own: Pairs, more: Pairs, expected: Pairs) -> None:
    assert combined(own, More(more, [])) == expected


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([(10, 40)], [(10, LAST), (40, NONE)]),
        ([(14, 16)], [(10, A), (14, LAST), (16, A), (20, B), (40, NONE)]),
        ([(14, 20)], [(10, A), (14, LAST), (20, B), (40, NONE)]),
        ([(14, 30)], [(10, A), (14, LAST), (30, B), (40, NONE)]),
        ([(50, 60)], [(10, A), (20, B), (40, NONE), (50, LAST), (60, NONE)]),
        ([(0, 5)], [(0, LAST), (5, NONE), (10, A), (20, B), (40, NONE)]),
    ],
)
def test_outermost_frames_win_over_any_rule(ends: Pairs, expected: Pairs) -> None:
    assert combined([(10, A), (20, B), (40, NONE)], More([], ends)) == expected


def test_what_is_too_far_away_is_left_out() -> None:
    more = More([(0x100, A), (0x1100, B), (0x2100, C)], [(0x1000, 0x1010), (0x1FFF, 0x2001)])
    assert more.within(0x1000, 0x2000) == More([(0x100, B)], [(0, 0x10)])
