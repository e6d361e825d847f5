"""Locks in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from ..model.file_locks import FileLock, LockAsker
from ..model.gil import GilThread, GilTimes
from ..model.locks import LockPlace, LockThread, LockTimes

_MOST = 1 << 64
_MOST_ENTRIES = 1 << 10
_T = TypeVar("_T", LockTimes, LockThread, LockPlace, GilTimes, GilThread, FileLock, LockAsker)


def decoded(entry: Any) -> LockTimes:
    """The lock that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    return _with_lists(LockTimes, entry, {"waiters": LockThread, "holders": LockThread, "places": LockPlace})


def decoded_gil(entry: Any) -> GilTimes:
    """A process's waits for Python's interpreter lock, from JSON."""
    return _with_lists(GilTimes, entry, {"waiters": GilThread, "holders": GilThread})


def decoded_file(entry: Any) -> FileLock:
    """A wait for a lock on a file, from JSON. Old captures do not have the threads that asked for it."""
    whole = {"askers": [], **entry} if isinstance(entry, dict) else entry
    return _with_lists(FileLock, whole, {"askers": LockAsker})


def _with_lists(kind: type[_T], entry: Any, lists: Mapping[str, Any]) -> _T:
    parts = entry if isinstance(entry, dict) else {}
    made: dict[str, Any] = {key: [_object(of, each) for each in _entries(parts.get(key))] for key, of in lists.items()}
    return _object(kind, {**parts, **made}, lists)


def _object(kind: type[_T], entry: Any, made: Collection[str] = ()) -> _T:
    known = {field.name: field.type for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    if not isinstance(entry, dict) or not needed <= entry.keys() <= known.keys():
        raise ValueError("lock")
    return kind(**{name: entry[name] if name in made else _value(known[name], entry[name]) for name in entry})


def _value(wanted: Any, value: Any) -> Any:
    if wanted == "str" and isinstance(value, str):
        return value
    if wanted == "bool" and isinstance(value, bool):
        return value
    if wanted == "int" and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    if wanted == "tuple[str, ...]" and all(isinstance(each, str) for each in _entries(value)):
        return tuple(value)
    raise ValueError("figures of locks")


def _entries(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > _MOST_ENTRIES:
        raise ValueError("list expected")
    return list(value)
