"""Collectives in words, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..base.text import json_text
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..model.collectives import UNKNOWN, Collectives, Messages
from ..model.steps import Spent
from ..phrases.chain_ends import chain
from ..phrases.collectives import crossed, named, stands_still
from ..rules.chain_ends import chain_of
from ..rules.crossed_ranks import circles
from .step_sentences import spent_json


def sentences(found: Sequence[Collectives], facts: Facts | None = None) -> tuple[str, ...]:
    """A sentence for each communicator whose ranks stand still, or for those that wait for each other. ``facts``: what
    is known of those for whom a missing rank waits."""
    told: list[str] = []
    left = list(found)
    for circle in circles(found):
        if all(each in left for each in circle):
            told.append(crossed(circle))
            left = [each for each in left if each not in circle]
    texts = [(stands_still(each), _behind(each, facts)) for each in left]
    return (*told, *(" ".join(filter(None, both)) for both in texts if both[0]))


def _behind(of: Collectives, facts: Facts | None) -> str:
    """Sentence on those for whom the first missing rank waits; "" if it is not known."""
    for rank, each in zip(of.ranks, of.standing, strict=False):
        waits = each.meanwhile.waits if each.meanwhile and not (each.what or each.elsewhere) else ()
        if facts and waits and not each.stopped:
            known = facts.waits_of((rank.pid, rank.tid))
            place = next((place for place in known if place.site.frames == waits[0].site.frames), None)
            return chain(chain_of(facts, (rank.pid, rank.tid), place), named(rank)) if place else ""
    return ""


def collectives_json(of: Collectives) -> dict[str, Any]:
    """Times in ns, null when unknown. Names are hostile."""
    return {
        "library": json_text(of.library),
        "size": _or_null(of.size),
        "known": of.is_known,
        "meetings": of.meetings,
        "spread_ns": of.spread,
        "deviation_ns": of.deviation,
        "lost": of.lost,
        "ranks": [
            {
                "rank": _or_null(each.rank),
                "process": json_text(each.process),
                "pid": kernel_id(each.pid),
                "tid": each.tid,
                "calls": each.calls,
                "last": each.last,
                "late_ns": each.late,
                "waited_ns": each.waited,
                "between": _spent(each.between),
                "before": _spent(each.before),
                "between_late": _spent(each.between_late),
            }
            for each in of.ranks
        ],
        "kinds": [
            {
                "what": json_text(kind.what),
                "bytes": _or_null(kind.bytes),
                **_times(asdict(kind)),
                "took_ns": _or_null(kind.took),
                "bytes_per_s": _or_null(kind.bandwidth),
            }
            for kind in of.kinds
        ],
        "worst": [
            {
                "number": each.number,
                "what": json_text(each.what),
                "bytes": _or_null(each.bytes),
                "arrivals_ns": list(each.arrivals),
            }
            for each in of.worst[: thresholds.MEETINGS_SHOWN]
        ],
        "standing": [
            {
                "pid": kernel_id(each.pid),
                "number": each.number,
                "what": json_text(each.what) or None,
                "bytes": _or_null(each.bytes),
                "since_ns": each.since,
                "ended": each.has_ended,
                "meanwhile": _spent(each.meanwhile),
                "stopped_ns": each.stopped,
                "elsewhere": json_text(each.elsewhere) or None,
            }
            for each in of.standing
        ],
        "unsure": of.unsure,
        **({"messages": _messages(of.messages)} if of.messages else {}),
    }


def _messages(of: Messages) -> dict[str, Any]:
    return {
        "pairs": [
            {
                "sender": each.sender,
                "receiver": each.receiver,
                "messages": each.messages,
                "bytes": _or_null(each.bytes),
                "waits": each.waits,
                "receiver_waited_ns": each.receiver_waited,
                "sender_waited_ns": each.sender_waited,
                "unjoined": each.unjoined,
            }
            for each in of.pairs
        ],
        "between": list(map(_spent, of.between)),
        "any_source": of.any_source,
        "unseen": of.unseen,
    }


def _times(kind: dict[str, Any]) -> dict[str, Any]:
    return {
        "meetings": kind["meetings"],
        "spread_ns": kind["spread"],
        "longest_ns": kind["longest"],
        "total_ns": kind["total"],
        "last": list(kind["last"]),
        "late_ns": list(kind["lateness"]),
        "waited_ns": list(kind["waited"]),
        "caused_ns": list(kind["caused"]),
    }


def _spent(spent: Spent | None) -> dict[str, Any] | None:
    return spent_json(spent) if spent else None


def _or_null(number: int) -> int | None:
    return number if number != UNKNOWN else None
