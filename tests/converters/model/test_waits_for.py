"""Wait-for graphs from the chains of samples."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Labels, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.waits_for import (
    COLUMN,
    DEVICE,
    PROCESS,
    SOFTIRQ,
    THREAD,
    TIMER,
    UNKNOWN,
    Edge,
    Node,
    by_process,
    chain_stack,
    has_wakers,
    waits_for,
)
from wait_graphs import chained, profile_of

MAIN, WORKER, READER = Node(THREAD, 7, 7), Node(THREAD, 7, 8), Node(THREAD, 9, 10)


def test_a_wait_goes_on_to_whom_the_waker_waited_for() -> None:
    graph = waits_for(
        profile_of(
            chained(7, 7, 20, ("app-7", 8, "worker")),
            chained(7, 7, 22, ("app-7", 8, "worker"), ("disk-9", 10, "reader")),
            chained(7, 8, 30, ("disk-9", 10, "reader")),
        )
    )
    assert dict(graph.edges) == {
        (MAIN, WORKER): Edge(42, 20),
        (WORKER, READER): Edge(30, 52),
    }
    assert graph.total == 72 == sum(edge.passed_on for edge in graph.edges.values())
    assert dict(graph.ends) == {(MAIN, WORKER): 20, (MAIN, READER): 22, (WORKER, READER): 30}
    assert graph.names[READER] == ("disk", "reader")
    assert graph.waits() == {MAIN: 42, WORKER: 30}
    assert graph.blocks() == {WORKER: 20, READER: 52}
    assert graph.traced == {MAIN, WORKER}


def test_interrupts_are_nodes_of_their_own_kind() -> None:
    names = {"[timer]": TIMER, "[interrupt nvme0q1]": DEVICE, "[softirq NET_RX]": SOFTIRQ, "[still waiting]": UNKNOWN}
    graph = waits_for(profile_of(*(chained(7, 7, 5, (name, 0, "")) for name in names)))
    assert dict(graph.edges) == {(MAIN, Node(kind, name=name)): Edge(5, 5) for name, kind in names.items()}
    assert graph.blocks() == {Node(kind, name=name): 5 for name, kind in names.items()}


def test_the_last_thread_is_the_end_of_a_chain_also_before_an_interrupt() -> None:
    graph = waits_for(profile_of(chained(7, 7, 5, ("app-7", 8, "worker"), ("[timer]", 0, ""))))
    assert dict(graph.ends) == {(MAIN, WORKER): 5}
    assert dict(graph.edges) == {(MAIN, WORKER): Edge(5, 0), (WORKER, Node(TIMER, name="[timer]")): Edge(0, 5)}


@pytest.mark.parametrize(
    ("name", "process"),
    [("ksoftirqd/0-14", "ksoftirqd/0"), ("a-1 HI-14", "a-1 HI"), ("[timer]-14", "[timer]"), ("a\nb-14", "a\nb")],
)
def test_names_of_processes_that_are_none_of_interrupts(name: str, process: str) -> None:
    graph = waits_for(profile_of(chained(7, 7, 5, (name, 15, "t"))))
    assert graph.names[Node(THREAD, 14, 15)] == (process, "t")


@pytest.mark.parametrize(
    ("softirq", "kind", "name"),
    [
        ("NET_RX", SOFTIRQ, "[softirq NET_RX]"),
        ("TIMER", TIMER, "[timer]"),
        ("HRTIMER", TIMER, "[timer]"),
    ],
)
def test_ksoftirqd_is_what_it_ran(softirq: str, kind: str, name: str) -> None:
    """Nobody waits for the thread itself: it does what others have asked for."""
    graph = waits_for(profile_of(chained(7, 7, 5, (f"ksoftirqd/0-14 {softirq}", 14, "ksoftirqd/0"))))
    assert dict(graph.edges) == {(MAIN, Node(kind, name=name)): Edge(5, 5)}
    assert graph.names[Node(kind, name=name)] == (name, "")


def test_processes() -> None:
    profile = profile_of(
        chained(7, 7, 20, ("app-7", 8, "worker")),
        chained(7, 8, 30, ("disk-9", 10, "reader")),
        chained(9, 10, 5, ("[timer]", 0, "")),
    )
    profile.threads.append(ThreadTimes(7, "app", 7, "main", 100, 50, 0, {"interruptible": 50}))
    graph = by_process(waits_for(profile, {9: "disk server"}))
    app, disk = Node(PROCESS, 7), Node(PROCESS, 9)
    assert dict(graph.edges) == {
        (app, app): Edge(20, 20),
        (app, disk): Edge(30, 30),
        (disk, Node(TIMER, name="[timer]")): Edge(5, 5),
    }
    assert graph.names[app] == ("app", "")
    assert graph.names[disk] == ("disk server", "")
    assert graph.blocks() == {disk: 30, Node(TIMER, name="[timer]"): 5}


def test_samples_without_wakers_do_not_count_and_ended_threads_do() -> None:
    ended: Labels = (("process", "gone"), ("state", "interruptible"), ("thread", "t"), ("waker", "app-7"))
    sample = chained(7, 7, 9, ("app-7", 8, "worker"))._replace(labels=ended)
    profile = profile_of(sample, Sample((Frame("main"),), (1000, 1), sample.labels))
    graph = waits_for(profile)
    assert dict(graph.edges) == {(Node(THREAD, name="gone"), Node(THREAD, 7, name="")): Edge(9, 9)}


def test_whether_there_are_wakers() -> None:
    assert has_wakers(profile_of(chained(7, 7, 9, ("app-7", 8, "w"))))
    assert not has_wakers(profile_of())
    assert not has_wakers(Profile([ValueType("off-cpu", "nanoseconds")], [chained(7, 7, 9, ("app-7", 8, "w"))]))
    with pytest.raises(KeyError):
        waits_for(Profile([ValueType("off-cpu", "nanoseconds")]))
    assert COLUMN == "blocked"


def test_stack_of_the_end_of_a_chain() -> None:
    sample = chained(7, 7, 9, ("app-7", 8, "w"), ("disk-9", 10, "r"), ("[timer]", 0, ""))
    assert [frame.name for frame in chain_stack(sample.stack)] == ["write_disk-9"]
    assert chain_stack(chained(7, 7, 9, ("[timer]", 0, "")).stack) == ()
