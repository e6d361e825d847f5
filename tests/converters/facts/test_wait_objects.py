from __future__ import annotations

import json
from dataclasses import replace

import pytest
from stallscope.converters.facts.wait_kinds import HELD
from stallscope.converters.facts.wait_objects import On, on_json, on_of
from stallscope.converters.model.wait_objects import (
    EVENTS,
    FILE,
    LABEL,
    PIPE,
    READS,
    TCP,
    UNIX,
    ObjectEnd,
    WaitObject,
)
from summary_profiles import MS, READ, SECOND, Tracee, empty, facts_of
from tcp_profiles import FAR


def tcp(number: int, remote: str, pid: int = 0) -> WaitObject:
    return WaitObject(number, TCP, remote=remote, ends=[ObjectEnd("server", pid)] if pid else [])


def told(*objects: WaitObject, times: dict[int, int], whole: int = 100) -> tuple[int, int, str] | None:
    found = on_of(times, whole, {each.id: each for each in objects})
    return (found.what.id, found.number, found.folder) if found else None


FILES = [WaitObject(1, FILE, "/data/a"), WaitObject(2, FILE, "/data/b"), WaitObject(3, FILE, "/other/c")]


@pytest.mark.parametrize(
    ("objects", "times", "expected"),
    [
        (FILES, {1: 80, 2: 20}, (1, 1, "")),
        (FILES, {1: 60, 2: 40}, (1, 2, "/data")),
        (FILES, {1: 30, 2: 30, 3: 40}, None),
        (FILES, {1: 40}, None),  # of most of the wait it is not known what it is on
        (FILES, {1: 40, 9: 60}, None),  # nor of an object that is not described
        ([WaitObject(1, FILE), WaitObject(2, FILE)], {1: 50, 2: 50}, None),
        ([WaitObject(1, FILE, "/f"), WaitObject(2, FILE, "/f")], {1: 50, 2: 50}, (2, 2, "")),
        ([tcp(1, "10.0.0.5:1"), tcp(2, "10.0.0.5:1")], {1: 40, 2: 60}, (2, 2, "")),
        ([tcp(1, "10.0.0.5:1"), tcp(2, "10.0.0.5:2")], {1: 40, 2: 60}, None),
        ([tcp(1, "127.0.0.1:1", 5), tcp(2, "127.0.0.1:1", 6)], {1: 40, 2: 60}, (2, 2, "")),
        ([WaitObject(1, UNIX), WaitObject(2, UNIX)], {1: 50, 2: 50}, None),
        ([WaitObject(1, UNIX, "/s"), WaitObject(2, UNIX, "/s")], {1: 50, 2: 50}, (2, 2, "")),
        ([WaitObject(1, PIPE, does=READS), WaitObject(2, PIPE, does=READS)], {1: 50, 2: 50}, None),
        ([WaitObject(1, EVENTS), WaitObject(2, EVENTS)], {1: 50, 2: 50}, None),
        ([], {}, None),
    ],
)
def test_one_or_several_that_are_alike(
    objects: list[WaitObject], times: dict[int, int], expected: tuple[int, int, str] | None
) -> None:
    assert told(*objects, times=times) == expected


def test_pipes_of_one_process() -> None:
    ends = [ObjectEnd("logger", 9)]
    pipes = [WaitObject(1, PIPE, does=READS, ends=ends), WaitObject(2, PIPE, does=READS, ends=ends)]
    assert told(*pipes, times={1: 50, 2: 50}) == (2, 2, "")


def test_time_of_a_place_by_object() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(100 * MS).wait(READ, "interruptible", 7 * SECOND).wait(
        READ, "interruptible", 1 * SECOND
    ).wait(READ, "interruptible", 1 * SECOND)
    first, second, third = profile.samples
    profile.samples = [
        first._replace(labels=tuple(sorted((*first.labels, (LABEL, 5))))),
        second._replace(labels=tuple(sorted((*second.labels, (LABEL, 6))))),
        third,
    ]
    profile.objects = [tcp(5, "10.0.0.5:1"), tcp(6, "10.0.0.5:1")]
    facts = facts_of(profile)
    (total,) = facts.waits_of((1, 1)).values()
    assert total.objects == {5: 7 * SECOND, 6: SECOND}
    found = facts.on(total, HELD, (1,))
    assert found is not None
    assert (found.what.id, found.number, found.time) == (5, 2, 8 * SECOND)


def test_as_data() -> None:
    what = WaitObject(1, FILE, "/a\udc80", "ext4", "8:1", 12)
    found = on_of({1: 90}, 100, {1: what})
    assert json.loads(json.dumps(on_json(found))) == {
        "kind": "file", "name": "/a\\x80", "filesystem": "ext4", "device": "8:1", "inode": 12, "number": 1,
        "time_ns": 90, "ends": [], "more_ends": 0,
    }  # fmt: skip
    assert on_json(None) is None


def test_what_was_sent_again_on_several_connections() -> None:
    several = [tcp(number, "10.0.0.5:1", 9) for number in (1, 2)]
    several[0].retransmissions, several[0].unanswered = 3, 7
    several[1].retransmissions, several[1].unanswered = 4, 5
    found = on_of({1: 60, 2: 40}, 100, {each.id: each for each in several})
    assert found is not None
    assert (found.number, found.what.retransmissions, found.what.unanswered) == (2, 7, 7)
    told = on_json(found)
    assert told is not None
    assert (told["retransmissions"], told["unanswered_ns"]) == (7, 7)
    assert several[0].retransmissions == 3, "objects are not changed"


def test_a_link_that_explains_the_wait() -> None:
    found = On(WaitObject(1, TCP, links=[FAR]), time=9 * SECOND, count=100, longest=90 * MS)
    told = on_json(found)
    assert told is not None
    assert told["link"] == {
        "remote": FAR.remote, "round_trip_ns": 80 * MS, "arrivals": 100, "rate": 0, "by_round_trips_ns": 8 * SECOND,
        "by_rate_ns": 0,
    }  # fmt: skip
    assert found.tells_network
    short = On(found.what, time=9 * SECOND, count=10, longest=90 * MS)
    assert "link" not in (on_json(short) or {})
    assert not short.tells_network


def test_links_of_several_connections() -> None:
    several = [replace(tcp(number, "10.0.0.5:1", 9), links=[FAR]) for number in (1, 2)]
    found = on_of({1: 60, 2: 40}, 100, {each.id: each for each in several})
    assert found is not None
    assert [each.arrivals for each in found.what.links] == [200]


def test_where_most_was_sent_again() -> None:
    told = on_json(On(WaitObject(1, EVENTS, retransmissions=7, resent_with="10.0.0.5:1")))
    assert told is not None
    assert told["resent_with"] == "10.0.0.5:1"
