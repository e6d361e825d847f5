from __future__ import annotations

from dataclasses import replace

import tcp_profiles
from stallscope.converters.facts.troubled_connections import troubled
from stallscope.converters.model import Profile
from summary_profiles import MS, facts_of


def found(profile: Profile, *pids: int) -> tuple[int, str, int] | None:
    one = troubled(facts_of(profile), pids)
    return (one.pid, one.on.what.remote, one.on.what.retransmissions) if one else None


def test_the_connection_with_most_segments_that_were_sent_again() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[0].retransmissions, profile.objects[1].retransmissions = 30, 20
    assert found(profile, 1, 5) == (1, tcp_profiles.THERE, 30)
    assert found(profile, 5) == (5, tcp_profiles.HERE, 20)
    assert found(profile, 7) is None


def test_a_link_that_explains_the_waits() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[1].links = [tcp_profiles.NARROW]
    assert found(profile, 1, 5) == (5, tcp_profiles.HERE, 0)
    profile.objects[0].links = [replace(tcp_profiles.FAR, round_trip=40 * MS)]
    assert found(profile, 1) is None
    profile.objects[0].retransmissions = 5
    assert found(profile, 1, 5) == (1, tcp_profiles.THERE, 5), "what was sent again comes first"


def test_one_wait_of_several_threads_may_have_most_of_the_time() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[0].links = [tcp_profiles.FAR]
    assert found(profile, 1)
    profile.samples[0] = profile.samples[0]._replace(values=(*profile.samples[0].values[:-1], 5_000 * MS))
    assert found(profile, 1) is None


def test_what_any_network_loses() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[0].retransmissions = 4  # they explain 0.8 s of 9 s
    assert found(profile, 1, 5) is None
    profile.objects[0].retransmissions = 5
    assert found(profile, 1, 5) == (1, tcp_profiles.THERE, 5)
