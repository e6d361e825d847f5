"""Rows of several measures together, and what a measure does that says nothing."""

from __future__ import annotations

from stallscope.converters.model import ValueType
from stallscope.tracers.engines.ebpf.measures.protocol import Collector, Ended, rows_of
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.kernel.records import Origin
from stallscope.tracers.measures.protocol import columns_of

ENDED = Ended(0, 10, ())
HERE = Origin(1, 2, 0, 8, 7, 0, 0)
TIME, COUNT, LEAST = (
    ValueType("wall", "nanoseconds"),
    ValueType("count", "count"),
    ValueType("min", "nanoseconds", "min"),
)


class Counting(Collector):
    """Gives one row."""

    name = "counting"
    programs = ()

    def __init__(self, columns: tuple[ValueType, ...], *values: int) -> None:
        self.columns = columns
        self._values = values

    def rows(self, ended: Ended) -> list[Row]:
        return [Row(HERE, "running", self._values)]


def test_columns_that_are_equal_are_one() -> None:
    one, other = Counting((TIME, LEAST), 5, 2), Counting((TIME, COUNT), 7, 3)
    assert columns_of([one, other]) == (TIME, LEAST, COUNT)
    assert [row.values for row in rows_of([one, other], ENDED)] == [(5, 2, 0), (7, 0, 3)]
    assert [row.values for row in rows_of(iter([other]), ENDED)] == [(7, 3)]


def test_a_minimum_is_not_a_sum() -> None:
    assert columns_of([Counting((LEAST,), 1), Counting((ValueType("min", "nanoseconds"),), 1)]) == (
        LEAST,
        ValueType("min", "nanoseconds"),
    )


def test_what_is_left_out_does_nothing() -> None:
    measure = Counting((TIME,), 1)
    assert measure.placed == ()
    assert (measure.knobs(), measure.sizes(1), measure.losses(), list(measure.remarks())) == ({}, {}, {}, [])
    assert measure.attach(None, "_raw") == []  # type: ignore[arg-type]
    assert not measure.on_record(b"")
    assert measure.lost_so_far({}) == 0
    measure.mapped(1, Mapping(0, 1))
    measure.read(None)  # type: ignore[arg-type]
