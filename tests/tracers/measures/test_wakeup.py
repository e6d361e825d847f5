from __future__ import annotations

from stallscope.tracers.measures.wakeup import WakeUp


def test_beside_another_measure_it_has_only_its_time() -> None:
    assert [column.name for column in WakeUp().columns] == ["blocked", "count", "min", "max"]
    assert [column.name for column in WakeUp(alone=False).columns] == ["blocked"]
