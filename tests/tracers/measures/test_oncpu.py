from __future__ import annotations

from stallscope.tracers.measures.oncpu import OnCpu


def test_the_clock_gives_time() -> None:
    assert OnCpu().by_clock
    assert [(column.name, column.unit) for column in OnCpu(time="wall").columns] == [
        ("wall", "nanoseconds"),
        ("samples", "count"),
    ]


def test_other_events_are_counted() -> None:
    measure = OnCpu(event="cycles")
    assert not measure.by_clock
    assert [(column.name, column.unit) for column in measure.columns] == [("cycles", "count"), ("samples", "count")]
