from __future__ import annotations

from typing import Any

import pytest
from scheduling_traces import rows, run
from stallscope.converters.model.cores import LOST, OTHERS, tenants
from stallscope.converters.model.scheduling import CREATION, LOSS, SWITCH, THREAD, Scheduling
from stallscope.converters.model.states import UNKNOWN_BIT

KNOWN = rows(THREAD, tid=[1, 2, 3], tgid=[1, 1, 1])


def chain(*switches: tuple[int, ...], begin: int = 0, **about: Any) -> list[tuple[int, ...]]:
    """Tenants of a core, as tuples, after these switches (cpu, time, prev, state, next)."""
    columns = ("cpu", "time", "prev_tid", "prev_state", "next_tid")
    made = rows(SWITCH, **dict(zip(columns, zip(*switches, strict=True), strict=True)))
    found = tenants(Scheduling(1_000, begin=begin, switches=made, **{"threads": KNOWN} | about))
    return [tuple(int(each[name]) for name in columns) for each in found]


def losses(*places: tuple[int, int]) -> Any:
    return rows(LOSS, cpu=[cpu for cpu, _ in places], time=[time for _, time in places], count=[1] * len(places))


def test_no_switch_no_core() -> None:
    assert len(tenants(Scheduling(5))) == 0


def test_each_core_begins_with_who_had_it() -> None:
    assert chain((0, 10, 1, 1, 0), (1, 20, 2, 2, 3), (0, 30, 0, 0, 4), begin=5) == [
        (0, 5, 1, 0, 1),
        (0, 10, 1, 1, 0),
        (0, 30, 0, 0, 4),
        (1, 5, 2, 0, 2),
        (1, 20, 2, 2, 3),
    ]


def test_every_switch_is_there_and_follows_the_one_before() -> None:
    scheduling = run(2_000, seed=2).scheduling()
    found = tenants(scheduling)
    assert len(found) == len(scheduling.switches) + 4
    for before, after in zip(found[:-1], found[1:], strict=True):
        if before["cpu"] == after["cpu"]:
            assert before["next_tid"] == after["prev_tid"]
            assert before["time"] <= after["time"]


def test_a_traced_thread_leaves_at_once_where_it_is_not_known_how_long_it_stayed() -> None:
    assert chain((0, 10, 1, 1, 2), (0, 30, 3, 2, 1)) == [
        (0, 0, 1, 0, 1),
        (0, 10, 1, 1, 2),
        (0, 10, 2, UNKNOWN_BIT, OTHERS),
        (0, 30, OTHERS, 0, 3),
        (0, 30, 3, 2, 1),
    ]


def test_lost_events_break_the_chain_even_where_it_seems_whole() -> None:
    assert chain((0, 10, 1, 1, 2), (0, 30, 2, 2, 1), losses=losses((0, 30), (1, 30))) == [
        (0, 0, 1, 0, 1),
        (0, 10, 1, 1, 2),
        (0, 10, 2, UNKNOWN_BIT, LOST),
        (0, 30, LOST, 0, 2),
        (0, 30, 2, 2, 1),
    ]


def test_a_command_has_its_core_from_its_exec_on() -> None:
    """The command is taken in while it runs: before that it was no thread of the trace."""
    threads = rows(THREAD, tid=[1, 2], tgid=[1, 2], begin=[0, 25])
    assert chain((0, 30, 2, 1, 0), begin=5, threads=threads, every_switch=False) == [
        (0, 5, OTHERS, 0, OTHERS),
        (0, 25, OTHERS, 0, 2),
        (0, 30, 2, 1, OTHERS),
    ]
    # The core was seen before: the same, after what was seen.
    assert chain((0, 10, 1, 1, 7), (0, 30, 2, 1, 0), threads=threads, every_switch=False) == [
        (0, 0, 1, 0, 1),
        (0, 10, 1, 1, OTHERS),
        (0, 25, OTHERS, 0, 2),
        (0, 30, 2, 1, OTHERS),
    ]


def test_a_created_thread_had_no_core_from_its_creation_on() -> None:
    threads = rows(THREAD, tid=[1, 2], tgid=[1, 1], begin=[0, 25])
    created = rows(CREATION, tid=[2], tgid=[1], time=[25], parent=[1])
    assert chain((0, 10, 1, 1, 7), (0, 30, 2, 1, 0), threads=threads, created=created, every_switch=False) == [
        (0, 0, 1, 0, 1),
        (0, 10, 1, 1, OTHERS),
        (0, 30, OTHERS, 0, 2),
        (0, 30, 2, 1, OTHERS),
    ]


def test_idle_is_not_left_at_once() -> None:
    assert chain((0, 10, 1, 1, 0), (0, 30, 0, 0, 1), losses=losses((0, 20))) == [
        (0, 0, 1, 0, 1),
        (0, 10, 1, 1, LOST),
        (0, 30, LOST, 0, 1),
    ]


def test_losses_before_the_first_and_after_the_last_switch() -> None:
    assert chain((0, 10, 1, 1, 2), losses=losses((0, 5), (0, 900))) == [
        (0, 0, LOST, 0, LOST),
        (0, 10, LOST, 0, 1),
        (0, 10, 1, 1, 2),
        (0, 10, 2, UNKNOWN_BIT, LOST),
    ]
    assert chain((0, 10, 1, 1, 0), losses=losses((0, 900)))[-1] == (0, 10, 1, 1, LOST)


@pytest.mark.parametrize("between", [(98, 98), (98, 99), (0, 0), (0, 98)])
def test_who_is_not_traced_is_nobody_in_particular(between: tuple[int, int]) -> None:
    """A core between two traced threads, in a recording of some threads, may have been shared by others."""
    left, right = between
    assert chain((0, 10, 1, 1, left), (0, 30, right, 0, 1), (0, 40, 1, 1, 98), every_switch=False) == [
        (0, 0, 1, 0, 1),
        (0, 10, 1, 1, OTHERS),
        (0, 30, OTHERS, 0, 1),
        (0, 40, 1, 1, OTHERS),
    ]


def test_a_core_that_begins_with_somebody_else() -> None:
    assert chain((0, 10, 98, 1, 1), every_switch=False) == [(0, 0, OTHERS, 0, OTHERS), (0, 10, OTHERS, 1, 1)]
    assert chain((0, 10, 98, 1, 1)) == [(0, 0, 98, 0, 98), (0, 10, 98, 1, 1)]
