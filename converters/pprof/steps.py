"""Steps in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, TypeVar

from ..model.sites import Site
from ..model.steps import SlowSteps, Spent, Step, StepRun, Steps, StepWait

_MOST = 1 << 63
_MOST_ENTRIES = 1 << 10
_T = TypeVar("_T", Steps, SlowSteps, Spent)


def encoded(steps: Steps) -> dict[str, Any]:
    """Data that JSON can hold, for `decoded`."""
    slowest = [[each.number, each.begin, each.before, asdict(each.spent)] for each in steps.slowest]
    return {**asdict(steps), "slowest": slowest}


def decoded(entry: Any) -> Steps:
    """The inverse. ValueError for anything else."""
    # Files of before have no group of slow steps.
    parts = _fields(Steps, {"slow": None, **entry} if isinstance(entry, dict) else entry)
    made: dict[str, Any] = {
        **{name: _integer(parts[name]) for name in ("pid", "tid", "median", "max", "span", "not_whole")},
        "steps": _spent(parts["steps"]),
        "between": _spent(parts["between"]),
        "slowest": tuple(_step(*_entries(each, 4)) for each in _entries(parts["slowest"])),
        **{name: _text(parts[name]) for name in ("name", "process", "thread")},
        "slow": None if parts["slow"] is None else _slow(parts["slow"]),
    }
    return Steps(**made)


def _slow(entry: Any) -> SlowSteps:
    parts = _fields(SlowSteps, entry)
    every = None if parts["every"] is None else _integer(parts["every"])
    made = SlowSteps(_spent(parts["spent"]), _spent(parts["others"]), _integer(parts["first"]), every)
    if not made.spent.count or not made.others.count:
        raise ValueError("no slow steps")
    return made


def _step(number: Any, begin: Any, before: Any, spent: Any) -> Step:
    return Step(_integer(number), _integer(begin), _spent(spent), None if before is None else _integer(before))


def _spent(entry: Any) -> Spent:
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
    frames, kernel = _entries(site, 2)
    return StepWait(Site(tuple(map(_text, _entries(frames))), _text(kernel)), _integer(time), max(_integer(number), 1))


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
