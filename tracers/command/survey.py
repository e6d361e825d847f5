"""Abilities of each engine here, for ``trace-doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...converters.base.errors import StallscopeError
from ..bcc_compiler.compiler import compile_c
from ..engines.ebpf.health import Finding
from ..engines.protocol import Engine
from ..expressions.asked import Asked
from ..expressions.plan import plan
from ..expressions.source import names, source
from ..measures.commands import COMMANDS
from .engines import all_engines


def survey(btf: Path | None) -> Iterator[Finding]:
    """One finding per engine: the commands that it can serve here, or why none."""
    for engine in all_engines(btf):
        yield _finding(engine)


def questions() -> Finding:
    """Whether bcc compiles what trace-func is asked about arguments and results."""
    name = "questions of trace-func"
    try:
        plans = [plan(Asked.parse(where=["arg1 > retval"], hists=["arg2"], prints=["str(arg1)"]).bind())]
        found = compile_c(source(plans), names(0))
    except StallscopeError as error:
        return Finding(name, False, False, error.cause, error.remedy, error.details)
    return Finding(name, True, False, f"bcc {found.version} compiles them")


def _finding(engine: Engine) -> Finding:
    takes = {name: measures for name, measures in COMMANDS.items() if not engine.refusals(measures)}
    missing = {name: engine.missing(measures) for name, measures in takes.items()}
    able = [name for name, error in missing.items() if error is None]
    error = next((error for error in missing.values() if error), None)
    name = f"engine {engine.name}"
    if not able:
        cause, remedy = (error.cause, error.remedy) if error else ("it serves no command here", "")
        return Finding(name, False, False, cause, remedy)
    what = "every command" if len(able) == len(COMMANDS) else ", ".join(able)
    if error is None:
        return Finding(name, True, False, what)
    others = ", ".join(each for each in takes if each not in able)
    return Finding(name, True, False, f"{what}; not {others}: {error.cause}")
