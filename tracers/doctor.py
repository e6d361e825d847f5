"""``trace-doctor``: what this machine allows and what not, why, and how to fix it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..converters.base import cli
from ..converters.base.text import printable
from .measures.commands import COMMANDS

if TYPE_CHECKING:
    from .engines.ebpf.health import Finding


@cli.command(
    "trace-doctor",
    examples=[
        ("sudo trace-doctor", "which commands can run here, and what could be better?"),
        ("trace-doctor && echo ready", "for scripts: status 0 only if trace-offcpu can run"),
        ("sudo trace-doctor --prepare 4711", "compile what a first trace of process 4711 would wait for"),
    ],
)
@click.option(
    "--btf", type=click.Path(path_type=Path), help="Type information (BTF) of this kernel, if it has none itself."
)
@click.option("-v", "--verbose", is_flag=True, help="Print what the verifier says when it refuses a program.")
@click.option(
    "--prepare",
    is_flag=True,
    help="Instead, compile unwind tables for later traces: for the given processes, programs, libraries or folders, or "
    "for all running processes.",
)
@click.argument("what", nargs=-1, metavar="[PID|FILE]...")
def main(btf: Path | None, verbose: bool, prepare: bool, what: tuple[str, ...]) -> int:
    """Tries everything that the tracers need. For each failure it gives the cause, and the command that fixes it.

    The exit status is 0 if trace-offcpu can run (with --prepare: if the tables exist now), else 1."""
    if prepare:
        return _prepare(what)
    if what:
        raise click.UsageError(f"what is {what[0]!r} for? PID and FILE go with --prepare")
    from .command import survey
    from .engines.ebpf.health import check_all

    able, cannot = True, set[str]()
    for finding in check_all(btf):
        click.echo(_line(finding))
        for line in finding.more.splitlines() if verbose else ():
            click.echo(f"      {printable(line)}")
        able = able and (finding.ok or not finding.needed)
        cannot.update(() if finding.ok else finding.lacking)
    engines = list(survey.survey(btf))
    for finding in engines:
        click.echo(_line(finding))
    click.echo(_line(survey.questions()))
    click.echo(_verdict(able, cannot, [finding for finding in engines if finding.ok]))
    return 0 if able else 1


def _verdict(able: bool, cannot: set[str], engines: Sequence[Finding]) -> str:
    """``engines``: those that serve a command; the first words of their details say which."""
    if not able:
        with_which = "with the engine libbpf, " if engines else ""
        others = [f"with {finding.name} {finding.detail.partition(';')[0]} can" for finding in engines]
        first = f"{with_which}{_listed([*COMMANDS])} cannot run here: mend what failed, first to last"
        return printable("; ".join([first, *others]))
    can = _listed([name for name in COMMANDS if name not in cannot])
    without = _listed([name for name in COMMANDS if name in cannot])
    return f"{can} can run here" + (f", {without} cannot" if without else "")


def _listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _prepare(what: tuple[str, ...]) -> int:
    from .base.progress import Progress
    from .engines.ebpf import ahead
    from .engines.ebpf.engine import get_ready

    get_ready()
    with Progress() as progress:
        prepared = ahead.prepare(what, progress.show)
    click.echo(prepared.summary())
    for reason, count in sorted(prepared.without.items()):
        click.echo(f"without a table: {count:,} ({printable(reason)})")
    prepared.check()
    return 0


def _line(finding: Finding) -> str:
    verdict = "ok  " if finding.ok else "FAIL" if finding.needed else "no  "
    line = f"{verdict}  {finding.name}: {printable(finding.detail)}"
    return line if finding.ok or not finding.remedy else f"{line}\n      mend: {printable(finding.remedy)}"
