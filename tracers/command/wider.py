"""The command that would have traced what was left out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...converters.base.text import printable
from ..base.scope import Scope

if TYPE_CHECKING:
    from ...converters.model.next_step import NextStep, Whom

_LONG = 200
"""A command with more characters is not repeated."""


def _chosen(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The options of scope that were given, but for ``--children``."""
    words: list[str] = []
    for flag, numbers in (("-p", given["pids"]), ("-t", given["tids"])):
        words += [flag, ",".join(map(str, numbers))] if numbers else []
    words += ["-n", given["name"]] if given["name"] else []
    words += ["--cgroup", str(given["cgroup"])] if given["cgroup"] else []
    return tuple(words)


def chosen(given: Mapping[str, Any]) -> Whom | None:
    """The user's choice of what to trace, to be used again; None if the processes' ids say it as well."""
    from ...converters.model.next_step import COMMAND, Whom

    if given["command"]:
        line = shlex.join(given["command"])
        # Its processes' ids are of no use: they have ended.
        return Whom((), tuple(given["command"]) if len(line) <= _LONG and printable(line) == line else (COMMAND,))
    if given["name"] or given["cgroup"] or given["children"]:
        return Whom((*_chosen(given), *(("--children",) if given["children"] else ())))
    return None


def is_repeated(step: NextStep, given: Mapping[str, Any], stem: str) -> bool:
    """Whether ``step`` is the command that was just run: it would show nothing new.

    ``given``: the values of the options, ``stem``: the command's. How long it ran does not matter.
    """
    if step.tool != f"trace-{stem}" or bool(step.whom.command) != bool(given.get("command")):
        return False
    asked = step.words
    values = dict(zip(asked, asked[1:], strict=False))
    return (
        ("-a" in asked) == bool(given.get("everything"))
        and {int(pid) for pid in values.get("-p", "").split(",") if pid} == set(given.get("pids") or ())
        and values.get("-n", "") == (given.get("name") or "")
        and ("--critical" not in values or given.get("critical") is not None)
        and ("--per-thread" not in asked or bool(given.get("per_thread")))
        and ("-o" not in values or _kind(values["-o"]) in map(_kind, given.get("outputs") or ()))
    )


def _kind(path: str) -> str:
    """``pftrace`` of ``when.pftrace``: what kind of file it is."""
    return path.rpartition(".")[2]


def with_children(given: Mapping[str, Any], scope: Scope, stem: str) -> NextStep | None:
    """Step to the same trace with ``--children``, if processes that it would add have run meanwhile; else None.

    ``given``: the values of the options of scope, ``stem``: the command's.
    """
    busy = scope.busy_left_out()
    if not busy:
        return None
    from ...converters.model.next_step import LEFT_OUT, NextStep, Whom

    duration = ("-d", f"{given['duration']:g}") if given["duration"] else ()
    whom = Whom((*_chosen(given), "--children"))
    targets = tuple(given.get("targets", ()))
    return NextStep(f"trace-{stem}", whom, duration, LEFT_OUT, targets, left_out=len(busy))
