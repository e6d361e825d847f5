"""Objects of waits in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from ..model.wait_objects import MOST_ENDS, MOST_LINKS, MOST_PEERS, Link, ObjectEnd, ObjectPeer, WaitObject

_MOST = 1 << 64
_T = TypeVar("_T", WaitObject, ObjectEnd, ObjectPeer, Link)
_ADDED = {"queued": 0, "backlog": 0, "mapped": False, "source": "", "peers": [],
          "retransmissions": 0, "unanswered": 0, "resent_with": "", "links": []}  # fmt: skip
"""Fields that older captures do not have."""


def decoded(entry: Any) -> WaitObject:
    """The object that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    if not isinstance(entry, dict):
        raise ValueError("object of waits")
    entry = _ADDED | entry
    made = {
        "ends": [_flat(ObjectEnd, end) for end in _some(entry.get("ends"), MOST_ENDS)],
        "peers": [_flat(ObjectPeer, peer) for peer in _some(entry["peers"], MOST_PEERS)],
        "links": [_flat(Link, link) for link in _some(entry["links"], MOST_LINKS)],
    }
    return _flat(WaitObject, entry, **made)


def _some(entries: Any, most: int) -> list[Any]:
    if not isinstance(entries, list) or len(entries) > most:
        raise ValueError("ends of an object")
    return entries


def _flat(kind: type[_T], entry: Any, **made: Any) -> _T:
    types = {field.name: field.type for field in fields(kind)}
    if not isinstance(entry, dict) or entry.keys() != types.keys():
        raise ValueError("object of waits")
    return kind(**{name: made.get(name, _value(str(types[name]), value)) for name, value in entry.items()})


def _value(wanted: str, value: Any) -> Any:
    if wanted.startswith("list"):
        return None  # made already
    if wanted == "int" and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    if (wanted == "str" and isinstance(value, str)) or (wanted == "bool" and isinstance(value, bool)):
        return value
    raise ValueError("figures of an object")
