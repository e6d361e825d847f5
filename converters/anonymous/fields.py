"""The rule for each text in the parts of a profile: `RULES` by class and field.

Numbers stay as they are: times, counts, ids of processes and threads, lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..model import parts
from ..model.locks import KERNEL
from .pseudonyms import Pseudonyms

_Part = TypeVar("_Part")
_DIGITS = 4
"""Digits of numbers of ranks."""
Rule = Callable[[Pseudonyms, str, Any], str]
"""Makes the pseudonym of a text. Arguments: the pseudonyms, the text, and the part that the text is in."""


def _function(names: Pseudonyms, text: str, part: Any) -> str:
    """Pseudonym of a timed function or an ioctl; the file decides which one it is."""
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


def _short_number(names: Pseudonyms, text: str, _part: Any) -> str:
    """Pseudonym of the value of a variable; how many ranks there are is no secret, the number of a job may be one."""
    return text if text.isdigit() and len(text) <= _DIGITS else names.made("value", text)


_NAMES = {parts.PROCESS: _PROCESS, parts.THREAD: _THREAD}
RULES: dict[tuple[str, str], Rule] = {
    **{place: _NAMES[what] for place, what in parts.TEXTS.items() if what in _NAMES},
    ("ThreadTimes", "blocked"): _STATE,
    ("ThreadTimes", "made_in"): _NAME,
    ("ProcessTimes", "cpus"): _NUMBER,
    ("Neighbour", "cpus"): _NUMBER,
    ("ProcessTimes", "environment"): _NUMBER,
    ("ProcessTimes", "script"): _SCRIPT,
    ("ProcessTimes", "ranks"): _NUMBER,
    ("ProcessOrigin", "executable"): _FILE,
    ("ProcessOrigin", "cgroup"): _made("cgroup"),
    ("ProcessOrigin", "variables"): _short_number,
    ("ProcessOrigin", "source"): _WORD,
    ("CpuLimit", "cgroup"): _made("cgroup"),
    ("Pressure", "resource"): _WORD,
    ("Pressure", "cgroup"): _made("cgroup"),
    ("Interrupts", "kind"): _WORD,
    ("Interrupts", "name"): _made("interrupt"),
    ("Gpu", "name"): _made("model"),
    ("GpuLimit", "reason"): _WORD,
    ("CallTimes", "name"): _function,
    ("CallTimes", "device"): _DEVICE,
    ("CallTimes", "errors"): _ERROR,
    ("CallTimes", "locks"): _WORD,
    ("CallTimes", "library"): _FILE,
    ("SharedCall", "name"): _COMMAND,
    ("SharedCall", "device"): _DEVICE,
    ("CallIoctls", "name"): _function,
    ("CallIoctls", "library"): _FILE,
    ("CallIoctls", "command"): _COMMAND,
    ("CallIoctls", "device"): _DEVICE,
    ("Copies", "name"): _function,
    ("Copies", "library"): _FILE,
    ("Copies", "direction"): _WORD,
    ("AskedValues", "ask"): _WORD,
    ("AskedValues", "text"): _made("expression"),
    ("AskedValues", "name"): _function,
    ("AskedValues", "library"): _FILE,
    ("AskedValues", "values"): _NUMBER,
    ("LockTimes", "name"): _lock,
    ("LockTimes", "kind"): _WORD,
    ("LockTimes", "owned_by"): _WORD,
    ("LockTimes", "taken_in"): _KERNEL,
    ("LockThread", "source"): _WORD,
    ("LockThread", "frames"): _NAME,
    ("LockPlace", "frames"): _NAME,
    ("FileLock", "kind"): _WORD,
    ("FileLock", "access"): _WORD,
    ("FileLock", "path"): _made("file"),
    ("GilThread", "frames"): _NAME,
    ("Steps", "name"): _NAME,
    ("Collectives", "library"): _WORD,
    ("CollectiveKind", "what"): _WORD,
    ("Meeting", "what"): _WORD,
    ("Standing", "what"): _WORD,
    ("Standing", "elsewhere"): _WORD,
    ("StepRun", "frames"): _NAME,
    ("WaitObject", "kind"): _WORD,
    ("WaitObject", "name"): _made("file"),
    ("WaitObject", "filesystem"): _made("filesystem"),
    ("WaitObject", "source"): _made("source"),
    ("WaitObject", "device"): _NUMBER,
    ("WaitObject", "local"): _made("address"),
    ("WaitObject", "remote"): _made("address"),
    ("WaitObject", "resent_with"): _made("address"),
    ("Link", "remote"): _made("address"),
    ("WaitObject", "does"): _WORD,
    ("GroupLimit", "cgroup"): _made("cgroup"),
    ("GroupLimit", "kind"): _WORD,
    ("GroupLimit", "name"): _WORD,
    ("GroupLimit", "devices"): _NUMBER,
    ("ObjectPeer", "kind"): _WORD,
    ("ObjectPeer", "address"): _made("address"),
    ("SliceSpent", "kind"): _WORD,
    ("SliceSpent", "frames"): _NAME,
    ("SliceSpent", "kernel"): _KERNEL,
    ("Site", "frames"): _NAME,
    ("Site", "kernel"): _KERNEL,
}


def without_private(names: Pseudonyms, part: _Part) -> _Part:
    """A part of a profile, with all that it consists of. KeyError for a text without a rule."""
    return parts.with_texts(part, lambda owner, field, text, whole: RULES[owner, field](names, text, whole))
