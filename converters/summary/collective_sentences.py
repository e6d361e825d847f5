"""Collectives in words, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from ..base.text import json_text
from ..facts import thresholds
from ..facts.identity import kernel_id
from ..model.collectives import UNKNOWN, Collectives, Messages
from ..model.steps import Spent
from ..phrases.collectives import crossed, stands_still
from .step_sentences import spent_json


def sentences(found: Sequence[Collectives]) -> tuple[str, ...]:
    """A sentence for each communicator whose ranks stand still, or for two that wait for each other."""
    told: list[str] = []
    left = list(found)
    for one, other in combinations(found, 2):
        if one in left and other in left and (text := crossed(one, other)):
            told.append(text)
            left = [each for each in left if each not in (one, other)]
    return (*told, *filter(None, map(stands_still, left)))


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
