"""Collectors of measures."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from stallscope.tracers import measures as specifications
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.ebpf.measures.registry import COLLECTORS, collectors, with_gil
from stallscope.tracers.measures.calls import Calls, KernelCalls
from stallscope.tracers.measures.commands import COMMANDS, CUDA
from stallscope.tracers.measures.events import Events
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.locks import Gil
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import WakeUp
from stallscope.tracers.probe_targets.events import Chosen
from stallscope.tracers.probe_targets.events import Events as Wanted


def names() -> set[str]:
    """Names of the classes of all measures."""
    found = set()
    for path in Path(specifications.__path__[0]).glob("*.py"):
        classes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))
        found |= {each.name for each in classes if any("dataclass" in ast.unparse(how) for how in each.decorator_list)}
    return found


def test_every_measure_has_a_collector() -> None:
    assert {"OffCpu", "AskedEvents"} <= names()
    assert set(COLLECTORS) == names()


@pytest.mark.parametrize(
    "measure",
    [
        *(each for measures in COMMANDS.values() for each in measures),
        Gil(),
        KernelCalls(["vfs_read"]),
        Events(Wanted(), Chosen()),
        Timeline(),
    ],
)
def test_a_collector_has_the_name_and_the_columns_of_its_measure(measure: Measure) -> None:
    (made,) = collectors([measure])
    assert (made.name, made.columns) == (measure.name, measure.columns)
    assert type(made).__name__ == f"{type(measure).__name__}Collector"


def test_calls_know_the_ioctls_in_them() -> None:
    ioctls, calls = collectors(CUDA)
    assert calls._ioctls is ioctls  # type: ignore[attr-defined]
    _, alone = collectors([Ioctl(), Calls()])
    assert alone._ioctls is None  # type: ignore[attr-defined]


def test_a_measure_without_a_collector_is_refused() -> None:
    class Unknown(Measure):
        name = "unknown"

    assert Ebpf().refusals([OffCpu(), Unknown()]) == {"unknown": "the engine libbpf does not measure unknown"}


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        ((OffCpu(),), ["offcpu", "gil"]),
        ((OnCpu(99), WakeUp()), ["oncpu", "wakeup", "gil"]),
        ((OnCpu(99), Ioctl()), ["oncpu", "ioctl"]),
    ],
)
def test_the_interpreter_lock_comes_with_waits(measures: tuple[Measure, ...], expected: list[str]) -> None:
    assert [measure.name for measure in with_gil(measures)] == expected
