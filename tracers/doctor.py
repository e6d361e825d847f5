"""``trace-doctor``: what this machine allows, what not, why, and what mends it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..converters import cli
from ..converters.text import printable

if TYPE_CHECKING:
    from .core.health import Finding


@cli.command(
    "trace-doctor",
    examples=[
        ("sudo trace-doctor", "can trace-offcpu run here, and what could be better?"),
        ("sudo trace-doctor --btf /root/vmlinux.btf", "the same, with type information from a file"),
        ("trace-doctor && echo ready", "for scripts: status 0 only if trace-offcpu can run"),
    ],
)
@click.option("--btf", type=click.Path(path_type=Path), help="Type information of this kernel, where it carries none.")
def main(btf: Path | None) -> int:
    """Tries what the tracers need, and says for everything that fails why, and the command that mends it.

    The exit status is 0 if trace-offcpu can run, else 1."""
    from .core.health import check_all

    able = True
    for finding in check_all(btf):
        click.echo(_line(finding))
        able = able and (finding.ok or not finding.needed)
    click.echo("trace-offcpu can run here" if able else "trace-offcpu cannot run here: mend what failed, first to last")
    return 0 if able else 1


def _line(finding: Finding) -> str:
    verdict = "ok  " if finding.ok else "FAIL" if finding.needed else "no  "
    line = f"{verdict}  {finding.name}: {printable(finding.detail)}"
    return line if finding.ok or not finding.remedy else f"{line}\n      mend: {printable(finding.remedy)}"
