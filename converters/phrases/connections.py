"""Words for what the network does to the waits of those of whom a sentence tells. Names are unescaped (hostile)."""

from __future__ import annotations

from ..facts.facts import Facts
from ..facts.ranks import numbers, who
from ..facts.troubled_connections import troubled
from ..facts.wait_functions import COLLECTIVE
from ..rules.verdict import Verdict
from .wait_objects import of_network


def network(facts: Facts, verdict: Verdict) -> str:
    """``; 41 segments of that connection were sent again meanwhile``, or what is told of a slow link: on what those
    of whom a verdict tells wait, or those who hold them up. Of ranks that wait for each other, any of their threads may
    have the connection. "" if that tells nothing of their waits."""
    told = (of_network(each.on) for each in (verdict.finding, verdict.cause) if each)
    if text := next(filter(None, told), ""):
        return text
    found = troubled(facts, verdict.pids) if verdict.kind == COLLECTIVE else None
    if found is None:
        return ""
    ranks = numbers(facts.ranks, facts.collectives)
    return of_network(found.on, who(facts.name_of_pid(found.pid), found.pid, ranks))
