"""Stacks of those who create threads, from the threads' accounts to their places."""

from __future__ import annotations

import pytest
from captures import END, capture, key, thread
from stallscope.converters.model import Profile
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.creations import creation_rows, distinct
from stallscope.tracers.engines.ebpf.measures.events import _CONTEXTS as OF_EVENTS
from stallscope.tracers.engines.ebpf.measures.offcpu import _CONTEXTS, OffCpuCollector
from stallscope.tracers.kernel.records import RUNNING, ThreadRecord
from stallscope.tracers.measures.commands import COMMANDS
from stallscope.tracers.measures.offcpu import OffCpu

pytestmark = pytest.mark.usefixtures("named_by_a_table")


def made_of(places: dict[int, int], stacks: dict[int, tuple[int, ...]], ends: dict[int, int] | None = None) -> Profile:
    """Profile of threads, by tid, that were created in these stacks."""
    threads = [ThreadRecord(END, b"w", thread(tid, made_in=place), exited=True) for tid, place in places.items()]
    found = capture(threads=threads, stacks=stacks, ends=ends or {})
    found.creations = creation_rows(found.threads, found.lives, {})
    return profile_of(found, "Wall-clock time")


def test_equal_ones_share_a_row() -> None:
    threads = [ThreadRecord(END, b"w", thread(tid, made_in=5 if tid < 12 else 0), exited=True) for tid in range(10, 14)]
    found = capture(threads=threads)
    rows = creation_rows(found.threads, found.lives, {})
    assert list(rows) == [10, 11]
    (row,) = distinct(rows)
    assert (row.origin.ustack, row.origin.tgid, row.origin.life, row.origin.state) == (5, 7, 10, RUNNING)


def test_of_a_sum_the_life_of_its_rows_counts() -> None:
    found = capture(threads=[ThreadRecord(END, b"w", thread(0, key=key(tid=0, life=900), made_in=5), exited=True)])
    (row,) = creation_rows(found.threads, found.lives, {900: 901}).values()
    assert row.origin.life == 901
    assert creation_rows(found.threads, found.lives, {}) == {}, "its stacks are not kept"


def test_places_of_threads() -> None:
    made = made_of({10: 5, 11: 7, 12: 0, 13: 5}, {5: (2, 1), 7: (3, 2, 1)})
    assert [times.made_in for times in made.threads] == [("main", "work"), ("work", "read"), (), ("main", "work")]
    assert not made.samples


def test_a_stack_that_was_cut_short_is_completed_by_a_later_thread() -> None:
    made = made_of({10: 5, 11: 7}, {5: (2,), 7: (2, 1)}, {5: 2})
    assert [times.made_in for times in made.threads] == [("main", "work")] * 2


def test_a_stack_that_was_lost_is_no_place() -> None:
    assert [times.made_in for times in made_of({10: 5}, {}).threads] == [()]


def test_only_scans_take_them() -> None:
    takers = [name for name, measures in COMMANDS.items() for each in measures if getattr(each, "creations", False)]
    assert takers == ["trace-scan"]
    collector = OffCpuCollector(OffCpu(creations=True))
    assert collector.knobs()["creation_stacks"] == 1
    assert {collector.sizes(9)[name] for name in ("stack_scratch", "walk_scratch", "rule_caches")} == {_CONTEXTS}
    other = OffCpuCollector(OffCpu())
    assert "creation_stacks" not in other.knobs()
    assert "walk_scratch" not in other.sizes(9)
    assert OF_EVENTS == _CONTEXTS + 1  # enum context
