"""The rule for each text in the parts of a profile: `RULES` by class and field.

Numbers stay as they are: times, counts, ids of processes and threads, lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ..model.locks import KERNEL
from .pseudonyms import Pseudonyms

_Part = TypeVar("_Part")
Rule = Callable[[Pseudonyms, str, Any], str]
"""Of a text and the part that it is in."""


def _function(names: Pseudonyms, text: str, part: Any) -> str:
    """Of a timed function or an ioctl: the file decides."""
    if getattr(part, "device", ""):
        return names.command(text)
    return text if names.base(part.library) == part.library.rpartition("/")[2] else names.function(text)


def _simple(method: Callable[[Pseudonyms, str], str]) -> Rule:
    return lambda names, text, _part: method(names, text)


_PROCESS, _THREAD = _simple(Pseudonyms.process), _simple(Pseudonyms.program)
_NAME, _FILE, _WORD = _simple(Pseudonyms.function), _simple(Pseudonyms.base), _simple(Pseudonyms.word)
_KERNEL = _simple(Pseudonyms.kernel_function)
_DEVICE, _NUMBER, _ERROR = _simple(Pseudonyms.device), _simple(Pseudonyms.number), _simple(Pseudonyms.error)
_STATE, _SCRIPT, _COMMAND = _simple(Pseudonyms.state), _simple(Pseudonyms.script), _simple(Pseudonyms.command)


def _made(what: str) -> Rule:
    return lambda names, text, _part: names.made(what, text) if text else ""


def _lock(names: Pseudonyms, text: str, part: Any) -> str:
    return names.lock(text, of_kernel=part.owned_by == KERNEL)


RULES: dict[tuple[str, str], Rule] = {
    ("ThreadTimes", "process"): _PROCESS,
    ("ThreadTimes", "thread"): _THREAD,
    ("ThreadTimes", "blocked"): _STATE,
    ("ProcessTimes", "process"): _PROCESS,
    ("ProcessTimes", "cpus"): _NUMBER,
    ("ProcessTimes", "environment"): _NUMBER,
    ("ProcessTimes", "script"): _SCRIPT,
    ("ProcessTimes", "ranks"): _NUMBER,
    ("CpuLimit", "cgroup"): _made("cgroup"),
    ("CallTimes", "name"): _function,
    ("CallTimes", "device"): _DEVICE,
    ("CallTimes", "process"): _PROCESS,
    ("CallTimes", "errors"): _ERROR,
    ("CallTimes", "locks"): _WORD,
    ("CallTimes", "library"): _FILE,
    ("CallTimes", "thread"): _THREAD,
    ("SharedCall", "name"): _COMMAND,
    ("SharedCall", "device"): _DEVICE,
    ("CallIoctls", "name"): _function,
    ("CallIoctls", "library"): _FILE,
    ("CallIoctls", "process"): _PROCESS,
    ("CallIoctls", "command"): _COMMAND,
    ("CallIoctls", "device"): _DEVICE,
    ("Copies", "name"): _function,
    ("Copies", "library"): _FILE,
    ("Copies", "process"): _PROCESS,
    ("Copies", "direction"): _WORD,
    ("Answer", "ask"): _WORD,
    ("Answer", "text"): _made("expression"),
    ("Answer", "name"): _function,
    ("Answer", "library"): _FILE,
    ("Answer", "values"): _NUMBER,
    ("LockTimes", "name"): _lock,
    ("LockTimes", "kind"): _WORD,
    ("LockTimes", "owned_by"): _WORD,
    ("LockTimes", "process"): _PROCESS,
    ("LockTimes", "taken_in"): _KERNEL,
    ("LockThread", "process"): _PROCESS,
    ("LockThread", "thread"): _THREAD,
    ("LockThread", "source"): _WORD,
    ("LockThread", "frames"): _NAME,
    ("LockPlace", "frames"): _NAME,
    ("GilTimes", "process"): _PROCESS,
    ("GilThread", "thread"): _THREAD,
    ("GilThread", "frames"): _NAME,
    ("Steps", "name"): _NAME,
    ("Steps", "process"): _PROCESS,
    ("Steps", "thread"): _THREAD,
    ("StepRun", "frames"): _NAME,
    ("Site", "frames"): _NAME,
    ("Site", "kernel"): _KERNEL,
}
_VALUES_ONLY = {("ProcessTimes", "environment"), ("ProcessTimes", "ranks")}
"""Dictionaries whose keys are names that we choose."""


def without_private(names: Pseudonyms, part: _Part) -> _Part:
    """A part of a profile, with all that it consists of. KeyError for a text without a rule."""
    name = type(part).__name__
    changed = {field: _changed(names, getattr(part, field), name, field, part) for field in _fields(part)}
    made: Any = part
    return replace(made, **changed) if is_dataclass(part) else made._replace(**changed)  # type: ignore[no-any-return]


def _fields(part: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(part)) if is_dataclass(part) else part._fields


def _changed(names: Pseudonyms, value: Any, owner: str, field: str, part: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return RULES[owner, field](names, value, part)
    if is_dataclass(value) or hasattr(value, "_fields"):
        return without_private(names, value)
    if isinstance(value, dict):
        keeps_keys = (owner, field) in _VALUES_ONLY
        return {
            key if keeps_keys else _changed(names, key, owner, field, part): _changed(names, each, owner, field, part)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_changed(names, each, owner, field, part) for each in value)
    raise TypeError(f"{owner}.{field} holds {type(value).__name__}")
