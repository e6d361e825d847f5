from __future__ import annotations

import pytest
from stallscope.converters.facts.facts import Facts
from stallscope.converters.facts.wait_kinds import EVENTS as FOR_EVENTS
from stallscope.converters.facts.wait_kinds import PEER
from stallscope.converters.model import Frame, Profile, ValueType
from stallscope.converters.model.wait_objects import EVENTS, LABEL, TCP, UNIX, ObjectPeer, WaitObject
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from summary_profiles import EPOLL, EXE, SECOND, Tracee, empty, facts_of, user

LOOP = (*user(EXE, "main", "loop"), *EPOLL)
REDIS = ObjectPeer("redis-server", 77, TCP, "127.0.0.1:6379", 4, serves=True)


def profile_of(ended_by: dict[str, int], peers: list[ObjectPeer]) -> Profile:
    """An event loop, and ns of its waits by who ended them."""
    profile = empty()
    profile.value_types = [*profile.value_types, ValueType("blocked", "nanoseconds")]
    Tracee(profile, 1, "app", 1, "app").wait(LOOP, "interruptible", sum(ended_by.values()), 100)
    (first,) = profile.samples
    labels = tuple(sorted((*first.labels, (LABEL, 5))))
    profile.samples = [first._replace(values=(*first.values, 0), labels=labels)]
    for waker, time in ended_by.items():
        stack = (*LOOP, SEPARATOR, Frame("send", WAKER), Frame(waker, WAKER))
        named = tuple(sorted((*labels, ("waker", waker))))
        profile.samples.append(first._replace(stack=stack, values=(0, 0, 0, 0, time), labels=named))
    profile.objects = [WaitObject(5, EVENTS, peers=peers)]
    return profile


def of(facts: Facts) -> tuple[str, str, list[int]]:
    """Kind of the wait, the address that it is on, and the processes there."""
    ((place, total),) = facts.waits_of((1, 1)).items()
    on = facts.on(total, place.kind, (1,))
    assert on is not None
    return place.kind, on.what.remote or on.what.name, [end.pid for end in on.what.ends]


def test_who_answers_is_waited_for() -> None:
    facts = facts_of(profile_of({"redis-server-77": 9 * SECOND, "[timer]": SECOND}, [REDIS]))
    assert of(facts) == (PEER, "127.0.0.1:6379", [77])
    ((place, total),) = facts.waits_of((1, 1)).items()
    assert place.wait.asks
    on = facts.on(total, place.kind, (1,))
    assert on is not None
    assert (on.number, on.woken, on.time) == (1, 9 * SECOND, 10 * SECOND)
    assert on.what.peers == [REDIS]


@pytest.mark.parametrize(
    ("ended_by", "peers"),
    [
        ({"redis-server-77": 7 * SECOND, "other-78": 3 * SECOND}, [REDIS]),  # for one of several
        ({"redis-server-78": 10 * SECOND}, [REDIS]),  # who ends it has no connection
        ({"[timer]": 10 * SECOND}, [REDIS]),
        ({"[still waiting]": 10 * SECOND}, [REDIS]),
        ({"redis-server-77": 10 * SECOND}, []),
        ({"redis-server-" + "7" * 5000: 10 * SECOND}, [REDIS]),
        ({"redis-server-\u0667\u0667": 10 * SECOND}, [REDIS]),
    ],
)
def test_nobody_alone_is(ended_by: dict[str, int], peers: list[ObjectPeer]) -> None:
    assert of(facts_of(profile_of(ended_by, peers))) == (FOR_EVENTS, "", [])


def test_a_client_is_told_but_was_not_asked() -> None:
    """A server waits for requests of its clients: that is work, and nobody keeps it waiting."""
    client = ObjectPeer("wrk", 77, UNIX, "/run/x.sock", 1)
    assert of(facts_of(profile_of({"wrk-77": 10 * SECOND}, [client]))) == (FOR_EVENTS, "/run/x.sock", [77])
