from __future__ import annotations

from dataclasses import replace

import tcp_profiles
from collective_profiles import of_ranks, rank
from stallscope.converters.facts.wait_functions import COLLECTIVE
from stallscope.converters.model import Profile
from stallscope.converters.phrases.connections import network
from stallscope.converters.rules.verdict import Verdict
from summary_profiles import facts_of


def said(profile: Profile, kind: str) -> str:
    """Words for a verdict on the server's process that tells of no connection."""
    return network(facts_of(profile), Verdict("for_others", kind, 1, 1, frozenset({5})))


def test_a_connection_of_a_rank_that_waits_for_others() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[1].retransmissions = 20
    text = f"; 20 segments of the connection of store (5) to {tcp_profiles.HERE} were sent again meanwhile"
    assert said(profile, COLLECTIVE) == text
    assert said(profile, "peer") == "", "the wait is on something else"
    profile.objects[1] = replace(profile.objects[1], retransmissions=1)
    assert said(profile, COLLECTIVE) == ""


def test_a_slow_link_of_a_rank_that_waits_for_others() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[1].links = [replace(tcp_profiles.FAR, remote=tcp_profiles.HERE)]
    profile.collectives = [of_ranks(rank(-5, last=1))]
    assert said(profile, COLLECTIVE) == (
        f"; a round trip on the connection of rank -5 (pid 5) to {tcp_profiles.HERE} takes 80.0 ms, which explains "
        "88.9 % of the waits on it"
    )
    profile.objects[1].links = [replace(tcp_profiles.FAR, arrivals=50)]
    assert said(profile, COLLECTIVE) == ""
