"""A rank comes late to the messages between it and others, which wait for it, and it hardly waits for them.

Who waits for a message passes that on: the ranks behind it in a pipeline wait for it. So a rank is told for which
others wait for longer than it waits itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..model.collectives import CollectiveRank, Collectives, MessagePair, Messages
from .late_rank import Excess, excess_of
from .verdict import LATE_MESSAGES, Verdict

RULE = "late-messages"


class LateMessages(NamedTuple):
    """The detail of such a verdict."""

    collectives: Collectives
    late: CollectiveRank
    """The rank for which others wait."""
    receivers: tuple[MessagePair, ...]
    """Pairs in which others wait for its messages, those of most time first."""
    senders: tuple[MessagePair, ...]
    """Pairs in which others wait until it takes theirs."""
    excess: Excess | None = None
    """Cause: what it does between its messages for longer than the others, all together; None: that is not known."""


def find(facts: Facts) -> list[Verdict]:
    """A verdict for each communicator in which ranks wait for the messages of one for much of the time, those of most
    time first."""
    found = [_verdict(facts, each, each.messages) for each in facts.collectives if each.messages]
    return sorted((each for each in found if each), key=lambda each: -each.time)


def _verdict(facts: Facts, of: Collectives, messages: Messages) -> Verdict | None:
    ranks = {place for each in messages.pairs for place in (each.sender, each.receiver)}
    waited = sum(each.receiver_waited + each.sender_waited for each in messages.pairs)
    if waited < thresholds.SIGNIFICANT * len(ranks) * facts.duration:
        return None
    beyond = _beyond(messages, len(of.ranks))
    place = max(range(len(beyond)), key=lambda each: beyond[each])
    if beyond[place] < thresholds.SIGNIFICANT * facts.duration:
        return None
    if beyond[place] < thresholds.CAUSES_MOST * sum(each for each in beyond if each > 0):
        return None
    receivers = [each for each in messages.pairs if each.sender == place and each.receiver_waited]
    senders = [each for each in messages.pairs if each.receiver == place and each.sender_waited]
    if sum(each.messages for each in (*receivers, *senders)) < thresholds.MEETINGS:
        return None
    receivers.sort(key=lambda each: (-each.receiver_waited, each.receiver))
    senders.sort(key=lambda each: (-each.sender_waited, each.sender))
    excess = _excess(facts, of, messages, place)
    if excess and excess.more < thresholds.LATE_ITSELF * beyond[place]:
        return None  # it comes late, and nothing that it does says why
    detail = LateMessages(of, of.ranks[place], tuple(receivers), tuple(senders), excess)
    return Verdict(RULE, LATE_MESSAGES, waited, 1, frozenset(each.pid for each in of.ranks), detail=detail)


def _beyond(messages: Messages, ranks: int) -> list[int]:
    """ns for which others wait for each rank beyond what it waits for them itself."""
    found = [0] * ranks
    for each in messages.pairs:
        found[each.sender] += each.receiver_waited - each.sender_waited
        found[each.receiver] += each.sender_waited - each.receiver_waited
    return found


def _excess(facts: Facts, of: Collectives, messages: Messages, place: int) -> Excess | None:
    """Compares whole times: ranks do not have equally many messages."""
    times = [replace(each, count=1) if each and each.count else None for each in messages.between]
    others = [each for number, each in enumerate(times) if each and number != place]
    return excess_of(facts, of.ranks[place], times[place], others)
