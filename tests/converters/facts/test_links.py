from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.facts.links import explains, together
from stallscope.converters.model.wait_objects import Link
from summary_profiles import MS, SECOND
from tcp_profiles import FAR, NARROW

TIME, COUNT = 9 * SECOND, 100
Told = tuple[int, int, int] | None


def told(*links: Link, time: int = TIME, count: int = COUNT, longest: int = 90 * MS) -> Told:
    found = explains(links, time, count, longest)
    return (found.by_round_trips, found.by_rate, found.rate) if found else None


def test_round_trips_of_requests() -> None:
    assert told(FAR) == (8 * SECOND, 0, 0)
    assert told(FAR, count=150) == (8 * SECOND, 0, 0), "no more than what came"
    assert told(FAR, count=60) == (4800 * MS, 0, 0)
    assert told(replace(FAR, round_trip=SECOND)) == (9 * SECOND, 0, 0), "no more than the wait"


@pytest.mark.parametrize(
    ("link", "count", "longest"),
    [
        (replace(FAR, round_trip=40 * MS), 100, 90 * MS),  # whoever answers takes as long
        (replace(FAR, arrivals=50), 100, 90 * MS),
        (FAR, 50, 90 * MS),
        (FAR, 100, 5 * SECOND),  # one answer took most of the time
        (replace(FAR, round_trip=0), 100, 90 * MS),  # not known
    ],
)
def test_round_trips_that_explain_less(link: Link, count: int, longest: int) -> None:
    assert told(link, count=count, longest=longest) is None


def test_the_rate_at_which_a_link_takes_what_is_sent() -> None:
    assert told(NARROW) == (0, 9 * SECOND, 2_000_000)
    assert told(replace(NARROW, rate=18_000_000)) is None, "it has moved that at once: the rest is somebody else's time"
    assert told(replace(NARROW, rate=3_600_000)) == (0, 9 * SECOND, 2_000_000)
    more = replace(NARROW, rate=9_000_000, sent=45_000_000, busy=5 * SECOND, smoothed=MS, has_more=True)
    assert told(more) == (0, 5 * SECOND, 9_000_000)


@pytest.mark.parametrize(
    "link",
    [
        replace(NARROW, busy=4 * SECOND),
        replace(NARROW, window_full=SECOND),  # a slow reader
        replace(NARROW, smoothed=MS),  # nothing is in a queue
        replace(NARROW, sent=1_800_000),  # messages of one segment
        replace(NARROW, rate=0),
        replace(NARROW, busy=0),
    ],
)
def test_what_a_link_does_not_hold_up(link: Link) -> None:
    assert told(link) is None


def test_a_far_link_that_is_slow() -> None:
    both = replace(NARROW, round_trip=10 * MS, smoothed=20 * MS)
    assert told(both, count=4000, longest=MS) == (9 * SECOND, 9 * SECOND, 2_000_000)


def test_the_one_that_explains_most() -> None:
    near = replace(FAR, remote="10.0.0.9:1", round_trip=50 * MS)
    found = explains([near, FAR], TIME, COUNT, 90 * MS)
    assert found and (found.link, found.time) == (FAR, 8 * SECOND)
    assert told() is None
    assert told(FAR, time=0) is None


def test_connections_to_one_address() -> None:
    (one,) = together([FAR, replace(FAR, round_trip=70 * MS, sent=2000, has_more=True)])
    assert one == replace(FAR, round_trip=70 * MS, arrivals=200, busy=18 * SECOND, sent=3000, has_more=True)
    assert together([]) == []
