from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest
from stallscope.converters.model import ValueType
from stallscope.tracers.measures.commands import COMMANDS
from stallscope.tracers.measures.locks import Gil, Locks
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure, columns_of, find
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import WakeUp

COUNT = ValueType("count", "count")


@dataclasses.dataclass(frozen=True)
class Slow(OffCpu):
    name: ClassVar[str] = "slow"


def test_measures_are_found_by_their_class() -> None:
    measures = OnCpu(49), Slow(5), OffCpu(7)
    assert find(measures, OnCpu) == OnCpu(49)
    assert find(measures, OffCpu) == Slow(5)
    assert find(measures, WakeUp) is None


def test_equal_columns_become_one() -> None:
    names = [column.name for column in columns_of([OffCpu(time="wall"), OnCpu(time="wall"), WakeUp(alone=False)])]
    assert names == ["wall", "count", "min", "max", "samples", "blocked"]
    assert columns_of([Locks(), Gil(), Timeline()]) == ()
    assert columns_of([OffCpu(), WakeUp()]).count(COUNT) == 1


@pytest.mark.parametrize("measure", [each for measures in COMMANDS.values() for each in measures])
def test_a_measure_never_changes(measure: Measure) -> None:
    assert dataclasses.replace(measure) == measure  # type: ignore[type-var]
    with pytest.raises(dataclasses.FrozenInstanceError):
        measure.anything = 1  # type: ignore[attr-defined]
