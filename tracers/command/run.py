"""Steps that every tracing command takes after parsing its options."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ...converters.writers import output
from ..base import last_line
from ..base.launch import shell_status
from ..base.priority import while_the_user_waits
from ..base.scope import Scope
from ..engines.protocol import Request
from ..holder.client import HOLDER
from ..measures.protocol import Measure
from ..outside.client import CLIENT
from . import options
from .engine_options import make_engine
from .proposing import Proposing, refusal
from .results import Results
from .wider import chosen, with_children

if TYPE_CHECKING:
    from ...converters.model import Profile
    from ..nvml.client import Nvml


class Shown(NamedTuple):
    """Form in which the result of a command is shown."""

    stem: str
    """The default name of an output."""
    what: str
    """The measured quantity, as in the title: "Off-CPU time"."""
    results: type[Results] = Results
    budget: float = 0.0
    """Share of the traced threads' time that the trace may take; 0: any, and it is not measured."""


def run(given: Mapping[str, Any], scope: Scope, measures: tuple[Measure, ...], *, stem: str, what: str) -> int:
    """Traces ``scope``, prints the summary and writes the files. Returns the exit status: the command's, if it ended.

    ``given``: the values of all options of `options`. ``stem`` and ``what``: see `Shown`. StallscopeError before the
    trace if an output cannot be written.
    """
    return traced(given, scope, measures, Shown(stem, what))


def traced(given: Mapping[str, Any], scope: Scope, measures: tuple[Measure, ...], shown: Shown) -> int:
    """Traces as `run` does, and shows the result in another form."""
    stem, what = shown.stem, shown.what
    CLIENT.begin()
    results = shown.results.plan(stem, given)
    _check_timeline(results.paths, measures, stem)
    _check_graph(given, results.paths, measures, stem)
    has_timeline = any(measure.name == "timeline" for measure in measures)
    if given.get("every") and has_timeline and not results.has_timelines:
        raise click.UsageError("--every writes profiles, which have no timeline: leave out one of them")
    lines = options.make_line_tool(given)
    engine = make_engine(given)
    if refused := refusal(engine, measures, given):
        raise refused
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
        kernel_addresses=given["kernel_addresses"],
        every=given.get("every"),
        every_option="--watch" if given.get("watch") else "--live" if given.get("live") else "--every",
        publish=functools.partial(_publish, results, stem) if results.every else None,
        prepare=results.prepare if results.every else None,
        budget=shown.budget,
        writers=results.writers,
        gives_up=True,
    )
    if (done := engine.instead(request, f"trace-{stem}")) is not None:
        click.echo(printable(done))
        return 0
    driver = _ask_driver() if given.get("nvml") else None
    try:
        with last_line.held():
            outcome = engine.trace(request)
        if driver:
            profile = outcome.profile
            profile.gpus = driver.gpus(profile.start_ns, profile.start_ns + profile.duration_ns)
    finally:
        CLIENT.close()
        if driver:
            driver.close()
    _tell_unread(outcome.profile)
    written = _with_path(outcome.profile, given["critical"]) if given.get("critical") is not None else None
    results = replace(results, fit=Proposing(given, stem, engine, outcome.engine).fit)
    with while_the_user_waits():
        results.write(outcome.profile, outcome.details, with_children(given, scope, stem), chosen(given), written)
    return shell_status(outcome.status or 0) or int(outcome.failed > 0)


def _ask_driver() -> Nvml:
    from ..nvml.client import Nvml

    return Nvml.begin()


def _with_path(profile: Profile, tid: int) -> Profile:
    """Adds the critical path of a thread to the profile; returns what the outputs show, the path itself."""
    from ...converters.transforms.critical_path import critical_path, path_profile, thread_of

    assert profile.scheduling is not None, "events were recorded"
    profile.critical = critical_path(profile.scheduling, thread_of(profile.scheduling, tid))
    return path_profile(profile, profile.critical)


def _tell_unread(profile: Profile) -> None:
    profile.comments += [remark for remark in (*CLIENT.remarks(), *HOLDER.remarks()) if remark not in profile.comments]


def _publish(results: Results, stem: str, profile: Profile) -> None:
    """Writes an interval. SystemExit, after the cause was printed, if that failed: the trace goes on."""
    _tell_unread(profile)
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


def _check_graph(given: Mapping[str, Any], paths: Sequence[str], measures: Sequence[Measure], stem: str) -> None:
    """Usage errors for a wait-for graph that could not be made."""
    graphs = [path for path in paths if output.is_graph(path)]
    if not graphs and not given.get("graph"):
        return
    if not any(measure.name == "wakeup" for measure in measures):
        raise StallscopeError(
            f"a wait-for graph is made of wake-ups, which trace-{stem} does not record",
            "use trace-wakeup, or trace-offcpu or trace-wall with --wakers",
            exit_code=2,
        )
    if graphs and given["merge"]:
        raise click.UsageError("--merge puts processes together, a wait-for graph shows each: use --graph for it")
    if given.get("graph") and given.get("every"):
        raise click.UsageError("--graph is one picture: with --every, give -o a .dot, .graphml or .graph.json")
