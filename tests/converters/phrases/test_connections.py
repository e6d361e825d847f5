from __future__ import annotations

from dataclasses import replace

import tcp_profiles
from collective_profiles import of_ranks, rank
from job_profiles import job
from stallscope.converters.facts.wait_functions import COLLECTIVE
from stallscope.converters.model import Profile
from stallscope.converters.model.wait_objects import LABEL, TCP, WaitObject
from stallscope.converters.phrases.connections import network
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.summarize import summarize
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


def test_nobody_stands_out_as_the_network_explains_the_waits() -> None:
    profile = job(*[0.2] * 8)
    (told, *_) = summarize(profile).answer
    assert "no traced rank stands out as late" in told
    place = max(range(len(profile.samples)), key=lambda i: profile.samples[i].values[0])
    waits = profile.samples[place]
    profile.samples[place] = waits._replace(labels=(*waits.labels, (LABEL, 30)))
    slow = replace(tcp_profiles.NARROW, busy=waits.values[0], sent=2 * waits.values[0] // 1000)
    profile.objects = [WaitObject(30, TCP, local=tcp_profiles.HERE, remote=tcp_profiles.THERE, links=[slow])]
    (told, *_) = summarize(profile).answer
    assert "no traced rank stands out as late" not in told
    assert told.endswith(" moves 1.91 MiB/s, which explains 100.0 % of the waits on it.")
