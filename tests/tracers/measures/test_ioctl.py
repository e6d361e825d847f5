from __future__ import annotations

from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl


def test_beside_calls_it_has_their_columns() -> None:
    assert [column.name for column in Ioctl().columns] == ["ioctl", "calls"]
    assert Ioctl(alone=False).columns == Calls().columns
