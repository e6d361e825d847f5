"""The parts of a profile beside its samples: accounts of threads, calls, locks, steps … What is done to all of them.

Each is a list of dataclasses, which may hold others. A new part is one name here, and each of its texts has a line in
`TEXTS`: a test finds those that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .profile import Profile

_Part = TypeVar("_Part")

OF_THREADS = (
    *("threads", "processes", "origins", "neighbours", "objects", "group_limits", "slices"),
    *("pressure", "interrupts", "core_threads", "gpus"),
)
"""Accounts, and what samples refer to: they stay when samples are left out."""
OF_SAMPLES = (
    *("calls", "shared", "call_ioctls", "copies", "answers", "locks", "file_locks", "gil"),
    *("steps", "found_steps", "collectives", "watched"),
)
"""Names of the parts that were measured beside the samples: of no use without all samples."""
NAMES = (*OF_THREADS, *OF_SAMPLES)

PROCESS, THREAD, OTHER_TEXT = "name of a process", "name of a thread", "text"
TEXTS: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        (
            ("ThreadTimes", "process"),
            ("ProcessTimes", "process"),
            ("ProcessOrigin", "process"),
            ("Ancestor", "process"),
            ("Neighbour", "process"),
            ("CallTimes", "process"),
            ("CallIoctls", "process"),
            ("Copies", "process"),
            ("LockTimes", "process"),
            ("LockThread", "process"),
            ("FileLock", "process"),
            ("FileLock", "owner"),
            ("GilTimes", "process"),
            ("Steps", "process"),
            ("Maker", "process"),
            ("ObjectEnd", "process"),
            ("ObjectPeer", "process"),
            ("ThreadSlices", "process"),
            ("CoreThread", "process"),
            ("CollectiveRank", "process"),
        ),
        PROCESS,
    ),
    **dict.fromkeys(
        (
            ("ThreadTimes", "thread"),
            ("CallTimes", "thread"),
            ("LockThread", "thread"),
            ("GilThread", "thread"),
            ("Steps", "thread"),
            ("Maker", "thread"),
            ("ThreadSlices", "thread"),
            ("CoreThread", "thread"),
        ),
        THREAD,
    ),
    **dict.fromkeys(
        (
            *(("ThreadTimes", name) for name in ("blocked", "made_in")),
            *(("ProcessTimes", name) for name in ("cpus", "environment", "script", "ranks")),
            *(("ProcessOrigin", name) for name in ("executable", "cgroup", "variables", "source")),
            ("CpuLimit", "cgroup"),
            *(("Pressure", name) for name in ("resource", "cgroup")),
            *(("Interrupts", name) for name in ("kind", "name")),
            ("Gpu", "name"),
            ("GpuLimit", "reason"),
            *(("CallTimes", name) for name in ("name", "device", "errors", "locks", "library")),
            *(("SharedCall", name) for name in ("name", "device")),
            *(("CallIoctls", name) for name in ("name", "library", "command", "device")),
            *(("Copies", name) for name in ("name", "library", "direction")),
            *(("AskedValues", name) for name in ("ask", "text", "name", "library", "values")),
            *(("LockTimes", name) for name in ("name", "kind", "owned_by", "taken_in")),
            *(("LockThread", name) for name in ("source", "frames")),
            ("LockPlace", "frames"),
            *(("FileLock", name) for name in ("kind", "path", "access")),
            ("Neighbour", "cpus"),
            *(
                ("WaitObject", name)
                for name in ("kind", "name", "filesystem", "source", "device", "local", "remote", "resent_with", "does")
            ),
            ("Link", "remote"),
            *(("GroupLimit", name) for name in ("cgroup", "kind", "name", "devices")),
            *(("ObjectPeer", name) for name in ("kind", "address")),
            ("GilThread", "frames"),
            ("Steps", "name"),
            ("Collectives", "library"),
            *((each, "what") for each in ("CollectiveKind", "Meeting", "Standing")),
            ("Standing", "elsewhere"),
            ("StepRun", "frames"),
            *(("Site", name) for name in ("frames", "kernel")),
            *(("SliceSpent", name) for name in ("kind", "frames", "kernel")),
        ),
        OTHER_TEXT,
    ),
}
"""Meaning of each text, by class and field."""


def merged(profiles: Iterable[Profile]) -> dict[str, Any]:
    """The parts of several profiles, one after the other: by field of `Profile`."""
    found: dict[str, list[Any]] = {name: [] for name in NAMES}
    for profile in profiles:
        for name, entries in found.items():
            entries += getattr(profile, name)
    return found


def without(names: Iterable[str] = NAMES) -> dict[str, Any]:
    """Empty ones, for `dataclasses.replace` of a profile."""
    return {name: [] for name in names}


def renamed(profile: Profile, names: Mapping[str, Callable[[str], str]]) -> dict[str, Any]:
    """All parts with other texts. ``names``: by what a text is (`PROCESS`, …); others stay as they are."""

    def rename(owner: str, field: str, text: str, _part: Any) -> str:
        change = names.get(TEXTS[owner, field])
        return change(text) if change else text

    return {name: [with_texts(part, rename) for part in getattr(profile, name)] for name in NAMES}


KEYS = {("ProcessTimes", "environment"), ("ProcessTimes", "ranks"), ("ProcessOrigin", "variables")}
"""Dictionaries whose keys are names that we choose."""


def with_texts(part: _Part, change: Callable[[str, str, str, Any], str]) -> _Part:
    """A part with other texts, those of all that it consists of included. ``change`` gets the class and the field of a
    text, the text, and what it is in."""
    changed = {field: _changed(getattr(part, field), field, part, change) for field in field_names(part)}
    made: Any = part
    return replace(made, **changed) if is_dataclass(part) else made._replace(**changed)  # type: ignore[no-any-return]


def field_names(part: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass or a named tuple."""
    return tuple(field.name for field in fields(part)) if is_dataclass(part) else part._fields


def _changed(value: Any, field: str, part: Any, change: Callable[[str, str, str, Any], str]) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    owner = type(part).__name__
    if isinstance(value, str):
        return change(owner, field, value, part)
    if is_dataclass(value) or hasattr(value, "_fields"):
        return with_texts(value, change)
    if isinstance(value, dict):
        keeps_keys = (owner, field) in KEYS
        return {
            key if keeps_keys else _changed(key, field, part, change): _changed(each, field, part, change)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_changed(each, field, part, change) for each in value)
    raise TypeError(f"{owner}.{field} holds {type(value).__name__}")
