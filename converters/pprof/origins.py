"""Origins of processes in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from typing import Any

from ..model.origins import ENVIRONMENT, MEMORY, MOST_ANCESTORS, VARIABLES, Ancestor, ProcessOrigin

_MOST = 1 << 64
_TEXTS, _NUMBERS = ("process", "executable", "cgroup"), ("pid", "began", "pid_life")


def decoded(entry: Any) -> ProcessOrigin:
    """The origin that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    known = {*_TEXTS, *_NUMBERS, "ancestors", "variables", "source"}
    _require(isinstance(entry, dict) and entry.keys() == known)
    ancestors, variables, source = entry["ancestors"], entry["variables"], entry["source"]
    _require(isinstance(ancestors, list) and len(ancestors) <= MOST_ANCESTORS)
    _require(isinstance(variables, dict) and variables.keys() <= {*VARIABLES})
    _require(source in ("", ENVIRONMENT, MEMORY))
    numbers = {name: _number(entry[name]) for name in _NUMBERS}
    _require(numbers["pid_life"] > 0)
    return ProcessOrigin(
        **{name: _text(entry[name]) for name in _TEXTS},
        **numbers,
        ancestors=[_ancestor(each) for each in ancestors],
        variables={name: _text(value) for name, value in variables.items()},
        source=source,
    )


def _ancestor(entry: Any) -> Ancestor:
    _require(isinstance(entry, dict) and entry.keys() == {"pid", "process"})
    return Ancestor(_number(entry["pid"]), _text(entry["process"]))


def _text(value: Any) -> str:
    _require(isinstance(value, str))
    return str(value)


def _number(value: Any) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST)
    return int(value)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("origin of a process")
