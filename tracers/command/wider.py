"""The command that would have traced what was left out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...converters.base.text import printable
from ...converters.base.units import plural
from ..base.scope import Scope

if TYPE_CHECKING:
    from ...converters.summary.figures import NextStep


def with_children(given: Mapping[str, Any], scope: Scope, stem: str) -> NextStep | None:
    """The same trace with ``--children``, if processes that it would add have run meanwhile; else None.

    ``given``: the values of the options of scope, ``stem``: the command's.
    """
    busy = scope.busy_left_out()
    if not busy:
        return None
    from ...converters.summary.figures import NextStep

    words = [f"trace-{stem}"]
    for flag, numbers in (("-p", given["pids"]), ("-t", given["tids"])):
        words += [flag, ",".join(map(str, numbers))] if numbers else []
    words += ["-n", shlex.quote(given["name"])] if given["name"] else []
    words += ["--cgroup", shlex.quote(str(given["cgroup"]))] if given["cgroup"] else []
    words += ["--children", *(["-d", f"{given['duration']:g}"] if given["duration"] else [])]
    left_out = "processes that were left out and ran meanwhile"
    tells = f"also {plural(1, 'process')} that was left out and ran meanwhile" if len(busy) == 1 else ""
    return NextStep(printable(" ".join(words)), tells or f"also {len(busy):,} {left_out}")
