"""Numbers of collectives by counters in the memory of communicators."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from stallscope.converters.collectives.counters import BYTES, Count, Rank, firsts, windows, words
from stallscope.converters.collectives.evidence import FIELDS
from stallscope.converters.collectives.meetings import Calls, Member

MS = 1_000_000
REDUCE, GATHER = 4, 2
PLACE = 1000
"""Offset of the first counter."""


def words_of(numbers: dict[int, int]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array(sorted(numbers.items()), np.int64).reshape(-1, 2)


def rank(
    number: int,
    before: int,
    *,
    functions: tuple[int, ...] = (REDUCE,) * 20,
    reads: tuple[int, ...] = (3, 8, 15),
    other: dict[int, tuple[int, int]] | None = None,
) -> Rank:
    """A rank that makes a call each 10 ms, of 2 ms, and whose memory is read 5 ms after some of them. ``before``: calls
    of each function before the trace. ``other``: further words, as offset → (begin, growth)."""
    began = np.arange(len(functions), dtype=np.int64) * 10 * MS
    of = np.array(functions, np.int64)
    calls = Calls(Member(number, 0x5000), began, began + 2 * MS, of, began + 9 * MS, np.ones(len(of), bool))
    counts = []
    for turn in reads:
        numbers = {PLACE + 8 * each: before + int((of[: turn + 1] == each).sum()) for each in set(functions)}
        numbers |= {place: begin + growth * (turn + 1) for place, (begin, growth) in (other or {}).items()}
        at = turn * 10 * MS + 5 * MS
        counts.append(Count(at, at + MS, words_of(numbers)))
    return Rank(calls, of, counts)


def test_ranks_that_are_some_calls_apart() -> None:
    assert firsts([rank(10, 50), rank(11, 53), rank(12, 49)]) == (0, 3, -1)


def test_functions_have_counters_of_their_own() -> None:
    """The second rank begins with the second of three calls that repeat."""
    first = rank(10, 50, functions=(REDUCE, GATHER, GATHER) * 7, reads=(2, 5, 8, 14))
    of = (GATHER, GATHER, REDUCE) * 6
    second = rank(11, 0, functions=of, reads=(2, 5, 8, 14))
    counts = [
        each._replace(words=words_of({p: n + (51 if p == PLACE + 8 * REDUCE else 50) for p, n in each.words.tolist()}))
        for each in second.counts
    ]
    assert firsts([first, second._replace(counts=counts)]) == (0, 1)


def test_words_that_do_not_count_calls() -> None:
    noise = {8: (7, 0), 16: (0, 2), 24: (5, 3)}
    assert firsts([rank(10, 50, other=noise), rank(11, 51, other=noise)]) == (0, 1)


def test_counters_that_contradict_each_other() -> None:
    mine, theirs = {8: (50, 1)}, {8: (70, 1)}
    assert firsts([rank(10, 50, other=mine), rank(11, 51, other=theirs)]) is None


def test_a_word_at_another_offset() -> None:
    (first, second) = rank(10, 50), rank(11, 51)
    moved = [each._replace(words=each.words + np.array([8, 0])) for each in second.counts]
    assert firsts([first, second._replace(counts=moved)]) is None


@pytest.mark.parametrize(("reads", "known"), [((3, 8, 15), True), ((3, 15), False), ((3, 4, 5), False), ((), False)])
def test_memory_that_was_seldom_read(reads: tuple[int, ...], known: bool) -> None:
    found = firsts([rank(10, 50), rank(11, 51, reads=reads)])
    assert found == ((0, 1) if known else None)


def test_memory_that_was_read_during_a_call() -> None:
    """The call may be counted, or not: it is no evidence, and no contradiction."""
    of = rank(11, 51)
    during = Count(101 * MS, 106 * MS, words_of({PLACE + 8 * REDUCE: 51 + 10}))
    assert firsts([rank(10, 50), of._replace(counts=[*of.counts, during])]) == (0, 1)
    after = Count(103 * MS, 106 * MS, words_of({PLACE + 8 * REDUCE: 51 + 10}))
    assert firsts([rank(10, 50), of._replace(counts=[*of.counts, after])]) is None, "11 calls had returned"


def test_ranks_without_a_call_in_common() -> None:
    assert firsts([rank(10, 50), rank(11, 90)]) is None


def test_words_of_memory() -> None:
    data = struct.pack("<5Q", 0, 7, 1 << 50, 9, 1 << 39) + b"xyz"
    assert words(400, data).tolist() == [[408, 7], [424, 9], [432, 1 << 39]]


def test_what_is_read_again() -> None:
    found = np.zeros(5, np.dtype(list(FIELDS)))
    found["place"] = (5000, 800, 5000 + BYTES, 800 + BYTES, 9 * BYTES)
    assert windows(found) == [(800, BYTES), (800 + BYTES, BYTES)]
    assert windows(found[:0]) == []
