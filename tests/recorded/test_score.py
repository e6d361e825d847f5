"""Scores of captures."""

from __future__ import annotations

from job import Truth
from score import Score, report

TRUTH = Truth(("lock", "io"), ("worker",), ("flush", "fsync"), "a lock")


def test_all_expressions_have_to_match_the_first_sentence() -> None:
    assert Score("x", TRUTH, ("a worker waits in flush, fsync",), None).is_right
    assert not Score("x", TRUTH, ("a worker waits in flush", "in fsync"), None).is_right


def test_what_a_later_sentence_says_is_told_apart_from_what_none_says() -> None:
    score = Score("x", TRUTH, ("a worker waits", "in fsync"), None)
    assert (score.subjects, score.names) == (["yes"], ["NO", "later"])


def test_the_kind_counts_if_there_is_one() -> None:
    said = ("a worker waits in flush, fsync",)
    assert [Score("x", TRUTH, said, kind).is_right for kind in ("lock", "io", "idle")] == [True, True, False]
    assert Score("x", TRUTH, said, None).kind_is_right is None


def test_an_answer_without_a_sentence_is_wrong() -> None:
    assert not Score("x", TRUTH, (), None).is_right


def test_totals_are_told_by_kind() -> None:
    lines: list[str] = []
    wrong = Score("y", TRUTH, ("nothing",), "idle")
    report([Score("x", TRUTH, ("a worker waits in flush, fsync",), "lock"), wrong], lines.append)
    assert [line.split() for line in lines[-2:]] == [
        ["lock", "2", "1", "1", "1", "1"],
        ["all", "2", "1", "1", "1", "1"],
    ]
