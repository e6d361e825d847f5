"""``trace-convert``: profiles and traces of other tools, and our own, into what viewers read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from . import cli, output
from .errors import StallscopeError
from .options import WriteOptions, value_index
from .readers import detect
from .readers.options import ReadOptions
from .safefile import sudo_owner
from .text import printable
from .units import count, plural

if TYPE_CHECKING:
    from .model import Frame, Kind, Profile


@cli.command(
    "trace-convert",
    examples=[
        ("perf script | trace-convert --pid -o cpu.svg", "a flame graph of a perf recording"),
        ("trace-convert run.pb.gz -o run.folded -o run.speedscope.json", "a saved trace for other viewers"),
        ("trace-convert --merge rank*.folded.gz -o job.svg", "the ranks of a job in one picture"),
    ],
)
@click.argument("inputs", nargs=-1, metavar="[IN]...", type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="PATH",
    help="Write .svg, .folded, .speedscope.json or .pb.gz (repeatable); - (default) is folded text on standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite outputs that exist.")
@click.option("--from", "name", type=click.Choice(detect.formats()), help="The format of the inputs; else detected.")
@click.option("--value", default="", metavar="NAME", help="Which value to draw or print, by its name; else the first.")
@click.option("--title", default="", metavar="TEXT", help="The title of the outputs.")
@click.option("--merge", is_flag=True, help="One root per process name: ranks in one picture.")
@click.option("--per-thread", is_flag=True, help="One root per thread in the outputs, not per process.")
@click.option("--pid", is_flag=True, help="perf: one root per process, not per process name.")
@click.option("--tid", is_flag=True, help="perf: one root per thread.")
@click.option("--kernel", is_flag=True, help="perf: mark kernel functions with _[k] in folded text.")
@click.option("--jit", is_flag=True, help="perf: mark JIT-compiled functions with _[j] in folded text.")
@click.option("--all", "mark_all", is_flag=True, help="perf: --kernel and --jit.")
@click.option("--addrs", is_flag=True, help="perf: name frames without a symbol by their address too.")
@click.option("--event-filter", "event", default="", metavar="EVENT", help="perf: the event to read; else the first.")
def main(**given: Any) -> None:
    """Reads profiles (perf script text, folded stacks, pprof, speedscope JSON; plain, .gz or .zst), adds them up if
    there are several, and writes them in the formats of the outputs' suffixes.

    IN is a file, or - for standard input, which is also read when none is given."""
    inputs = given["inputs"] or _standard_input()
    outputs = given["outputs"] or (output.STDOUT,)
    output.check(outputs, force=given["force"])
    tid = given["tid"]
    options = ReadOptions(given["pid"], tid, given["addrs"], given["event"])
    profiles = [detect.read(path, options, given["name"] or "") for path in inputs]
    marked: set[Kind] = {"kernel"} if given["kernel"] or given["mark_all"] else set()
    if given["jit"] or given["mark_all"]:
        marked.add("jit")
    write_options = WriteOptions(given["value"], given["per_thread"] or tid, given["title"])
    profile = _joined([each for _, each in profiles], merge=given["merge"])
    _report(profile, write_options)
    folded = [path for path in outputs if output.writer_for(path) is output.writer_for(output.STDOUT)]
    if folded and any(name == "perf" for name, _ in profiles):
        plain = [_unmarked(each, marked) if name == "perf" else each for name, each in profiles]
        text = _joined(plain, merge=given["merge"])
    else:
        text = profile
    others = [path for path in outputs if path not in folded]
    for paths, each in ((others, profile), (folded, text)):
        output.write_all(each, paths, write_options, force=given["force"], owner=sudo_owner())


def _standard_input() -> tuple[str, ...]:
    if sys.stdin is None or sys.stdin.isatty():
        raise cli.MissingScope("say what to read: a file, or - for standard input")
    return (output.STDOUT,)


def _joined(profiles: Sequence[Profile], *, merge: bool) -> Profile:
    from .readers.merging import merge as merge_profiles

    profile = merge_profiles(profiles)
    if merge:
        from .transforms import merge_processes

        profile = merge_processes(profile)
    return profile


def _unmarked(profile: Profile, marked: set[Kind]) -> Profile:
    """With the kinds of frames that the folded text of stackcollapse-perf.pl would not tell forgotten."""
    known: dict[Frame, Frame] = {}

    def plain(frame: Frame) -> Frame:
        if frame not in known:
            forget = frame.kind in ("kernel", "jit") and frame.kind not in marked
            known[frame] = frame._replace(kind="native") if forget else frame
        return known[frame]

    samples = [sample._replace(stack=tuple(map(plain, sample.stack))) for sample in profile.samples]
    return replace(profile, samples=samples, timeline=None)


def _report(profile: Profile, options: WriteOptions) -> None:
    """One line on standard error: how much there is, and what was left out."""
    if not profile.samples:
        raise StallscopeError("the input has no samples", "was anything recorded?")
    value_type = profile.value_types[value_index(profile, options)]
    total = count(profile.total(value_type.name))
    skipped = ", ".join(f"{count(number)} {kind}" for kind, number in profile.lost.items() if number)
    line = f"{plural(len(profile.samples), 'distinct stack')}, total {total} {value_type.unit} ({value_type.name})"
    print(f"trace-convert: {printable(line)}; skipped: {printable(skipped) or 'nothing'}", file=sys.stderr)
    for comment in profile.comments:
        if ": expected " in comment:
            print(f"trace-convert: skipped first at {printable(comment)}", file=sys.stderr)
