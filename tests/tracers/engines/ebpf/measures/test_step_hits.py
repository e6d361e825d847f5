from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.cpython.functions import Function
from stallscope.tracers.engines.ebpf.measures.step_hits import (
    FRAME,
    FREE,
    HIT,
    INNERMOST,
    UNREADABLE,
    Hit,
    StepHits,
    accounts,
    parse_hit,
)
from stallscope.tracers.kernel.records import RECORD_STEP

CODE, MAIN, OTHER = 0x1000, 0x2000, 0x3000
HEADER = Path(__file__).resolve().parents[5] / "bpf" / "python_steps.bpf.c"
OLD, LAST, NEW, NEWEST = (3, 10), (3, 11), (3, 12), (3, 13)
VERSIONS = [(3, 8), (3, 9), OLD, LAST, NEW, NEWEST, (3, 14)]


def function(version: tuple[int, int]) -> Function:
    return Function("step", "train.py", 1, version, b"")


def hit(  # noqa: PLR0917
    time: int, references: int, flags: int = 0, inside: int = 0, instruction: int = 20, caller: int = MAIN, tid: int = 7
) -> Hit:
    return Hit(references, time, CODE, caller, 99, instruction, tid, 5, 1, inside, flags)


def calls(version: tuple[int, int], *hits: Hit, references: int | None = 2) -> tuple[list[tuple[int, int]], StepHits]:
    """Begins and ends; those that go on end at -1."""
    hits_ = StepHits(version, references, function(version))
    found = [(call.begin, call.end) for each in hits if (call := hits_.take(each))]
    ended, still = hits_.finish()
    return found + [(call.begin, call.end) for call in ended] + [(each.time, -1) for each in still], hits_


def test_records() -> None:
    given = Hit(3, 1 << 40, CODE, MAIN, (1 << 64) - 1, 20, 7, 5, 9, 1, FRAME)
    assert parse_hit(HIT.pack(RECORD_STEP, *given)) == given
    assert HIT.size == 64


@pytest.mark.parametrize("version", VERSIONS)
def test_calls_that_return(version: tuple[int, int]) -> None:
    found, hits = calls(version, hit(10, 3), hit(20, 2, FRAME), hit(30, 3), hit(45, 2, FRAME), hit(50, 3))
    assert found == [(10, 20), (30, 45), (50, -1)]
    assert vars(accounts([hits])) == {"uses": 0, "unreadable": 0, "missed": 0}


def test_the_frame_may_be_there_until_it_ends() -> None:
    found, _ = calls(LAST, hit(10, 3), hit(20, 2, INNERMOST, 1, instruction=28), hit(30, 3), hit(40, 2, INNERMOST, 1))
    assert found == [(10, 20), (30, 40)]
    found, _ = calls(LAST, hit(10, 3), hit(12, 4, INNERMOST, 1), hit(20, 3, INNERMOST, 1))
    assert found == [(10, -1)], "a reference that the function itself took"
    found, _ = calls(LAST, hit(10, 3), hit(12, 4, INNERMOST, 1), hit(20, 3, INNERMOST, 1), hit(30, 2, INNERMOST, 1))
    assert found == [(10, 30)]


@pytest.mark.parametrize("version", VERSIONS)
def test_other_uses_are_no_calls(version: tuple[int, int]) -> None:
    old = FREE if version <= OLD else 0
    looked = [
        hit(10, 3, old),
        hit(12, 4, old, instruction=26),
        hit(13, 3, old, instruction=26),
        hit(14, 2, old, instruction=30),
    ]
    found, _ = calls(version, *looked, hit(20, 3), hit(30, 2, FRAME))
    assert found == [(20, 30)]
    found, _ = calls(version, hit(20, 3, caller=OTHER), hit(25, 3 + 1), hit(30, 3, FRAME))
    assert found == [(25, 30)], "the begin is the last one outside"
    found, _ = calls(version, hit(20, 3), hit(30, 2, FRAME, caller=OTHER))
    assert not found


@pytest.mark.parametrize("version", VERSIONS)
def test_calls_inside(version: tuple[int, int]) -> None:
    nested = hit(12, 4, 0, 1), hit(15, 5, INNERMOST, 2), hit(16, 4, INNERMOST, 2), hit(18, 3, 0, 1)
    found, _ = calls(version, hit(10, 3), *nested, hit(30, 2, FRAME))
    assert found == [(10, 30)]


@pytest.mark.parametrize("version", [NEW, NEWEST])
def test_an_exception_leaves_a_call(version: tuple[int, int]) -> None:
    """The frame is kept: a reference more is taken just before the end, and given back later."""
    moved = 26 if version == NEW else 20
    found, _ = calls(
        version,
        hit(10, 3),
        hit(20, 4, FRAME, instruction=moved),
        hit(21, 3, FRAME),
        hit(40, 2),
        hit(50, 3),
        hit(60, 2, FRAME),
    )
    assert found == [(10, 21), (50, 60)]


@pytest.mark.parametrize("version", [OLD, LAST])
def test_an_exception_leaves_a_call_whose_end_is_not_seen(version: tuple[int, int]) -> None:
    found, hits = calls(version, hit(10, 3), hit(40, 2, instruction=60), hit(50, 3), hit(60, 2, FRAME))
    assert found == [(50, 60)]
    assert hits.account.uses == 1


def test_up_to_3_10_a_kept_frame_shows_an_end() -> None:
    found, _ = calls(OLD, hit(10, 3), hit(20, 2, FREE))
    assert found == [(10, 20)]
    assert not calls(OLD, hit(10, 3), hit(20, 2))[0]
    assert not calls(OLD, hit(10, 3, FREE), hit(20, 2, FREE))[0]


def test_threads() -> None:
    found, _ = calls(NEW, hit(10, 3), hit(12, 4, tid=8), hit(20, 3, FRAME), hit(25, 2, FRAME, tid=8))
    assert found == [(10, 20), (12, 25)]


def test_writes_that_were_not_seen() -> None:
    found, hits = calls(NEW, hit(10, 3), hit(20, 5, FRAME), hit(30, 6), hit(40, 5, FRAME))
    assert found == [(30, 40)]
    assert hits.account.missed == 1
    assert calls(NEW, hit(10, 3), hit(20, 4), hit(30, 3, FRAME), references=None)[0] == [(20, 30)]


def test_what_cannot_be_read() -> None:
    found, hits = calls(NEW, hit(10, 3), hit(20, 2, UNREADABLE | FRAME), hit(30, 3), hit(40, 2, FRAME))
    assert found == [(30, 40)]
    assert hits.account.unreadable == 1


def test_a_function_that_is_freed() -> None:
    found, hits = calls(
        NEW, hit(10, 3), hit(20, 2, FRAME), hit(30, 1), hit(31, 0), hit(40, 1), hit(50, 2), hit(60, 1, FRAME)
    )
    assert found == [(10, 20)]
    assert hits.is_freed
