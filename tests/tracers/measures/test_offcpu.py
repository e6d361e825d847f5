from __future__ import annotations

from stallscope.tracers.measures.offcpu import OffCpu


def test_columns() -> None:
    assert [column.name for column in OffCpu().columns] == ["off-cpu", "count", "min", "max"]
    assert [column.aggregate for column in OffCpu(time="wall").columns] == ["sum", "sum", "min", "max"]
    assert OffCpu(time="wall").columns[0].name == "wall"
