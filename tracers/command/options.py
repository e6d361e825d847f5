"""Options shared by the tracers: the scope, the duration, and the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...converters.base import cli
from ...converters.base.errors import StallscopeError
from ...converters.writers.output import format_of, has_times
from ..base.scope import Scope
from ..measures.offcpu import FOREVER
from ..measures.span_options import SpanOptions
from ..measures.timeline import LIMIT, Timeline

if TYPE_CHECKING:
    from ..symbols.lines import LineTool

if TYPE_CHECKING:
    _Type = click.ParamType[tuple[int, str]]
else:
    _Type = click.ParamType

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PERFETTO = "perfetto"
"""The format that requires a timeline."""
EXIT_STATUS = (
    "Exit status: that of COMMAND if it ended by itself, 128 + N if signal N ended it; else 0. Of this program's own: "
    "1 for a failure and 2 for wrong usage, both with the cause on standard error; 130 when Ctrl-C ended it without "
    "results, 141 when nobody reads standard output."
)
"""Paragraph for --help."""
MOST = 100_000_000
"""Maximum number of events of a timeline, 64 bytes each."""


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """-p -t -n --cgroup -a --children --no-children and COMMAND: arguments of `make_scope` and ``command``."""
    options: list[Decorator] = [
        cli.ids_option("-p", "--pid", "pids", help="Trace these processes."),
        cli.ids_option("-t", "--tid", "tids", help="Trace these threads."),
        click.option(
            "-n", "--name", metavar="REGEX", help="Trace processes by name or command line, including later ones."
        ),
        click.option("--cgroup", type=click.Path(path_type=Path), help="Trace the processes of a control group."),
        click.option("-a", "--all", "everything", is_flag=True, help="Trace the whole host, but not this command."),
        click.option("--children", is_flag=True, help="With -p, -n: also trace what these processes forked before."),
        click.option("--no-children", is_flag=True, help="Do not trace processes that traced ones fork."),
        cli.seconds_option(
            "-d", "--duration", help="Stop after this many seconds. Default: on Ctrl-C, or when the target ends."
        ),
        click.argument("command", nargs=-1, type=click.UNPROCESSED),
    ]
    return apply(options, function)


def make_scope(given: Mapping[str, Any]) -> Scope:
    """The scope given with `scope_options`; usage errors if it is missing or contradictory."""
    pids, tids, name, cgroup = given["pids"], given["tids"], given["name"], given["cgroup"]
    everything, command = given["everything"], given["command"]
    if not (pids or tids or name or cgroup or everything or command):
        raise cli.MissingScope("say what to trace: -p PID, -t TID, -n REGEX, --cgroup PATH, -a, or -- COMMAND")
    if command and (pids or tids or name or cgroup or everything):
        raise click.UsageError("give either a COMMAND or processes that run already, not both")
    if everything and (pids or tids or name or cgroup):
        raise click.UsageError("-a is everything: leave out -p, -t, -n and --cgroup, or leave out -a")
    if given["children"] and (given["no_children"] or not (pids or name)):
        raise click.UsageError(
            "--children adds to -p PID and -n REGEX the processes that these have forked before: give it with them only"
        )
    try:
        pattern = re.compile(name) if name else None
    except (re.error, OverflowError, RecursionError) as error:
        raise click.BadParameter(f"{name!r} is not a regular expression: {error}", param_hint="'-n'") from None
    children = {"children": not given["no_children"], "descendants": given["children"]}
    return Scope(list(pids), list(tids), pattern, cgroup, everything, **children)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """-o --every --force --mode --per-thread --merge --json -v: what `results.Results` is made from."""
    options: list[Decorator] = [
        click.option(
            "-o",
            "--output",
            "outputs",
            multiple=True,
            metavar="PATH",
            help="Write .svg, .html, .folded, .speedscope.json, .trace.json, .pftrace, .md or .pb.gz, with wakers also "
            ".dot, .graphml or .graph.json (repeatable); - is folded text on standard output. Default: an SVG in the "
            "current folder.",
        ),
        click.option(
            "--every",
            type=Duration(),
            metavar="DURATION",
            help="Write a profile per interval of so many seconds (60s, 5m, 1h), without a gap: give -o a name with a "
            "time in it, as date(1) takes it: -o 'host-%H%M%S.pb.gz'. Old files stay; remove them yourself. "
            "Without -o, commands that time or count calls print the table of each interval.",
        ),
        click.option("--force", is_flag=True, help="Overwrite outputs that exist."),
        cli.mode_option,
        click.option("--per-thread", is_flag=True, help="One root per thread in the outputs, not one per process."),
        click.option("--merge", is_flag=True, help="One root per process name in the outputs: ranks in one picture."),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            help="Print all rows of the summary on a terminal, too, and on standard error how the stacks were taken.",
        ),
    ]
    return apply(options, function)


def timeline_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--timeline --max-events --event-buffer: what `make_timeline` is made from."""
    options: list[Decorator] = [
        click.option(
            "--timeline",
            is_flag=True,
            help="Record switches and wake-ups one by one, so that .trace.json and .speedscope.json show when "
            "something happened; .pftrace always does.",
        ),
        click.option(
            "--max-events",
            type=_MaxEvents(),
            metavar=_MaxEvents.name,
            default=f"{LIMIT}",
            show_default=True,
            help="Maximum number of events in a timeline: it keeps the newest, or the first with N,first.",
        ),
        click.option(
            "--event-buffer",
            "event_mb",
            type=click.Choice(["16", "32", "64", "128", "256", "512", "1024"]),
            default="64",
            show_default=True,
            help="MB of kernel memory for events of a timeline that were not read yet.",
        ),
    ]
    return apply(options, function)


if TYPE_CHECKING:
    _Nanoseconds = click.ParamType[int]
else:
    _Nanoseconds = click.ParamType


if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType


class Duration(_Seconds):
    """``60``, ``60s``, ``5m`` or ``1h``: a time in seconds, from 1 to a day."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Usage error for anything else."""
        match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(s|m|h)?", str(value))
        seconds = float(match[1]) * {"m": 60, "h": 3600}.get(match[2], 1) if match else 0.0
        if not 1 <= seconds <= 86_400:
            self.fail(f"{value!r} is not a time from 1s to 24h, such as 60s, 5m or 1h", param, ctx)
        return seconds


class _MaxEvents(_Type):
    """``N`` or ``N,first`` or ``N,newest``: how many, and which."""

    name = "N[,first]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        """Usage error for anything else."""
        match = re.fullmatch(r"([0-9]{1,9})(?:,(first|newest))?", str(value))
        if not match or not 0 < int(match[1]) <= MOST:
            self.fail(f"{value!r} is not a number from 1 to {MOST}, or one with ',first'", param, ctx)
        return int(match[1]), match[2] or "newest"


def make_timeline(given: Mapping[str, Any]) -> tuple[Timeline, ...]:
    """The measure, if an output or an option needs it. Usage errors if it would be useless."""
    shown = [path for path in given["outputs"] if has_times(path)]
    if not given["timeline"] and not any(format_of(path) == PERFETTO for path in shown):
        return ()
    if not shown:
        raise click.UsageError("--timeline shows in no output: add -o x.pftrace, -o x.trace.json or x.speedscope.json")
    if given["merge"]:
        raise click.UsageError("--merge puts processes together, a timeline shows each: leave out one of them")
    limit, kept = given["max_events"]
    size = int(given["event_mb"]) << 20
    return (Timeline(limit, kept, every_switch=given["everything"], buffer_bytes=size),)


def span_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`timeline_options` and --span-over, for commands that time calls: what `make_spans` is made from."""
    option = click.option(
        "--span-over",
        type=Length(),
        metavar=Length.name,
        default="0us",
        show_default=True,
        help="Calls that are not longer have no span on a timeline, such as 10us or 1ms.",
    )
    return timeline_options(option(function))


class Length(_Nanoseconds):
    """``500ns``, ``10us`` or ``1ms``."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """ns. Usage error for anything else."""
        match = re.fullmatch(r"([0-9]{1,9})(ns|us|ms|s)", str(value))
        if not match:
            self.fail(f"{value!r} is not a time such as 10us or 1ms", param, ctx)
        return int(match[1]) * {"ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}[match[2]]


def make_spans(given: Mapping[str, Any]) -> SpanOptions | None:
    """Options for spans of calls, if a timeline is recorded. Usage errors like `make_timeline`."""
    if not make_timeline(given):
        return None
    limit, kept = given["max_events"]
    return SpanOptions(limit, kept, given["span_over"], int(given["event_mb"]) << 18)


def wakers_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--wakers: ``wakers``."""
    option = click.option(
        "--wakers",
        is_flag=True,
        help="Also record who ends each wait: the summary says 'woken by', --value blocked draws.",
    )
    return option(function)


def frequency_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """-F: ``frequency``."""
    option = click.option(
        "-F",
        "--frequency",
        type=click.IntRange(1, 10_000),
        default=99,
        show_default=True,
        metavar="HZ",
        help="Samples per second and core.",
    )
    return option(function)


def naming_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--lines --container-pid --[no-]python --python-only --native-python --kernel-addresses: how what is seen is
    named."""
    options: list[Decorator] = [
        click.option(
            "--lines",
            is_flag=True,
            help="Add source lines of native code, and inlined functions as frames, if there is debug information. "
            "This takes time after the trace.",
        ),
        click.option(
            "--container-pid",
            is_flag=True,
            help="Also show the pid inside the container: 'worker (12 inside)'. -p takes pids of the host.",
        ),
        click.option(
            "--python",
            "python",
            flag_value="yes",
            default="yes",
            help="Show Python functions in the stacks of processes with a CPython 3.8 to 3.14. This is the default.",
        ),
        click.option(
            "--no-python",
            "python",
            flag_value="no",
            help="Show only native functions: switches of Python's threads then take 1 to 4 µs less.",
        ),
        click.option("--python-only", "python", flag_value="only", help="Leave out native functions beside Python's."),
        click.option("--native-python", is_flag=True, help="--python, with functions of the interpreter itself."),
        click.option(
            "--kernel-addresses",
            is_flag=True,
            help="Tell addresses of the kernel's code and locks as they are, which others must not know. Default: "
            "relative to the kernel or its module, and numbers of locks.",
        ),
    ]
    return apply(options, function)


def make_line_tool(given: Mapping[str, Any]) -> LineTool | None:
    """The tool for --lines. StallscopeError if there is none: better now than after the trace."""
    if given["merge"] and given["container_pid"]:
        raise click.UsageError("--merge puts processes of one name together, --container-pid tells them apart")
    if not given["lines"]:
        return None
    from ..symbols.lines import LineTool

    return LineTool.find()


def microseconds(value: float | None, default: int) -> int:
    """An option in microseconds, converted to ns. StallscopeError below 0."""
    if value is None:
        return default
    if not 0 <= value < 1e15:
        raise StallscopeError(f"{value:g} us is not a waiting time", "give microseconds, 0 or more", exit_code=2)
    return round(value * 1000)


def waits_between(given: Mapping[str, Any]) -> tuple[int, int]:
    """--min-block and --max-block, in ns. Usage errors if nothing is between them."""
    shortest, longest = microseconds(given["min_block"], 0), microseconds(given["max_block"], FOREVER)
    if shortest > longest:
        raise click.UsageError("--min-block is above --max-block: no wait is that long and that short")
    return shortest, longest


def apply(options: list[Decorator], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with these options, in their order in --help."""
    for option in reversed(options):
        function = option(function)
    return function
