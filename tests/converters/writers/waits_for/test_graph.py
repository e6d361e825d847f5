"""Files and drawings of a wait-for graph."""

from __future__ import annotations

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile, ThreadTimes, ValueType
from stallscope.converters.model.waits_for import COLUMN
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.waits_for import graph as module
from stallscope.converters.writers.waits_for.graph import Arrow, picture, several_processes
from summary_profiles import EXE, LIBC, MS, SECOND, kernel, user
from wait_graphs import chained, profile_of, with_extremes

SLEEP = (*user(EXE, "main", "tick"), *user(LIBC, "nanosleep"), *kernel("do_nanosleep"))


def with_an_idle_thread() -> Profile:
    """Thread 8 sleeps in steady intervals, threads 7 and 9 wait for each other."""
    profile = with_extremes(
        profile_of(
            chained(7, 7, 300 * MS, ("disk-9", 9, "disk")),
            chained(9, 9, 500 * MS, ("app-7", 7, "app")),
            chained(8, 8, 990 * MS, ("[timer]", 0, ""), own=SLEEP),
            chained(7, 7, 1 * MS, ("[timer]", 0, "")),
        )
    )
    profile.samples[2] = profile.samples[2]._replace(values=(990 * MS, 99, 10 * MS, 10 * MS))
    profile.threads = [
        ThreadTimes(tid, f"p{tid}", tid, f"t{tid}", SECOND, SECOND - blocked * MS, 0, {"interruptible": blocked * MS})
        for tid, blocked in ((7, 301), (8, 990), (9, 500))
    ]
    return profile


def test_a_written_graph_has_everything() -> None:
    made = picture(with_an_idle_thread(), WriteOptions())
    assert made.total == sum(arrow.waited for arrow in made.arrows) == sum(arrow.passed_on for arrow in made.arrows)
    assert made.idle == 990 * MS
    assert {point.id: (point.idle, point.knot) for point in made.points} == {
        "thread 7/7": (False, 1),
        "thread 8/8": (True, 0),
        "thread 9/9": (False, 1),
        "timer [timer]": (False, 0),
    }
    assert made.subtitle() == "1.79 s blocked, of which 990 ms of idle threads; a node per thread"


def test_a_drawing_has_no_idle_threads_and_no_faint_edges() -> None:
    made = picture(with_an_idle_thread(), WriteOptions(), drawn=True)
    assert [arrow[:2] for arrow in made.arrows] == [("thread 9/9", "thread 7/7"), ("thread 7/7", "thread 9/9")]
    assert made.faint == 1 * MS
    assert "edges with 1.00 ms in all are not drawn" in made.subtitle()
    assert {point.id for point in made.points} == {"thread 7/7", "thread 9/9"}


def test_idle_threads_are_drawn_if_wanted() -> None:
    made = picture(with_an_idle_thread(), WriteOptions(idle=True), drawn=True)
    assert made.arrows[0] == Arrow("thread 8/8", "timer [timer]", 990 * MS, 990 * MS)


def test_processes() -> None:
    made = picture(with_an_idle_thread(), WriteOptions(by="process"))
    assert made.by == "process"
    assert [(point.id, point.name, point.idle) for point in made.points] == [
        ("process 7", "p7-7", False),
        ("process 8", "p8-8", True),
        ("process 9", "p9-9", False),
        ("timer [timer]", "[timer]", False),
    ]


def test_the_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NODES", 10)
    monkeypatch.setattr(module, "_EDGES", 20)
    samples = [chained(100 + i, 100 + i, 1000 - i, (f"p-{100 + i * 7 % 50}", 100 + i * 7 % 50, "t")) for i in range(50)]
    made = picture(profile_of(*samples), WriteOptions())
    assert len(made.points) == 11
    assert len(made.arrows) <= 20 + 11
    assert sum(arrow.waited for arrow in made.arrows) == sum(1000 - i for i in range(50))


def test_ids_stay_different() -> None:
    samples = [chained(7, 7, 5, (name, 0, "")) for name in ("[interrupt a\x1b]", "[interrupt a\\x1b]")]
    made = picture(profile_of(*samples), WriteOptions())
    assert len({point.id for point in made.points}) == 3


def test_names() -> None:
    made = picture(profile_of(chained(7, 8, 5, ("disk\n-9", 9, "disk"))), WriteOptions())
    assert {point.name for point in made.points} == {"app-7/t8-8", "disk\\x0a-9"}


def test_without_wakers() -> None:
    profile = Profile([ValueType("off-cpu", "nanoseconds")])
    with pytest.raises(StallscopeError, match="does not tell who ended waits") as error:
        picture(profile, WriteOptions())
    assert "trace-wakeup" in error.value.remedy


def test_nothing_was_waited_for() -> None:
    profile = Profile([ValueType(COLUMN, "nanoseconds")])
    assert picture(profile, WriteOptions()).points == []
    blocked = chained(7, 8, 5, ("disk", 9, "disk"))._replace(stack=user(EXE, "main"))
    with pytest.raises(StallscopeError, match="does not tell who ended waits"):
        picture(profile_of(blocked), WriteOptions())


def test_number_of_processes() -> None:
    assert several_processes(with_an_idle_thread())
    assert not several_processes(profile_of(chained(7, 8, 5, ("app-7", 7, "t"))))
