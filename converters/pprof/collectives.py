"""Collectives in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..model.collectives import (
    UNKNOWN,
    CollectiveKind,
    CollectiveRank,
    Collectives,
    Meeting,
    MessagePair,
    Messages,
    Standing,
)
from .steps import decoded_spent

_MOST = 1 << 63
_MOST_ENTRIES = 1 << 16
_SIGNED = frozenset(("late", "lateness"))
_MAY_BE_UNKNOWN = frozenset(("rank", "size", "bytes", "since", "took"))
_PLAIN = ("library", "size", "meetings", "spread", "deviation", "lost", "unsure")
_BY_RANK = ("last", "lateness", "waited")
_LATER = {
    CollectiveKind: (*_BY_RANK, "took", "caused", "alike"),
    CollectiveRank: ("before",),
    Standing: ("has_ended", "meanwhile", "stopped", "elsewhere"),
    Collectives: ("messages", "unsure"),
}
"""Fields that captures of an earlier version lack."""
_TEXTS = frozenset(("process", "what", "library", "elsewhere"))


def decoded(entry: Any) -> Collectives:
    """The inverse of `asdict`. ValueError for anything else."""
    parts = _fields(Collectives, entry)
    if not isinstance(parts["is_known"], bool):
        raise ValueError("collectives")
    ranks = tuple(_rank(each) for each in _entries(parts["ranks"]))
    worst = tuple(_meeting(each) for each in _entries(parts["worst"]))
    standing = tuple(_standing(each) for each in _entries(parts["standing"]))
    if len(ranks) < 2 or any(len(each.arrivals) != len(ranks) for each in worst):
        raise ValueError("ranks of collectives")
    if standing and [each.pid for each in standing] != [each.pid for each in ranks]:
        raise ValueError("ranks of collectives")
    messages = None if parts.get("messages") is None else _messages(parts["messages"], len(ranks))
    parts.setdefault("unsure", 0)
    plain = {name: _plain(name, parts[name]) for name in _PLAIN}
    kinds = tuple(_kind(each, len(ranks)) for each in _entries(parts["kinds"]))
    return Collectives(
        **plain,
        is_known=parts["is_known"],
        ranks=ranks,
        kinds=kinds,
        worst=worst,
        standing=standing,
        messages=messages,
    )


def _messages(entry: Any, ranks: int) -> Messages:
    parts = _fields(Messages, entry)
    pairs = tuple(_pair(each, ranks) for each in _entries(parts.pop("pairs")))
    between = tuple(None if each is None else decoded_spent(each) for each in _entries(parts.pop("between")))
    if len(between) != ranks:
        raise ValueError("ranks of collectives")
    return Messages(pairs, between, **{name: _plain(name, value) for name, value in parts.items()})


def _pair(entry: Any, ranks: int) -> MessagePair:
    found = MessagePair(**{name: _plain(name, value) for name, value in _fields(MessagePair, entry).items()})
    if max(found.sender, found.receiver) >= ranks:
        raise ValueError("ranks of collectives")
    return found


def _rank(entry: Any) -> CollectiveRank:
    parts = _fields(CollectiveRank, entry)
    spent: dict[str, Any] = {
        name: None if parts.get(name) is None else decoded_spent(parts[name])
        for name in ("between", "between_late", "before")
    }
    return CollectiveRank(**{name: _plain(name, value) for name, value in parts.items() if name not in spent}, **spent)


def _standing(entry: Any) -> Standing:
    parts = _fields(Standing, entry)
    ended, spent = parts.pop("has_ended", False), parts.pop("meanwhile", None)
    if not isinstance(ended, bool):
        raise ValueError("collectives")
    plain = {name: _plain(name, value) for name, value in parts.items()}
    return Standing(**plain, has_ended=ended, meanwhile=None if spent is None else decoded_spent(spent))


def _meeting(entry: Any) -> Meeting:
    parts = _fields(Meeting, entry)
    arrivals = tuple(_plain("arrivals", each) for each in _entries(parts.pop("arrivals")))
    return Meeting(**{name: _plain(name, value) for name, value in parts.items()}, arrivals=arrivals)


def _kind(entry: Any, ranks: int) -> CollectiveKind:
    parts = _fields(CollectiveKind, entry)
    by_rank = {name: _entries(parts.pop(name, ())) for name in _BY_RANK}
    if {*map(len, by_rank.values())} not in ({0}, {ranks}):
        raise ValueError("ranks of collectives")
    by_rank["caused"] = _entries(parts.pop("caused", ()))
    if len(by_rank["caused"]) not in (0, ranks):
        raise ValueError("ranks of collectives")
    numbers: dict[str, Any] = {name: tuple(_plain(name, each) for each in of) for name, of in by_rank.items()}
    return CollectiveKind(**{name: _plain(name, value) for name, value in parts.items()}, **numbers)


def _fields(kind: type[Any], entry: Any) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    if not isinstance(entry, dict) or not names.difference(_LATER.get(kind, ())) <= entry.keys() <= names:
        raise ValueError("collectives")
    return dict(entry)


def _entries(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > _MOST_ENTRIES:
        raise ValueError("list of collectives")
    return list(value)


def _plain(name: str, value: Any) -> Any:
    if name in _TEXTS:
        if not isinstance(value, str):
            raise ValueError("text of collectives")
        return value
    least = -_MOST if name in _SIGNED else UNKNOWN if name in _MAY_BE_UNKNOWN else 0
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _MOST:
        raise ValueError("number of collectives")
    return value
