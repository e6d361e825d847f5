"""Steps that every tracing command takes after parsing its options."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ...converters.writers import output
from ..base.launch import shell_status
from ..base.scope import Scope
from ..engines.protocol import Request
from ..measures.protocol import Measure
from . import options
from .results import Results
from .wider import chosen, with_children

if TYPE_CHECKING:
    from ...converters.model import Profile


def run(given: Mapping[str, Any], scope: Scope, measures: tuple[Measure, ...], *, stem: str, what: str) -> int:
    """Traces ``scope``, prints the summary and writes the files. Returns the exit status: the command's, if it ended.

    ``given``: the values of all options of `options`. ``stem``: the default name of an output. ``what``: the
    measured quantity, as in the title: "Off-CPU time". StallscopeError before the trace if an output cannot be written.
    """
    results = Results.plan(stem, given)
    _check_timeline(results.paths, measures, stem)
    if given.get("every") and any(measure.name == "timeline" for measure in measures):
        raise click.UsageError("--every writes profiles, which have no timeline: leave out one of them")
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
        python_only=given["python"] == "only",
        native_python=given["native_python"],
        every=given.get("every"),
        publish=functools.partial(_publish, results, stem) if results.every else None,
    )
    outcome = engine.trace(request)
    results.write(outcome.profile, outcome.details, with_children(given, scope, stem), chosen(given))
    return shell_status(outcome.status or 0) or int(outcome.failed > 0)


def _publish(results: Results, stem: str, profile: Profile) -> None:
    """Writes an interval. SystemExit, after the cause was printed, if that failed: the trace goes on."""
    try:
        results.publish(profile)
    except StallscopeError as error:
        print(printable(f"trace-{stem}: {error.cause}"), printable(error.remedy), sep="\n", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


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
