"""Origins of processes in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..model.origins import ENVIRONMENT, MEMORY, MOST_ANCESTORS, VARIABLES, Ancestor, ProcessOrigin

_MOST = 1 << 64
_FIELDS = {field.name for field in fields(ProcessOrigin)}


def decoded(entry: Any) -> ProcessOrigin:
    """The origin that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    _require(isinstance(entry, dict) and _FIELDS - {"launched"} <= entry.keys() <= _FIELDS)
    launched = entry.get("launched", False)  # older captures do not have it
    _require(isinstance(launched, bool))
    ancestors, variables, source = entry["ancestors"], entry["variables"], entry["source"]
    _require(isinstance(ancestors, list) and len(ancestors) <= MOST_ANCESTORS)
    _require(isinstance(variables, dict) and variables.keys() <= {*VARIABLES})
    _require(source in ("", ENVIRONMENT, MEMORY))
    _require(_number(entry["pid_life"]) > 0)
    return ProcessOrigin(
        pid=_number(entry["pid"]),
        process=_text(entry["process"]),
        executable=_text(entry["executable"]),
        cgroup=_text(entry["cgroup"]),
        began=_number(entry["began"]),
        pid_life=_number(entry["pid_life"]),
        ancestors=[_ancestor(each) for each in ancestors],
        variables={name: _text(value) for name, value in variables.items()},
        source=source,
        launched=launched,
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
