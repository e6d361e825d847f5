"""What pprof has no field for, carried in the comments of a profile.

People read the first lines (title, lost counts). The last comment is for `converters.pprof.load`: the word
``stallscope:`` and one JSON object with ``version``, ``title``, ``host``, ``lost``, ``threads`` (the fields of
ThreadTimes), ``value_types`` (``[name, unit, aggregate, label key]``, the key "" for a sum) and ``generated``
(the lines for people, which load() takes out again).
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from .model import Profile, ThreadTimes, ValueType

_PREFIX = "stallscope:"
_VERSION = 1


class Column(NamedTuple):
    """A value type and the numeric label that carries it; "" for a sum, which is a pprof sample value."""

    value_type: ValueType
    label: str


def encode(profile: Profile, columns: list[Column]) -> list[str]:
    """The comments that say what pprof's own fields cannot; ``profile.comments`` among them."""
    generated = [profile.title] if profile.title else []
    if profile.lost:
        generated.append("lost: " + ", ".join(f"{kind} {count}" for kind, count in profile.lost.items()))
    meta = {
        "version": _VERSION,
        "title": profile.title,
        "host": profile.host,
        "lost": profile.lost,
        "value_types": [[*column.value_type, column.label] for column in columns],
        "generated": generated,
        "threads": [asdict(thread) for thread in profile.threads],
    }
    # Lone surrogates stay as they are here: the string table has one way of writing them for all strings.
    text = json.dumps(meta, ensure_ascii=False, separators=(",", ":"))
    return [*generated, *profile.comments, _PREFIX + text]


def is_ours(comments: list[str]) -> bool:
    """Whether `encode` made one of them."""
    return any(comment.startswith(_PREFIX) for comment in comments)


def decode(comments: list[str], profile: Profile) -> list[Column]:
    """Inverse of `encode`: fills ``profile``, returns its columns. ValueError for JSON that encode did not write."""
    position = max(i for i, comment in enumerate(comments) if comment.startswith(_PREFIX))
    try:
        meta = json.loads(comments[position][len(_PREFIX) :])
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _require(isinstance(meta, dict) and meta.get("version") == _VERSION, f"not version {_VERSION}")
    profile.title = _text(meta.get("title", ""))
    profile.host = _text(meta.get("host", ""))
    profile.lost = _counts(meta.get("lost", {}))
    profile.threads = [_thread(entry) for entry in _list(meta.get("threads", []))]
    profile.comments = comments[:position] + comments[position + 1 :]
    for line in _list(meta.get("generated", [])):
        if line in profile.comments:
            profile.comments.remove(line)
    columns = [_column(entry) for entry in _list(meta.get("value_types"))]
    profile.value_types = [column.value_type for column in columns]
    return columns


def _column(entry: Any) -> Column:
    _require(isinstance(entry, list) and len(entry) == 4, "value type")
    name, unit, aggregate, label = map(_text, entry)
    _require(aggregate in ("sum", "min", "max"), "aggregate")
    return Column(ValueType(name, unit, aggregate), label)  # type: ignore[arg-type]  # checked above


def _thread(entry: Any) -> ThreadTimes:
    _require(isinstance(entry, dict) and entry.keys() == {f.name for f in fields(ThreadTimes)}, "thread")
    return ThreadTimes(
        pid=_integer(entry["pid"]),
        process=_text(entry["process"]),
        tid=_integer(entry["tid"]),
        thread=_text(entry["thread"]),
        wall=_integer(entry["wall"]),
        on_cpu=_integer(entry["on_cpu"]),
        runnable=_integer(entry["runnable"]),
        blocked=_counts(entry["blocked"]),
        switches=_integer(entry["switches"]),
        exited=bool(entry["exited"]),
    )


def _counts(value: Any) -> dict[str, int]:
    _require(isinstance(value, dict), "object expected")
    return {key: _integer(count) for key, count in value.items()}


def _list(value: Any) -> list[Any]:
    _require(isinstance(value, list), "list expected")
    return list(value)


def _text(value: Any) -> str:
    _require(isinstance(value, str), "text expected")
    return str(value)


def _integer(value: Any) -> int:
    _require(isinstance(value, int), "integer expected")
    return int(value)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)
