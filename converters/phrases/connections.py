"""Words for what TCP has sent again on the connections of those who wait. Names are unescaped (hostile)."""

from __future__ import annotations

from ..facts.facts import Facts
from ..facts.lossy_connections import lossy
from ..facts.ranks import who
from ..facts.wait_functions import COLLECTIVE
from ..rules.verdict import Verdict
from .wait_objects import resent


def sent_again(facts: Facts, verdict: Verdict) -> str:
    """``; 41 segments of that connection were sent again meanwhile``: on what those wait of whom a verdict tells, or
    those who hold them up. Of ranks that wait for each other, any of their threads may have the connection. "" if that
    tells nothing of their waits."""
    told = (resent(each.on) for each in (verdict.finding, verdict.cause) if each)
    if text := next(filter(None, told), ""):
        return text
    found = lossy(facts, verdict.pids) if verdict.kind == COLLECTIVE else None
    return resent(found.on, who(facts.name_of_pid(found.pid), found.pid, facts.ranks)) if found else ""
