"""The figures of a critical path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from file_lock_profiles import FLOCK, SEEN
from stallscope.converters.model import Frame, Profile
from stallscope.converters.model.critical import NOT_TRACED, CriticalPath, Segment
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.scheduling import NO_STACK, THREAD, Scheduling
from stallscope.converters.model.waits_for import THREAD as WAKER
from stallscope.converters.model.waits_for import Node, WaitGraph
from stallscope.converters.summary.critical import Contribution, critical_of, critical_sentence, untraced_on, with_alike


def made() -> Profile:
    threads = np.array([(5, 5, 0, 0, 0), (6, 5, 0, 1, 0)], THREAD)
    scheduling = Scheduling(100, threads=threads, names=["train", "loader"], stacks=[(Frame("nap"),)])
    parts = (
        Segment(0, 20, 0, 5, "running", NO_STACK),
        Segment(20, 50, 1, 6, "running", NO_STACK, (0,)),
        Segment(50, 60, 1, 6, "interruptible", 0, (0,)),
        Segment(60, 100, 1, 6, "running", NO_STACK, (0,)),
    )
    return Profile([], scheduling=scheduling, critical=CriticalPath(0, parts))


def test_parts_add_up_to_the_wall_time() -> None:
    critical = critical_of(made())
    assert critical is not None
    assert (critical.thread, critical.wall, critical.segments) == ("train-5", 100, 4)
    assert [(part.thread, part.state, part.time, part.segments) for part in critical.parts] == [
        ("train (loader)-6", "running", 70, 2),
        ("train-5", "running", 20, 1),
        ("train (loader)-6", "interruptible", 10, 1),
    ]
    told = critical.to_json()
    assert sum(part["time_ns"] for part in told["parts"]) == told["wall_ns"] == 100
    assert told["parts"][0]["share"] == 0.7


def test_sentence_tells_of_the_thread_with_the_largest_part() -> None:
    critical = critical_of(made())
    assert critical is not None
    assert critical_sentence(critical) == (
        "80.0 % of the 100 ns of train-5 goes to train (loader)-6: 70 ns running, 10 ns blocked in nap."
    )
    waits = Contribution("train-5", 5, "runnable-woken", ("f",), 90, 1)
    own = replace(critical, parts=(waits, replace(waits, state="running", time=7), replace(waits, state="x", time=3)))
    assert (
        critical_sentence(own) == "100.0 % of the 100 ns of train-5 is its own: 90 ns waiting for a core, 7 ns running."
    )
    untraced = replace(critical, parts=(Contribution("thread-9", 9, NOT_TRACED, (), 100, 1),))
    assert critical_sentence(untraced) == "100.0 % of the 100 ns of train-5 goes to thread-9: 100 ns not traced."
    assert critical_sentence(replace(critical, parts=(), wall=0)) == ""


def compiling() -> Profile:
    """make (5) waits for three compilers, and for a thread that nobody knows."""
    rows = [(5, 5, 0, 0, 0), (11, 11, 0, 1, 1), (12, 12, 0, 1, 1), (13, 13, 0, 1, 1)]
    scheduling = Scheduling(100, threads=np.array(rows, THREAD), names=["make", "cc1plus"], stacks=[(Frame("read"),)])
    parts = (
        Segment(0, 30, 0, 5, "running", NO_STACK),
        Segment(30, 50, 1, 11, "running", NO_STACK, (0,)),
        Segment(50, 70, 2, 12, "running", NO_STACK, (0,)),
        Segment(70, 75, 2, 12, "interruptible", 0, (0,)),
        Segment(75, 90, 3, 13, "running", NO_STACK, (0,)),
        Segment(90, 100, -1, 99, NOT_TRACED, NO_STACK, (0,)),
    )
    return Profile([], scheduling=scheduling, critical=CriticalPath(0, parts))


def test_processes_alike_are_one_cause() -> None:
    critical = critical_of(compiling())
    assert critical is not None
    assert critical_sentence(critical) == (
        "60.0 % of the 100 ns of make-5 goes to 3 × cc1plus: 55 ns running, 5 ns blocked in read."
    )
    assert [(part.thread, part.tid, part.time, part.segments) for part in with_alike(critical)] == [
        ("3 × cc1plus", 0, 55, 3),
        ("make-5", 5, 30, 1),
        ("thread-99", 99, 10, 1),
        ("3 × cc1plus", 0, 5, 1),
    ]
    assert [part["tid"] for part in critical.to_json()["parts"]] == [5, 11, 12, 13, 99, 12]


def joining(begin: int) -> Profile:
    """The thread's last wait begins at ``begin`` and has not ended."""
    given = made()
    assert given.scheduling is not None
    scheduling = replace(given.scheduling, stacks=[(Frame("futex_wait", kind="kernel"), Frame("join"))])
    first = Segment(0, begin, 1, 6, "running", NO_STACK, (0,))
    last = Segment(begin, 100, 0, 5, "interruptible", 0)
    parts = (first, last) if begin else (last,)
    return replace(given, scheduling=scheduling, critical=CriticalPath(0, parts))


def test_a_wait_that_had_not_ended_is_not_the_threads_own() -> None:
    critical = critical_of(joining(0))
    assert critical is not None
    assert critical_sentence(critical) == (
        "100.0 % of the 100 ns of train-5 is its last wait, in join → futex_wait, which had not ended: nobody knows "
        "yet who ends it, so that the path does not go on; trace for longer (-d), or take the path of another thread."
    )
    critical = critical_of(joining(70))
    assert critical is not None
    assert critical_sentence(critical) == ("70.0 % of the 100 ns of train-5 goes to train (loader)-6: 70 ns running.")


def test_profile_without_a_path() -> None:
    assert critical_of(Profile([])) is None


def test_who_was_not_traced_may_have_a_name_all_the_same() -> None:
    graph = WaitGraph()
    graph.names = {
        Node(WAKER, 98, 99): ("python import.py", "python"),
        Node(WAKER, 98, 97): ("python import.py", "w"),
        Node("timer", name="[timer]"): ("[timer]", ""),
    }
    profile = compiling()
    critical = critical_of(profile, graph)
    assert critical and [each.thread for each in critical.parts if each.tid == 99] == ["python import.py-99"]
    assert untraced_on(critical, graph) == ()
    assert profile.critical
    for tid, name in ((99, "python import.py-99"), (97, "python import.py (w)-97"), (96, "thread-96")):
        path = replace(profile.critical, segments=(Segment(0, 60, -1, tid, NOT_TRACED, NO_STACK, (0,)),))
        critical = critical_of(replace(profile, critical=path), graph)
        assert critical and critical.parts[0].thread == name
        assert untraced_on(critical, graph) == ((98,) if tid > 96 else ())


def test_a_main_thread_that_was_not_traced_has_the_name_of_its_process() -> None:
    profile = made()
    assert profile.critical
    (*_, last) = profile.critical.segments
    others = tuple(replace(last, thread=-1, tid=tid, state=NOT_TRACED) for tid in (9, 10))
    profile.critical = CriticalPath(0, (*profile.critical.segments, *others))
    profile.neighbours.append(Neighbour("python3 import.py", 9, 0))
    critical = critical_of(profile)
    assert critical
    names = {part.thread for part in critical.parts if part.state == NOT_TRACED}
    assert names == {"python3 import.py-9", "thread-10"}


def test_the_last_wait_is_for_the_lock_of_a_file() -> None:
    threads = np.array([(1, 1, 0, 0, 0)], THREAD)
    scheduling = Scheduling(100, threads=threads, names=["p1"], stacks=[FLOCK])
    path = CriticalPath(0, (Segment(0, 100, 0, 1, "interruptible", 0),))
    profile = Profile([], scheduling=scheduling, critical=path)
    critical = critical_of(profile)
    assert critical and critical.holder is None
    assert "nobody knows yet who ends it" in critical_sentence(critical)
    profile.file_locks = [SEEN]
    critical = critical_of(profile)
    assert critical
    assert critical_sentence(critical) == (
        "100.0 % of the 100 ns of p1-1 is its last wait, in main → build → flock → locks_lock_inode_wait, which had "
        "not ended: gzip (pid 9, not traced) has the lock of /srv/db.lock all the time."
    )
