"""Threads that only wait for work, by who ends their waits."""

from __future__ import annotations

import pytest
from idle_hosts import CLIENT, LOOP, MAIN, NETWORK, NOBODY, POOL, SLEEP, TIMER, Host, kinds
from stallscope.converters.facts.idle_evidence import (
    PARKED,
    PERIODIC,
    REQUESTS,
    for_work,
    idle_by_evidence,
    idle_nodes,
    with_evidence,
)
from stallscope.converters.facts.thread_roles import ThreadRoles
from stallscope.converters.facts.wait_sums import Sum, add_up_waits, merged_threads
from stallscope.converters.model.waits_for import THREAD, Node, waits_for
from summary_profiles import MS, place_of
from wait_graphs import Link


def test_a_steady_timer_that_is_late_once() -> None:
    host = Host().wait(7, 7, SLEEP, 980, TIMER, each=49, longest=150)
    host.profile.samples[0] = host.profile.samples[0]._replace(values=(980 * MS, 20, 40 * MS, 150 * MS))
    assert kinds(host.made()) == {7: PERIODIC}


def test_a_steady_timer() -> None:
    assert kinds(Host().wait(7, 7, SLEEP, 980, TIMER, each=98).made()) == {7: PERIODIC}


@pytest.mark.parametrize(
    ("each", "longest"),
    [(98, 300), (490, 490)],
)
def test_waits_of_no_steady_interval(each: int, longest: int) -> None:
    assert kinds(Host().wait(7, 7, SLEEP, 980, TIMER, each=each, longest=longest).made()) == {}


def test_a_thread_that_works_is_not_idle() -> None:
    assert kinds(Host().wait(7, 7, SLEEP, 900, TIMER, each=90).made()) == {}


def test_a_timer_that_others_wait_for_is_not_idle() -> None:
    host = Host().wait(7, 8, SLEEP, 980, TIMER, each=98)
    host.wait(7, 7, POOL, 100, ("app-7", 8, "maker"), TIMER)
    assert kinds(host.made()) == {}


def test_a_wait_of_an_idle_thread_is_no_need() -> None:
    host = Host().wait(7, 8, SLEEP, 980, TIMER, each=98)
    for tid in (9, 10):
        host.wait(7, tid, POOL, 990, ("app-7", 8, "maker"), TIMER, each=99)
    host.wait(7, 7, POOL, 10, MAIN)
    assert kinds(host.made()) == {8: PERIODIC, 9: PARKED, 10: PARKED}


def test_a_needed_thread_needs_those_that_it_waits_for() -> None:
    """A loop that waits for a timer of another process is idle, and so is that one, until somebody needs the loop."""
    host = Host().wait(7, 7, LOOP, 980, ("ticker-8", 8, "ticker"), TIMER, each=98)
    host.wait(8, 8, SLEEP, 980, TIMER, each=98)
    assert kinds(host.made()) == {7: REQUESTS, 8: PERIODIC}
    assert kinds(host.wait(20, 20, POOL, 300, MAIN).made()) == {}


@pytest.mark.parametrize("waker", [NETWORK, CLIENT])
def test_an_event_loop_of_a_server(waker: Link) -> None:
    assert kinds(Host().wait(7, 7, LOOP, 970, waker).made()) == {7: REQUESTS}


def test_an_event_loop_that_waits_for_its_own_threads() -> None:
    assert kinds(Host().wait(7, 7, LOOP, 970, ("app-7", 8, "worker")).made()) == {}


def test_workers_of_a_pool() -> None:
    host = Host().wait(7, 7, POOL, 100, NETWORK)
    for tid in (8, 9):
        host.wait(7, tid, POOL, 970, MAIN).wait(7, tid, POOL, 20, NOBODY)
    assert kinds(host.made()) == {8: PARKED, 9: PARKED}


def test_a_single_worker_is_no_pool() -> None:
    assert kinds(Host().wait(7, 7, POOL, 100, NETWORK).wait(7, 8, POOL, 970, MAIN).made()) == {}


def test_workers_of_a_process_that_stands_still() -> None:
    """Nobody knows whether they wait for work, or the process for them."""
    host = Host()
    for tid in (8, 9):
        host.wait(7, tid, POOL, 1000, NOBODY)
    assert kinds(host.made()) == {}


def test_in_the_graph_and_among_the_idle() -> None:
    profile = Host().wait(7, 7, SLEEP, 980, TIMER, each=98).wait(8, 8, POOL, 500, MAIN).made()
    profile.samples[1] = profile.samples[1]._replace(values=(10 * MS, 1, MS, MS))
    graph = waits_for(profile)
    assert idle_nodes(profile, graph) == {Node(THREAD, 7, 7)}
    threads = merged_threads(profile.threads)
    found = idle_by_evidence(add_up_waits(profile, threads), threads, graph)
    roles = with_evidence(ThreadRoles(frozenset(), frozenset(), {}, frozenset()), found)
    assert roles.idle == {(7, 7)}
    assert roles.quiet == {(7, 7): frozenset((found[7, 7].place,))}


def test_threads_of_a_runtime_that_wait_for_its_work() -> None:
    """Threads of a runtime count even if they work in between."""
    work = place_of(("runtime.stopm", "runtime.futex"), "futex_wait")
    lock = place_of(("lock", "pthread_cond_wait"), "futex_wait")
    sums = {(1, 2): {work: Sum(60), lock: Sum(40)}, (1, 3): {work: Sum(50), lock: Sum(50)}, (1, 4): {}}
    assert for_work(sums) == {(1, 2)}
