"""Two ends of a connection that wait for each other, and those that take turns."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Profile
from stallscope.converters.model.wait_objects import UNIX
from stallscope.converters.summary.summarize import summarize
from tcp_profiles import FAR, SERVER, TIMER, both

HOLDS = "; meanwhile both ends of the connection wait: TCP holds back what was sent"


def test_what_tcp_holds_back() -> None:
    (first, *_) = summarize(both(0.99, 0.98)).answer
    assert first.startswith("99.0 % of the time of the main thread of client is spent waiting for its peer in ")
    assert HOLDS in first
    assert first.endswith("(TCP_NODELAY).")


@pytest.mark.parametrize(
    "profile",
    [
        both(0.7, 0.7),  # they may take turns for most of the time
        both(0.99, 0.98, TIMER),  # the server waits for a time of its own
        both(0.99, 0.98, ("client-1", 1, "client")),  # the client sends late
        both(0.99, 0.98, ("disk-9", 9, "disk")),  # it waits for another program
        both(0.99, 0.98, remote="127.0.0.1:40002"),  # on another connection
        both(0.99, 0.98, kind=UNIX),
        both(0.99, 0.98, known=False),
    ],
)
def test_others_take_turns(profile: Profile) -> None:
    assert HOLDS not in " ".join(summarize(profile).answer)


def test_who_has_ended_the_servers_waits_has_to_be_known() -> None:
    profile = both(0.99, 0.98)
    profile.samples = [
        each._replace(
            labels=tuple(label for label in each.labels if "waker" not in label[0]),
            stack=tuple(frame for frame in each.stack if frame.kind in ("native", "kernel")),
        )
        for each in profile.samples
    ]
    assert HOLDS not in " ".join(summarize(profile).answer)
    assert SERVER[1] == 5


def test_what_takes_its_time_on_the_way_is_not_held_back() -> None:
    profile = both(0.99, 0.98)
    profile.objects[0].links = [FAR]
    (first, *_) = summarize(profile).answer
    assert HOLDS not in first
    assert first.endswith("; a round trip on that connection takes 80.0 ms, which explains 80.8 % of the waits.")


def test_what_is_lost_is_not_held_back() -> None:
    profile = both(0.99, 0.98)
    profile.objects[0].retransmissions = 10
    (first, *_) = summarize(profile).answer
    assert HOLDS not in first
    assert "10 segments of that connection were sent again" in first
