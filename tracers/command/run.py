"""Steps that every tracing command takes after parsing its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...converters.base.errors import StallscopeError
from ...converters.writers import output
from ..base.launch import shell_status
from ..base.scope import Scope
from ..engines.protocol import Request
from ..measures.protocol import Measure
from . import options
from .results import Results


def run(given: Mapping[str, Any], scope: Scope, measures: tuple[Measure, ...], *, stem: str, what: str) -> int:
    """Traces ``scope``, prints the summary and writes the files. Returns the exit status: the command's, if it ended.

    ``given``: the values of all options of `options`. ``stem``: the default name of an output. ``what``: the
    measured quantity, as in the title: "Off-CPU time". StallscopeError before the trace if an output cannot be written.
    """
    results = Results.plan(stem, given)
    _check_timeline(results.paths, measures, stem)
    lines = options.make_line_tool(given)
    engine = options.make_engine(given)
    request = Request(
        scope,
        measures,
        what,
        command=given["command"],
        duration=given["duration"],
        wait=not given["no_wait"],
        quiet=results.uses_stdout,
        lines=lines,
        container_pids=given["container_pid"],
    )
    outcome = engine.trace(request)
    results.write(outcome.profile, outcome.details)
    return shell_status(outcome.status or 0)


def _check_timeline(paths: Sequence[str], measures: Sequence[Measure], stem: str) -> None:
    """StallscopeError for an output that shows only a timeline, if none is recorded."""
    if any(measure.name == "timeline" for measure in measures):
        return
    if any(output.format_of(path) == options.PERFETTO for path in paths):
        raise StallscopeError(
            f"a .pftrace is made of the scheduler's events, which trace-{stem} does not record",
            "use `trace-wall -o x.pftrace`, or write .trace.json or .speedscope.json",
            exit_code=2,
        )
