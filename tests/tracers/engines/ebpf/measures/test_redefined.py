from __future__ import annotations

from stallscope.tracers.cpython.functions import Function
from stallscope.tracers.engines.ebpf.measures.redefined import FreedPlace, Redefined
from stallscope.tracers.engines.ebpf.measures.step_hits import Hit

STEP = Function("step", "/opt/train.py", 3, (3, 12), b"")
MOVED = STEP._replace(first_line=9)


def place(*references: int) -> FreedPlace:
    made = FreedPlace()
    for time, number in enumerate(references):
        made.add(Hit(number, time, 0x1000, 0x2000, 9, 20, 7, 5, 1, 0, 0))
    return made


def kept(*references: int) -> list[int]:
    return [each.references for each in place(*references).hits]


def test_writes_are_kept_from_the_first_reference_on() -> None:
    assert kept(0x7F3210, 1, 2, 3, 2) == [1, 2, 3, 2]
    assert kept(1, 2, 1, 2) == [1, 2, 1, 2]
    assert kept(1, 2, 1, 0, 0x7F3210, 1, 2) == [1, 2]
    assert kept(1, 2, 0x7F3210) == []
    assert kept(1, 2, 4, 5) == [], "one was not seen"
    assert kept(0x7F3210, 0x7F3211) == []


def test_a_place_that_has_something_else() -> None:
    assert not place(*[1, 2] * 30).is_strange
    assert place(*[1, 2] * 40).is_strange


def test_times_without_a_definition() -> None:
    made = Redefined()
    assert not made.watched(5, STEP, 10)
    assert not made.is_missing(5)
    made.freed(5, STEP, 1000)
    assert made.is_missing(5)
    assert not made.is_missing(6)
    assert made.watched(5, MOVED, 4000)
    assert not made.is_missing(5)
    made.freed(5, MOVED, 5000)
    made.finish(9000, lambda pid: pid == 5)
    assert list(made.times(STEP)) == [(5, 1000, 4000), (5, 5000, 9000)]
    assert list(made.remarks()) == [
        "train.py:step of process 5 was defined again, or dropped, 2 times; it was not watched for 7.00 µs: calls in "
        "that time are no steps"
    ]


def test_a_definition_that_was_watched_before_the_other_was_freed() -> None:
    made = Redefined()
    made.watched(5, STEP, 10)
    made.watched(5, MOVED, 20)
    made.freed(5, STEP, 30)
    assert not made.is_missing(5)
    made.freed(5, MOVED, 50)
    made.watched(5, STEP, 40)
    assert not list(made.times(STEP))


def test_processes_that_ended_are_not_told() -> None:
    made = Redefined()
    made.watched(5, STEP, 10)
    made.freed(5, STEP, 1000)
    made.finish(9000, lambda pid: False)
    assert not list(made.remarks())
