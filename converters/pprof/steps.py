"""Steps in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, TypeVar

from ..model.sites import Site
from ..model.steps import Found, Maker, Reader, SlowSteps, Spent, Step, StepRun, Steps, StepWait

_MOST = 1 << 63
_MOST_ENTRIES = 1 << 10
_T = TypeVar("_T", Steps, SlowSteps, Spent, Found, Reader)
_LATER = {"slow": None, "p90": None, "found": None, "reader": None}
"""Fields that files of before do not have."""


def encoded(steps: Steps) -> dict[str, Any]:
    """Data that JSON can hold, for `decoded`."""
    slowest = [[each.number, each.begin, each.before, asdict(each.spent)] for each in steps.slowest]
    return {**asdict(steps), "slowest": slowest}


def decoded(entry: Any) -> Steps:
    """The inverse. ValueError for anything else."""
    parts = _fields(Steps, {**_LATER, **entry} if isinstance(entry, dict) else entry)
    made: dict[str, Any] = {
        **{name: _integer(parts[name]) for name in ("pid", "tid", "median", "max", "span", "not_whole")},
        "steps": decoded_spent(parts["steps"]),
        "between": decoded_spent(parts["between"]),
        "slowest": tuple(_step(*_entries(each, 4)) for each in _entries(parts["slowest"])),
        **{name: _text(parts[name]) for name in ("name", "process", "thread")},
        "slow": None if parts["slow"] is None else _slow(parts["slow"]),
        "p90": None if parts["p90"] is None else _integer(parts["p90"]),
        "found": None if parts["found"] is None else _found(parts["found"]),
        "reader": None if parts["reader"] is None else _reader(parts["reader"]),
    }
    return Steps(**made)


def decoded_found(entry: Any) -> Steps:
    """`decoded` of steps that nobody named: they have evidence, and a length."""
    made = decoded(entry)
    if made.found is None or not made.steps.count or not made.median:
        raise ValueError("steps without evidence")
    return made


def _found(entry: Any) -> Found:
    parts = _fields(Found, entry)
    if not isinstance(parts["is_timed"], bool):
        raise ValueError("evidence of steps")
    return Found(_site(parts["place"]), _integer(parts["deviation"]), _integer(parts["waited"]), parts["is_timed"])


def _reader(entry: Any) -> Reader:
    parts = _fields(Reader, entry)
    makers = tuple(_maker(*_entries(each, 5)) for each in _entries(parts["makers"]))
    if not makers:
        raise ValueError("no makers")
    return Reader(makers, _integer(parts["number"]), _integer(parts["wall"]))


def _maker(process: Any, pid: Any, thread: Any, tid: Any, work: Any) -> Maker:
    return Maker(_text(process), _integer(pid), _text(thread), _integer(tid), _integer(work))


def _slow(entry: Any) -> SlowSteps:
    parts = _fields(SlowSteps, entry)
    every = None if parts["every"] is None else _integer(parts["every"])
    made = SlowSteps(decoded_spent(parts["spent"]), decoded_spent(parts["others"]), _integer(parts["first"]), every)
    if not made.spent.count or not made.others.count:
        raise ValueError("no slow steps")
    return made


def _step(number: Any, begin: Any, before: Any, spent: Any) -> Step:
    return Step(_integer(number), _integer(begin), decoded_spent(spent), None if before is None else _integer(before))


def decoded_spent(entry: Any) -> Spent:
    """The inverse of `asdict`. ValueError for anything else."""
    # Files of before have no samples of them.
    parts = _fields(Spent, {"samples": 0, "ran": [], **entry} if isinstance(entry, dict) else entry)
    times = {name: _integer(value) for name, value in parts.items() if name not in ("waits", "ran")}
    if times["on_cpu"] + times["blocked"] > times["wall"]:
        raise ValueError("parts of steps")
    waits = tuple(_wait(*_entries(each, 3)) for each in _entries(parts["waits"]))
    ran = tuple(_run(*_entries(each, 2)) for each in _entries(parts["ran"]))
    if sum(each.samples for each in ran) > times["samples"]:
        raise ValueError("samples of steps")
    return Spent(**times, waits=waits, ran=ran)


def _run(frames: Any, samples: Any) -> StepRun:
    return StepRun(tuple(map(_text, _entries(frames))), _integer(samples))


def _wait(site: Any, time: Any, number: Any) -> StepWait:
    return StepWait(_site(site), _integer(time), max(_integer(number), 1))


def _site(entry: Any) -> Site:
    frames, kernel = _entries(entry, 2)
    return Site(tuple(map(_text, _entries(frames))), _text(kernel))


def _fields(kind: type[_T], entry: Any) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    if not isinstance(entry, dict) or entry.keys() != names:
        raise ValueError("steps")
    return entry


def _entries(value: Any, number: int | None = None) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > _MOST_ENTRIES or number not in (None, len(value)):
        raise ValueError("list of steps")
    return list(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text of steps")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise ValueError("number of steps")
    return value
