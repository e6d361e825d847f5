"""``trace-cuda``: which calls of CUDA's libraries, or of others, cost time, and whether they ran or waited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..converters.base import cli
from .command import options
from .command.api_options import api_options, make_wanted
from .command.call_options import call_options
from .command.engine_options import engine_options
from .command.run import run
from .measures.commands import CUDA


@cli.command(
    "trace-cuda",
    examples=[
        ("sudo trace-cuda -p 4711 -d 10", "CUDA's calls of one process, for 10 seconds"),
        ("sudo trace-cuda -n train -d 10 --launches -o calls.svg", "of all processes called train, also launches"),
        ("sudo trace-cuda --lib libnccl.so.2 --sym '^nccl' -p 4711", "those of NCCL, too"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@api_options
@call_options("function")
@options.span_options
@options.naming_options
@engine_options
@options.output_options
def main(**given: Any) -> int:
    """Times calls of CUDA's runtime and driver, without a change to the programs: which function, how long, whether it
    failed, which ioctls it made, and whether the thread ran, was blocked or waited for a core meanwhile.

    Functions are found in the libraries that processes have loaded, or load later, and in programs that the runtime
    is linked into. The flame graph shows where each call came from, and above it where it was blocked. The trace ends
    after -d SECONDS, with the traced processes, or by Ctrl-C."""
    scope, wanted = options.make_scope(given), make_wanted(given)
    spans = options.make_spans(given)
    ioctls, calls = CUDA
    measures = replace(ioctls, spans=spans), replace(calls, wanted=wanted, spans=spans), *options.make_timeline(given)
    return run(given, scope, measures, stem="cuda", what="Time in calls")
