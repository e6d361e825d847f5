from __future__ import annotations

from stallscope.converters.model import Profile
from stallscope.converters.scan.compare.graph import PROCESS, graph_of
from stallscope.converters.transforms.diff import is_differential
from stallscope.converters.writers.base.options import WriteOptions
from summary_profiles import SECOND, SLEEP, Tracee, empty
from wait_graphs import chained, profile_of


def slept(seconds: int, pid: int, length: int = 10) -> Profile:
    profile = empty(length)
    Tracee(profile, pid, "app", pid, "app").wait(SLEEP, "interruptible", seconds * SECOND)
    profile.value_types[0] = profile.value_types[0]._replace(name="wall")
    return profile


def times(before: list[Profile], after: list[Profile]) -> list[tuple[int, ...]]:
    graph = graph_of(before, after)
    assert graph
    assert is_differential(graph)
    return [sample.values for sample in graph.samples]


def test_time_per_second_of_both_sides() -> None:
    """Runs of other lengths, and other pids, are the same stack."""
    assert times([slept(4, 7)], [slept(4, 9, length=5)]) == [(800_000_000, 400_000_000)]
    assert times([slept(4, 7), slept(8, 8)], [slept(4, 9)]) == [(400_000_000, 600_000_000)]


def test_processes_are_told_apart_by_name() -> None:
    graph = graph_of([slept(4, 7)], [slept(4, 9)])
    assert graph
    assert {sample.label(PROCESS) for sample in graph.samples} == {"app"}
    assert not {key for sample in graph.samples for key, _ in sample.labels} - {PROCESS}
    assert WriteOptions(roots=(PROCESS,))


def test_without_stacks_there_is_none() -> None:
    assert graph_of([empty()], [slept(4, 7)]) is None


def test_wakers_are_no_part_of_the_stacks() -> None:
    waits = profile_of(chained(7, 7, SECOND, ("[timer]", 0, "")))
    waits.value_types[0] = waits.value_types[0]._replace(name="wall")
    graph = graph_of([waits], [waits])
    assert graph
    assert "[timer]" not in {frame.name for sample in graph.samples for frame in sample.stack}
