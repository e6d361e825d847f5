from __future__ import annotations

import tcp_profiles
from stallscope.converters.facts.troubled_connections import troubled
from stallscope.converters.model import Profile
from summary_profiles import facts_of


def found(profile: Profile, *pids: int) -> tuple[int, str, int] | None:
    one = troubled(facts_of(profile), pids)
    return (one.pid, one.on.what.remote, one.on.what.retransmissions) if one else None


def test_the_connection_with_most_segments_that_were_sent_again() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[0].retransmissions, profile.objects[1].retransmissions = 30, 20
    assert found(profile, 1, 5) == (1, tcp_profiles.THERE, 30)
    assert found(profile, 5) == (5, tcp_profiles.HERE, 20)
    assert found(profile, 7) is None


def test_what_any_network_loses() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[0].retransmissions = 4  # they explain 0.8 s of 9 s
    assert found(profile, 1, 5) is None
    profile.objects[0].retransmissions = 5
    assert found(profile, 1, 5) == (1, tcp_profiles.THERE, 5)
