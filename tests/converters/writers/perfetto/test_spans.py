from __future__ import annotations

import io
from typing import Any

from perfetto_rules import read
from scheduling_traces import rows
from stallscope.converters.model.scheduling import BLOCKED, NO_STACK, OPEN, THREAD, Scheduling
from stallscope.converters.writers.perfetto import wire
from stallscope.converters.writers.perfetto.context import CORES, Context, packet
from stallscope.converters.writers.perfetto.spans import slices


def waits(**columns: Any) -> list[tuple[int, int, int | None]]:
    """(thread, begin, end) of the slices."""
    threads = rows(THREAD, tid=[7, 8], tgid=[7, 7])
    spans = rows(BLOCKED, **{"stack": [NO_STACK] * len(columns["begin"]), **columns})
    made = Scheduling(1_000, threads=threads, blocked=spans, names=["one"])
    file = io.BytesIO(packet(CORES, wire.text(6, b"")))
    file.seek(0, io.SEEK_END)
    file.writelines(slices(Context(made, 0)))
    trace = read(file.getvalue())
    return [(trace.tracks[each.track].thread.tid, each.begin, each.end) for each in trace.slices]


def test_a_slice_ends_where_the_thread_is_woken() -> None:
    assert waits(begin=[10, 50], woken=[20, 0], end=[30, 60], tid=[7, 7]) == [(7, 10, 20), (7, 50, 60)]


def test_waits_that_began_before_or_go_on() -> None:
    assert waits(begin=[-5, 100], end=[200, OPEN], tid=[7, 8]) == [(7, 0, 200), (8, 100, None)]


def test_slices_of_a_thread_do_not_overlap() -> None:
    """The end of the first wait is lost, or wrong."""
    found = waits(begin=[10, 20, 50], end=[OPEN, 70, 60], tid=[7, 7, 7])
    assert found == [(7, 10, 20), (7, 20, 50), (7, 50, 60)]


def test_one_wait_after_the_other_and_one_without_length() -> None:
    found = waits(begin=[10, 20, 20, 40], end=[20, 20, 40, 45], tid=[7, 7, 7, 8])
    assert sorted(found) == [(7, 10, 20), (7, 20, 20), (7, 20, 40), (8, 40, 45)]


def test_waits_of_threads_that_nobody_knows_have_no_track() -> None:
    assert waits(begin=[10, 20], end=[20, 30], tid=[99, 7]) == [(7, 20, 30)]


def test_no_waits() -> None:
    assert list(slices(Context(Scheduling(5), 0))) == []
