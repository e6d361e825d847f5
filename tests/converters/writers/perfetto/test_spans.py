from __future__ import annotations

import io
from typing import Any

from perfetto_rules import read
from scheduling_traces import rows
from stallscope.converters.model import Frame
from stallscope.converters.model.scheduling import BLOCKED, CALL, NO_STACK, OPEN, THREAD, CallName, Scheduling
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


def test_calls_are_around_the_waits_in_them() -> None:
    """A function that makes an ioctl, which waits twice; the second wait, the ioctl and the function do not end."""
    threads = rows(THREAD, tid=[7], tgid=[7])
    blocked = rows(BLOCKED, begin=[20, 80], end=[30, OPEN], tid=[7, 7], stack=[NO_STACK] * 2)
    calls = rows(CALL, begin=[10, 15, 15, 70, 75], end=[50, 40, 16, OPEN, OPEN], tid=[7] * 5, name=[0, 1, 2, 0, 1],
                 level=[0, 8, 9, 0, 8])  # fmt: skip
    names = [CallName("cudaMalloc"), CallName("TUNSETQUEUE \x1b[2J", "ioctl"), CallName("f")]
    made = Scheduling(1_000, threads=threads, blocked=blocked, names=["one"], calls=calls, call_names=names)
    file = io.BytesIO(packet(CORES, wire.text(6, b"")))
    file.seek(0, io.SEEK_END)
    file.writelines(slices(Context(made, 0)))
    found = [(each.name, each.begin, each.end) for each in read(file.getvalue()).slices]
    ioctl = "TUNSETQUEUE \\x1b[2J"
    assert found == [
        ("cudaMalloc", 10, 50),
        (ioctl, 15, 40),
        ("f", 15, 16),
        ("runnable-preempted", 20, 30),
        ("cudaMalloc", 70, None),
        (ioctl, 75, None),
        ("runnable-preempted", 80, None),
    ]


def test_at_one_time_outer_calls_begin_first() -> None:
    threads = rows(THREAD, tid=[7], tgid=[7])
    calls = rows(CALL, begin=[10, 10, 10], end=[50, 50, 50], tid=[7] * 3, name=[2, 0, 1], level=[8, 0, 1])
    names = [CallName("a"), CallName("b"), CallName("c", "ioctl")]
    made = Scheduling(1_000, threads=threads, names=["one"], calls=calls, call_names=names)
    file = io.BytesIO(packet(CORES, wire.text(6, b"")))
    file.seek(0, io.SEEK_END)
    file.writelines(slices(Context(made, 0)))
    assert [each.name for each in read(file.getvalue()).slices] == ["a", "b", "c"]


def test_python_functions_are_around_calls_and_waits() -> None:
    """Two functions, with a wait between the calls of the outer one; the last call goes on."""
    main, f = Frame("main", "python", file="t.py", line=1), Frame("f\x1b[2J", "python", file="t.py", line=2)
    blocked = rows(BLOCKED, begin=[15, 50], end=[18, 60], tid=[7, 7], stack=[NO_STACK] * 2)
    calls = rows(CALL, begin=[10, 12, 30, 70], end=[20, 20, 40, OPEN], tid=[7] * 4, level=[0, 8, 0, 0],
                 stack=[0, NO_STACK, 0, 1], name=[0, 1, 0, 0])  # fmt: skip
    made = Scheduling(
        1_000,
        threads=rows(THREAD, tid=[7], tgid=[7]),
        blocked=blocked,
        names=["one"],
        calls=calls,
        call_names=[CallName("c"), CallName("i", "ioctl")],
        stacks=[(main, f), (main,)],
    )
    file = io.BytesIO(packet(CORES, wire.text(6, b"")))
    file.seek(0, io.SEEK_END)
    file.writelines(slices(Context(made, 0)))
    found = [(each.name, each.begin, each.end) for each in read(file.getvalue()).slices]
    assert found == [
        ("main", 10, None),
        ("f\\x1b[2J", 10, 40),
        ("c", 10, 20),
        ("i", 12, 20),
        ("runnable-preempted", 15, 18),
        ("c", 30, 40),
        ("runnable-preempted", 50, 60),
        ("c", 70, None),
    ]
