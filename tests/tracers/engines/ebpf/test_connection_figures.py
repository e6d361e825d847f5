from __future__ import annotations

from collections.abc import Collection, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.model.wait_objects import EVENTS, FILE, MOST_LINKS, TCP, Link, WaitObject
from stallscope.tracers.base.tcp_figures import TcpFigures
from stallscope.tracers.engines.ebpf import connection_figures
from stallscope.tracers.engines.ebpf.connection_figures import ConnectionFigures

HERE, THERE = "10.0.0.1:40000", "10.0.0.2:80"
OWN, OTHER, NETNS = 7, 8, 5
NOTHING = TcpFigures(1, 1448, 20_000, 0, 0, 0, 20_000, 0, 100, 0, 0, 0)
Pair = tuple[str, str]
MS = 1_000_000


class Kernel:
    """Connections by a process in their namespace, and a clock."""

    def __init__(self) -> None:
        self.ends: dict[tuple[int, Pair], TcpFigures] = {}
        self.looks = 0
        self.now = 100.0

    def figures(self, pid: int, ends: Collection[Pair]) -> dict[Pair, TcpFigures]:
        self.looks += 1
        return {each: self.ends[pid, each] for each in ends if (pid, each) in self.ends}

    def other_end(self, netns: int, local: str, remote: str) -> int:
        return OTHER if (OTHER, (remote, local)) in self.ends else 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    made = Kernel()
    monkeypatch.setattr(connection_figures, "figures_of", made.figures)
    yield made


def figures(kernel: Kernel) -> ConnectionFigures:
    namespaces: Any = SimpleNamespace(other_end=kernel.other_end)
    return ConnectionFigures(namespaces, lambda: kernel.now)


ONE = WaitObject(1, TCP, local=HERE, remote=THERE)


def test_what_happened_in_an_interval(kernel: Kernel) -> None:
    kernel.ends[OWN, (HERE, THERE)] = NOTHING._replace(acked=500, segments_received=30, busy=100)
    made = figures(kernel)
    made.watch(ONE, NETNS, OWN, ())
    kernel.ends[OWN, (HERE, THERE)] = NOTHING._replace(
        acked=700, segments_received=40, busy=1100, window_limited=60, buffer_limited=200, round_trip=30_000
    )
    made.cut()
    link = Link(THERE, 20 * MS, 30 * MS, 10, 800_000, 60_000, 200, 100, 1448, has_more=False)
    assert made.told(ONE, NETNS, ()).links == [link]
    assert made.told(ONE, NETNS + 1, ()) is ONE, "the same addresses in another namespace are another connection"
    made.cut()
    (later,) = made.told(ONE, NETNS, ()).links
    assert (later.arrivals, later.sent, later.busy) == (0, 0, 0)


def test_the_end_that_sends_more_and_the_least_of_both(kernel: Kernel) -> None:
    kernel.ends[OWN, (HERE, THERE)] = NOTHING
    kernel.ends[OTHER, (THERE, HERE)] = NOTHING
    made = figures(kernel)
    made.watch(ONE, NETNS, OWN, ())
    kernel.ends[OWN, (HERE, THERE)] = NOTHING._replace(acked=10, segments_received=9)
    kernel.ends[OTHER, (THERE, HERE)] = NOTHING._replace(
        acked=9000, unsent=5, rate=77, round_trip=9000, least_round_trip=300, segments_received=1
    )
    made.cut()
    (link,) = made.told(ONE, NETNS, ()).links
    assert (link.round_trip, link.smoothed, link.arrivals) == (300_000, 9 * MS, 9)
    assert (link.sent, link.rate, link.has_more) == (9000, 77, True)
    kernel.ends[OTHER, (THERE, HERE)] = NOTHING._replace(acked=9100)
    made.cut()
    (link,) = made.told(ONE, NETNS, ()).links
    assert link.has_more, "at the interval's begin"


def test_a_connection_that_has_ended_since(kernel: Kernel) -> None:
    kernel.ends[OWN, (HERE, THERE)] = NOTHING
    made = figures(kernel)
    made.watch(ONE, NETNS, OWN, ())
    kernel.ends[OWN, (HERE, THERE)] = NOTHING._replace(segments_received=4)
    kernel.now += 0.2
    made.poll()
    kernel.now += 0.1
    made.poll()
    del kernel.ends[OWN, (HERE, THERE)]
    made.cut()
    (link,) = made.told(ONE, NETNS, ()).links
    assert link.arrivals == 4


def test_it_is_looked_at_more_and_more_rarely(kernel: Kernel) -> None:
    kernel.ends[OWN, (HERE, THERE)] = NOTHING
    made = figures(kernel)
    made.poll()
    assert kernel.looks == 0
    made.watch(ONE, NETNS, OWN, ())
    before = kernel.looks
    for _ in range(600):
        kernel.now += 0.1
        made.poll()
    assert kernel.looks - before == 11


def test_of_several_those_on_which_most_happens(kernel: Kernel) -> None:
    pairs = [(HERE, f"10.0.0.{number}:80") for number in range(3, 23)]
    for pair in pairs:
        kernel.ends[OWN, pair] = NOTHING
    made, events = figures(kernel), WaitObject(1, EVENTS)
    made.watch(events, NETNS, OWN, pairs)
    for number, pair in enumerate(pairs):
        kernel.ends[OWN, pair] = NOTHING._replace(segments_received=number, acked=1000 - number)
    made.cut()
    links = made.told(events, NETNS, pairs).links
    assert len(links) == MOST_LINKS
    assert {each.remote for each in links} == {remote for _, remote in (*pairs[:4], *pairs[-4:])}


@pytest.mark.parametrize(
    "what",
    [
        WaitObject(1, FILE, "/x"),
        WaitObject(1, TCP, local=HERE),  # it listens
        WaitObject(1, TCP, local="127.0.0.1:80", remote="127.0.0.1:9"),
        WaitObject(1, TCP, local="10.0.0.1:80", remote="10.0.0.1:9"),
        WaitObject(1, EVENTS),
        ONE,  # closed before it was looked at
    ],
)
def test_nothing_is_known(what: WaitObject, kernel: Kernel) -> None:
    made = figures(kernel)
    made.watch(what, NETNS, OWN, ())
    made.cut()
    assert made.told(what, NETNS, ()) is what


def test_only_so_many_are_watched(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_figures, "_MOST", 1)
    other = (HERE, "10.0.0.3:80")
    kernel.ends[OWN, (HERE, THERE)] = kernel.ends[OWN, other] = NOTHING
    made = figures(kernel)
    made.watch(ONE, NETNS, OWN, ())
    made.watch(WaitObject(1, EVENTS), NETNS, OWN, [other])
    made.cut()
    assert made.told(ONE, NETNS, ()).links
    assert not made.told(WaitObject(1, EVENTS), NETNS, [other]).links
