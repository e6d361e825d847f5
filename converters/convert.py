"""``trace-convert``: profiles and traces of other tools, and our own, into what viewers read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from . import graph_options, picture_options, transform_options
from .base import cli, memory
from .base.collection import no_collection
from .base.errors import StallscopeError
from .base.rights import sudo_owner
from .base.text import printable
from .base.units import BILLIONTHS, count, counted, plural
from .model.remarks import AddedUp, FirstSkipped, Kept, RecordingLeftOut, side_of, without_side
from .phrases.remarks import word
from .readers import detect, parallel
from .readers.base.options import ReadOptions
from .readers.registry import READERS
from .transforms import diff, labels
from .transforms.readable import demangled
from .transforms.weight import value_name
from .writers import output
from .writers.base.options import NEGATIVE, WriteOptions, missing, value_index
from .writers.table.rows import FORMS

if TYPE_CHECKING:
    from .model import Kind, Profile

_THREAD = frozenset({"thread", "tid"})
"""Labels that identify threads."""


@cli.command(
    "trace-convert",
    examples=[
        ("perf script | trace-convert --pid -o cpu.svg", "a flame graph of a perf recording"),
        ("trace-convert --merge --focus topk rank*.pb.gz -o job.svg", "the ranks of a job, only what calls topk"),
        ("trace-convert --answer offcpu.pb.gz", "the answer of a trace again, on any machine"),
    ],
    groups={
        "Input": [
            "--from", "--event-filter", "--pid", "--tid", "--addrs", "--inline", "--context", "--demangle", "--jobs",
        ],
        **transform_options.GROUPS,
        "Comparison": ["--diff", "--normalize"],
        "Answer": ["--answer", "--json", "--whole"],
        "Picture (.svg and .html; svg: only that)": picture_options.GROUP,
        "Output": [
            "--output", "--force", "--mode", "--to", "--form", "--rows", "--value", "--title", "--root", "--per-thread",
            "--kernel", "--jit", "--all", "--anonymize", "--keep-functions", *graph_options.GROUP,
        ],
    },
)  # fmt: skip
@click.argument("inputs", nargs=-1, metavar="[IN]...", type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="PATH",
    help=f"Write {', '.join(output.suffixes())} (repeatable); - (default) is standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite outputs that exist.")
@cli.mode_option
@graph_options.options
@graph_options.critical_option
@click.option(
    "--from",
    "name",
    type=click.Choice(detect.formats()),
    metavar="NAME",
    help=f"The format of the inputs. Default: detected. One of {', '.join(detect.formats())}.",
)
@click.option(
    "--to",
    type=click.Choice(output.formats()),
    metavar="FORMAT",
    help=f"The format of - and of outputs with another suffix: {', '.join(output.formats())}. "
    "Default: folded; on a terminal, without -o, table.",
)
@click.option("--form", type=click.Choice(FORMS), help="table, markdown: print only this table.")
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=WriteOptions.rows,
    metavar="N",
    help="Maximum number of rows of a table; 40.",
)
@click.option(
    "--value", default="", metavar="NAME", help="The value to show: a name, time, or count. Default: the first."
)
@click.option("--title", default="", metavar="TEXT", help="The title of the outputs.")
@click.option(
    "--root", metavar="LABEL,…", help="Labels that become the roots of the stacks: process, thread, state, …, or none."
)
@click.option("--per-thread", is_flag=True, help="One root per thread in the outputs, not one per process.")
@click.option("--diff", "bases", multiple=True, metavar="BASE", help="Compare IN with BASE (repeatable: their sum).")
@click.option("--normalize", is_flag=True, help="With --diff: show shares of the total of each side.")
@click.option(
    "--answer",
    is_flag=True,
    help="Print the answer of a capture (.pb.gz) and its tables, as the trace did. Writes only the outputs of -o.",
)
@click.option("--json", "as_json", is_flag=True, help="With --answer: as JSON.")
@click.option("--whole", is_flag=True, help="With --answer: all rows of the tables, as -v of the trace.")
@transform_options.options
@picture_options.options
@click.option(
    "--anonymize",
    is_flag=True,
    help="Replace names of hosts, processes, threads, files, scripts, devices and private functions by pseudonyms.",
)
@click.option("--keep-functions", is_flag=True, help="With --anonymize: functions keep their names.")
@click.option("--pid", is_flag=True, help="perf, gdb, bpftrace, bcc, dtrace: one root per process, not one per name.")
@click.option("--tid", is_flag=True, help="perf, gdb, bpftrace: one root per thread.")
@click.option(
    "--kernel", is_flag=True, help="folded from perf, stap, bpftrace, dtrace: mark kernel functions with _[k]."
)
@click.option("--jit", is_flag=True, help="folded from perf: mark JIT-compiled functions with _[j].")
@click.option("--all", "mark_all", is_flag=True, help="Same as --kernel --jit.")
@click.option("--addrs", is_flag=True, help="Add the address to the name of a frame without a symbol.")
@click.option("--inline", is_flag=True, help="perf: also show inlined functions, found by addr2line.")
@click.option("--context", is_flag=True, help="perf: with --inline, add the source file and line to the name.")
@click.option(
    "--demangle/--raw-names",
    "demangle",
    default=True,
    help="Make names of C++ and Rust readable (default), or leave them.",
)
@click.option("--jobs", type=click.IntRange(1, 256), default=1, metavar="N", help="Read large inputs with N processes.")
@click.option(
    "--event-filter",
    "event",
    default="",
    metavar="EVENT",
    help="perf: the event; bpftrace: the map. Default: the first.",
)
def main(**given: Any) -> None:
    """Reads profiles (plain, .gz or .zst), adds them up if there are several, and writes them in the formats of the
    outputs' suffixes.

    IN is a file, or - for standard input, which is also read when none is given.

    Selections and transforms change the profile before it is written, in the order of this list; --diff compares the
    results. A REGEX is a regular expression of Python that matches any part of a name; ^topk$ matches the whole name.
    "perf", "gdb" and so on are formats of the inputs.
    """
    _choose_table(given)
    graph_options.check(given)
    inputs = given["inputs"] or _standard_input(comparing=bool(given["bases"]))
    outputs = given["outputs"] or (() if given["graph"] or given["answer"] else (output.STDOUT,))
    output.check(outputs, force=given["force"], format_name=given["to"] or "")
    _check(given)
    steps = transform_options.plan(given)
    # The answer tells whose waits they are: it is that of the single processes.
    later = [step for step in steps if given["answer"] and step.told == transform_options.MERGE]
    steps = [step for step in steps if step not in later]
    with memory.limited(), no_collection():
        profile, options = _converted(inputs, steps, given)
        if given["anonymize"]:
            from .anonymous import anonymised

            shown = value_index(profile, options)
            profile = anonymised(profile, keep_functions=given["keep_functions"])
            options = replace(options, value=profile.value_types[shown].name)
        if given["answer"]:
            _answer(profile, given, is_changed=bool(steps) or len(inputs) > 1)
        if later:
            profile = transform_options.apply(profile, later, options.value)
        if outputs or not given["answer"]:
            _report(profile, options)
        if any(output.format_of(path, given["to"] or "") != "pprof" for path in outputs):
            _check_result(profile, options)
        also = graph_options.writing(profile, options, given)
        writing = output.writing(profile, outputs, options, force=given["force"], owner=sudo_owner())
        output.put_all((*writing, *also))


def _answer(profile: Profile, given: Mapping[str, Any], *, is_changed: bool) -> None:
    """Prints the answer. StallscopeError if the profile has none."""
    from .summary.showing import answer_of, show

    if is_changed:
        profile = replace(profile, display=None, answered=None)  # it was shown for another profile
    stream = sys.stderr if any(map(output.is_stdout, given["outputs"])) else sys.stdout
    if stream is not None:
        show(answer_of(profile.answered or profile), stream, as_json=given["as_json"], whole=given["whole"])


def _choose_table(given: dict[str, Any]) -> None:
    """Standard output gets a table if a form of it is requested, or if it is a terminal and no output is named."""
    if given["answer"] or given["to"] or any(not output.is_stdout(path) for path in given["outputs"]):
        return
    if given["form"]:
        given["to"] = "table"
    elif not given["outputs"] and sys.stdout is not None and sys.stdout.isatty():
        given["to"], given["form"] = "table", "functions"


def _converted(
    inputs: Sequence[str], steps: Sequence[transform_options.Step], given: Mapping[str, Any]
) -> tuple[Profile, WriteOptions]:
    """The profile to write, and the options for its writers."""
    formats, after = _read(inputs, given)
    if given["bases"]:
        shown = given["value"] if given["value"] in (diff.AFTER, diff.BEFORE) else ""
        value = "" if shown else given["value"]
        base_formats, before = _read(given["bases"], given)
        formats |= base_formats
        base_name, name = diff.compared(before, after, value)
        before, after = transform_options.apply(before, steps, base_name), transform_options.apply(after, steps, name)
        profile = diff.differential(before, after, value, normalise=given["normalize"])
    else:
        shown = value_name(after, given["value"])
        profile = transform_options.apply(after, steps, shown)
    return profile, _write_options(given, profile, shown, formats)


def _standard_input(*, comparing: bool) -> tuple[str, ...]:
    missing = sys.stdin is None or sys.stdin.isatty()
    if comparing and (missing or stat.S_ISCHR(os.fstat(0).st_mode)):  # /dev/null is not a profile
        cause = "--diff needs IN, the profile after"
        raise StallscopeError(cause, "name it: --diff BEFORE AFTER; - is standard input", exit_code=2)
    if missing:
        raise cli.MissingScope("say what to read: a file, or - for standard input")
    return (output.STDOUT,)


def _check(given: Mapping[str, Any]) -> None:
    """StallscopeError (exit code 2) for incompatible options."""
    _check_answer(given)
    if given["normalize"] and not given["bases"]:
        raise StallscopeError("--normalize scales the base of --diff", "name it: --diff BASE", exit_code=2)
    if given["root"] is not None and given["per_thread"]:
        raise StallscopeError("--root and --per-thread exclude each other", "use --root process,thread", exit_code=2)
    if given["callers"] and given["reverse"]:
        cause = "--callers and --reverse both turn the stacks over"
        raise StallscopeError(cause, "use --callers for every output, --reverse for pictures only", exit_code=2)
    if given["flamechart"] and not _writes(given, "svg"):
        raise StallscopeError("a flame chart is an SVG", "write one: -o NAME.svg", exit_code=2)
    if _writes(given, "perfetto"):
        cause = "a .pftrace is made of the scheduler's events, which no input has"
        raise StallscopeError(cause, "write NAME.trace.json, which ui.perfetto.dev opens, too", exit_code=2)
    if given["keep_functions"] and not given["anonymize"]:
        raise StallscopeError("--keep-functions is an exception from --anonymize", "give both", exit_code=2)
    if given["anonymize"] and given["flamechart"]:
        cause = "an anonymised profile has no single calls, which a flame chart shows"
        raise StallscopeError(cause, "leave out --flamechart", exit_code=2)
    if given["context"] and not given["inline"]:
        raise StallscopeError("--context says more of what --inline names", "use --inline --context", exit_code=2)
    if output.STDOUT in given["bases"] and (output.STDOUT in given["inputs"] or not given["inputs"]):
        raise StallscopeError("standard input cannot be both sides", "save one of them as a file", exit_code=2)


def _check_answer(given: Mapping[str, Any]) -> None:
    if (given["as_json"] or given["whole"]) and not given["answer"]:
        raise StallscopeError("--json and --whole say how an answer is printed", "use them with --answer", exit_code=2)
    if given["answer"] and given["bases"]:
        raise StallscopeError("a comparison has no answer", "leave out --answer or --diff", exit_code=2)


def _read(paths: Sequence[str], given: Mapping[str, Any]) -> tuple[set[str], Profile]:
    """The formats of the inputs, and all of them as one profile."""
    from .readers.inputs import INPUT, joined

    options = ReadOptions(
        pid=given["pid"],
        tid=given["tid"] or given["per_thread"] or given["form"] == "threads",
        addrs=given["addrs"],
        event=given["event"],
        inline=given["inline"],
        context=given["context"],
        timeline=given["flamechart"] or _writes(given, "speedscope", "chrome"),
        in_order=given["flamechart"],
    )
    jobs = 1 if given["flamechart"] else given["jobs"]
    profiles = parallel.read_all(paths, options, given["name"] or "", jobs=jobs)
    formats = {name for name, _ in profiles}
    label = INPUT in (given["root"] or "").split(",") or transform_options.asks_for(given, INPUT)
    value = "" if given["bases"] else given["value"]
    profile = joined(paths, profiles, value, label=label, meant=given["merge"])
    return formats, demangled(profile, arguments=not any(READERS[name].is_bare for name in formats)) if given[
        "demangle"
    ] else profile


def _writes(given: Mapping[str, Any], *formats: str) -> bool:
    """Whether one of these formats is written."""
    return any(output.format_of(path, given["to"] or "") in formats for path in given["outputs"] or (output.STDOUT,))


def _write_options(given: Mapping[str, Any], profile: Profile, value: str, formats: set[str]) -> WriteOptions:
    perf = any(READERS[name].is_unmarked for name in formats)
    roots = None
    if given["root"] is not None:
        roots = tuple(dict.fromkeys(filter(None, given["root"].split(","))))
        roots = () if roots == ("none",) else roots
        if profile.samples:
            labels.check_roots(profile, roots)
    marked: set[Kind] = {"kernel"} if given["kernel"] or given["mark_all"] or not perf else set()
    if given["jit"] or given["mark_all"] or not perf:
        marked.add("jit")
    return WriteOptions(
        value=value,
        per_thread=given["per_thread"] or given["tid"],
        roots=roots,
        marks=frozenset(marked),
        microseconds=formats != {"perf"},
        title=given["title"],
        format=given["to"] or "",
        form=given["form"] or "",
        rows=given["rows"],
        by=given["by"],
        mode=given["mode"],
        idle=given["idle"],
        **picture_options.wanted(given),
    )


def _check_result(profile: Profile, options: WriteOptions) -> None:
    """StallscopeError when there is nothing to show, so that no empty file looks like a result."""
    column = value_index(profile, options)
    columns = (0, 1) if diff.is_differential(profile) else (column,)
    if any(sample.values[i] for sample in profile.samples for i in columns):
        return
    others = [
        value_type.name
        for i, value_type in enumerate(profile.value_types)
        if value_type.aggregate == "sum" and any(sample.values[i] for sample in profile.samples)
    ]
    remedy = f"choose another value: --value {' or '.join(others)}" if others else "was anything recorded?"
    raise StallscopeError(f"every {profile.value_types[column].name} is 0: there is nothing to show", remedy)


def _report(profile: Profile, options: WriteOptions) -> None:
    """Prints on stderr how much there is, and what was left out."""
    filtered = [word(comment) for comment in profile.comments if isinstance(without_side(comment), Kept)]
    told = [
        word(comment) for comment in profile.comments if isinstance(without_side(comment), RecordingLeftOut | AddedUp)
    ]
    skipped = ", ".join(counted(number, kind) for kind, number in profile.lost.items() if number)
    if not profile.samples:
        if filtered:
            raise StallscopeError(f"no sample is left: {'; '.join(filtered)}", "(?i) before it ignores capitals")
        left_out = f"; skipped: {skipped}" if skipped else ""
        raise StallscopeError(f"the input has no samples{left_out}", "was anything recorded, and is it the format?")
    value_type = profile.value_types[value_index(profile, options)]
    total = count(profile.total(value_type.name))
    line = plural(len(profile.samples), "distinct stack")
    if value_type.unit == BILLIONTHS:
        line += ", as shares of their sides"
    else:
        line += f", total {total} {value_type.unit} ({value_type.name})"
    if diff.is_differential(profile) and value_type.unit != BILLIONTHS:
        other = diff.AFTER if value_type.name == diff.BEFORE else diff.BEFORE
        line += f", {count(profile.total(other))} ({other})"
    print(f"trace-convert: {printable(line)}; skipped: {printable(skipped) or 'nothing'}", file=sys.stderr)
    for comment in profile.comments:
        skipped_first = without_side(comment)
        if isinstance(skipped_first, FirstSkipped):
            side, place = side_of(comment), printable(word(skipped_first))
            print(f"trace-convert: skipped first{side and f' ({side})'} at {place}", file=sys.stderr)
    if negative := missing(profile, options).get(NEGATIVE, 0):
        print(
            f"trace-convert: {counted(negative, NEGATIVE)}: only folded text and pprof can tell them", file=sys.stderr
        )
    if options.per_thread and not any(key in _THREAD for sample in profile.samples for key, _ in sample.labels):
        hint = "the input names no threads: one root per process; perf script -F +tid records them"
        print(f"trace-convert: {hint}", file=sys.stderr)
    for text in (*told, *filtered):
        print(f"trace-convert: {printable(text)}", file=sys.stderr)
