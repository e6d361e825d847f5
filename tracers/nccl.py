"""``trace-nccl``: collectives told apart by rank: who came late, who never came, and what it did meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..converters.base import cli
from .command import options
from .command.api_options import collective_options, make_collectives
from .command.engine_options import engine_options
from .command.run import run
from .measures.argument_options import ArgumentOptions
from .measures.calls import Calls
from .measures.commands import NCCL


@cli.command(
    "trace-nccl",
    examples=[
        ("sudo trace-nccl -n train.py -d 10", "the ranks of a job, for 10 seconds"),
        ("sudo trace-nccl -a -d 10", "all ranks on this host: who comes late, and why"),
        ("sudo trace-nccl -d 30 -o nccl.pftrace -- mpirun -n 4 ./solver", "ranks that are started for the trace"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@collective_options
@options.naming_options
@engine_options
@options.output_options
def main(**given: Any) -> int:
    """Joins the collectives of NCCL, RCCL, MPI and Gloo over the ranks of a job on this host: when each rank came to
    each of them, who came last and by how much, and what its thread did before; and, of a job that stands still, which
    rank is in which collective, and which is not.

    Communicators that are made during the trace are known by their ids. Of others, ranks are put together whose calls
    fit: the same operations in the same order, none done before all had begun it. The trace ends after -d SECONDS,
    with the traced processes, or by Ctrl-C."""
    scope, wanted = options.make_scope(given), make_collectives(given)
    kept = ArgumentOptions(limit=given["collective_limit"])
    measures = tuple(replace(each, wanted=wanted, arguments=kept) if isinstance(each, Calls) else each for each in NCCL)
    return run(given, scope, measures, stem="nccl", what="Time of ranks")
