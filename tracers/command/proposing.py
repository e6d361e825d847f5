"""Recommended commands that the engine of the trace can run, too; and what an engine refuses, as the user typed it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ..engines.auto import Auto
from ..engines.protocol import Engine
from ..measures.commands import COMMANDS
from ..measures.protocol import Measure
from ..measures.timeline import Timeline
from ..measures.wakeup import WakeUp
from .engines import ENGINES
from .wider import is_repeated

if TYPE_CHECKING:
    from ...converters.model.next_step import NextStep

_TYPES = Path("/sys/kernel/btf/vmlinux")
"""File that is there where root can use libbpf."""


class Proposing:
    """Fits recommended commands to one trace."""

    def __init__(self, given: Mapping[str, Any], stem: str, engine: Engine, used: str = "") -> None:
        """``given``: the values of the options, ``stem``: the command's. ``engine``: what was asked for; ``used``: who
        took the trace, if that is `Auto`."""
        self._given, self._tool, self._stem = given, f"trace-{stem}", stem
        self._engine, self._used = engine, used
        self._others: Sequence[Engine] = engine.engines if isinstance(engine, Auto) else ()

    def fit(self, step: NextStep) -> NextStep | None:
        """``step``, or something like it, as this user and this engine can run it; None: there is no such command."""
        if fitted := self._fitted(step):
            return fitted
        other = _instead(step)
        if other is None or is_repeated(other, self._given, self._stem):
            return None
        return self._fitted(other)

    def _fitted(self, step: NextStep) -> NextStep | None:
        if not isinstance(self._engine, Auto):
            return self._with_engine(step) if self._takes(self._engine, step) else None
        if not self._others or self._used in ("", self._others[0].name):
            return step
        names = [each.name for each in self._others]
        later = self._others[names.index(self._used) :]
        if any(self._takes(each, step) for each in later):
            return step
        if not ENGINES[self._used].needs_root and os.geteuid() != 0 and _TYPES.exists() and shutil.which("sudo"):
            return step._replace(sudo=True)
        return None

    def _takes(self, engine: Engine, step: NextStep) -> bool:
        words = step.words
        measures = [*COMMANDS.get(step.tool, ())]
        if "--critical" in words or any(_is_timeline(word) for word in words):
            measures.append(Timeline())
        entry = ENGINES[engine.name]
        if "-a" in words and not entry.whole_hosts:
            return False
        # The engine that was asked for has what it needs: it has taken a trace.
        is_here = engine is self._engine and entry.needs_root
        return not engine.refusals(measures) and (is_here or engine.missing(measures) is None)

    def _with_engine(self, step: NextStep) -> NextStep:
        options, needs_module = ["--engine", self._engine.name], False
        if module := self._given.get("stap_module"):
            if step.tool == self._tool:
                options += ["--stap-module", str(module)]
            else:
                needs_module = True
        return step._replace(first=(*options, *step.first), needs_module=needs_module)


def refusal(engine: Engine, measures: Sequence[Measure], given: Mapping[str, Any]) -> StallscopeError | None:
    """Error for what an engine refuses, by the option that stands for it if there is one; None: nothing."""
    refused = engine.refusals(measures)
    if not refused:
        return None
    name, why = next(iter(refused.items()))
    option, own = _typed(name, given), f"--engine {engine.name}"
    is_named = given["engine"] == engine.name
    if option:
        why = f"the engine {engine.name} does not record what {option} shows"
        remedy = f"leave out {option}" + (f" or {own}" if is_named else "")
    else:
        remedy = f"leave out {own}, or choose another one" if is_named else f"leave out the options of {own}"
    return StallscopeError(why, remedy, exit_code=2)


def _typed(name: str, given: Mapping[str, Any]) -> str:
    """The option for which a measure is taken; "": the command itself."""
    if name == WakeUp.name:
        return "--wakers" if given.get("wakers") else ""
    if name != Timeline.name and "steps" not in name:
        return ""
    if given.get("critical") is not None:
        return "--critical"
    options = [option for key, option in (("steps", "--step"), ("timeline", "--timeline")) if given.get(key)]
    return (options or [f"-o {printable(path)}" for path in given["outputs"] if _is_timeline(path)] or [""])[0]


def _instead(step: NextStep) -> NextStep | None:
    """Step that tells something like it by sums, if it asks for a timeline."""
    from ...converters.model.next_step import WHO_ENDS
    from ...converters.summary.next_command import WHEN

    if step.options != WHEN:
        return None
    return step._replace(tool="trace-wakeup", options=("-d", "5"), tells=WHO_ENDS)


def _is_timeline(path: str) -> bool:
    return ".pftrace" in path
