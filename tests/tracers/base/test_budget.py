from __future__ import annotations

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.budget import Limit, Readings, Seconds, reading


def test_a_limit() -> None:
    limit = Limit(10)
    assert limit.take(7)
    assert not limit.take(4)
    assert limit.left == 3
    limit.give_back(7)
    assert limit.take(10)


def test_time_is_given_back_slowly() -> None:
    clocks = {"now": 100.0, "cpu": 0.0}
    seconds = Seconds(10, 0.5, (lambda: clocks["now"], lambda: clocks["cpu"]))
    assert not seconds.is_over
    with seconds.spent():
        clocks["cpu"] += 11
    assert seconds.is_over
    clocks["now"] += 4
    assert not seconds.is_over


def test_time_counts_also_when_it_fails() -> None:
    clocks = {"cpu": 0.0}
    seconds = Seconds(1, 0, (lambda: 0.0, lambda: clocks["cpu"]))

    def fail() -> None:
        with seconds.spent():
            clocks["cpu"] += 2
            raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        fail()
    assert seconds.is_over


def test_what_is_left_out_is_named() -> None:
    readings = Readings()
    for i in range(5):
        readings.leave_out(f"/lib/lib{i}\x1b.so", "over 4 symbols")
    readings.leave_out("/x", "their names are too long")
    assert list(readings.remarks()) == [
        "symbols of lib0\\x1b.so, lib1\\x1b.so, lib2\\x1b.so and 2 other files are left out: over 4 symbols",
        "symbols of x are left out: their names are too long",
    ]
    assert readings.number == 6


def test_memory_that_is_used_up_names_the_file() -> None:
    def read() -> None:
        with reading("/lib/\x1bx"):
            raise MemoryError

    with pytest.raises(StallscopeError, match=r"used up while /lib/.x1bx is read"):
        read()
