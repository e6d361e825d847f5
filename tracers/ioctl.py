"""``trace-ioctl``: which ioctl calls cost time, on which device, and whether they ran or waited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..converters.base import cli
from .command import options
from .command.call_options import call_options
from .command.engine_options import engine_options
from .command.run import run
from .measures.commands import IOCTL


@cli.command(
    "trace-ioctl",
    examples=[
        ("sudo trace-ioctl -p 4711 -d 10", "the ioctl calls of one process, for 10 seconds"),
        ("sudo trace-ioctl -n train -d 10 -o calls.svg", "of all processes called train, with a flame graph"),
        ("sudo trace-ioctl --json -- ./train --epochs 1", "of a command, as JSON"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@call_options("command and device")
@options.span_options
@options.naming_options
@engine_options
@options.output_options
def main(**given: Any) -> int:
    """Times every ioctl call: on which device, which command, how long, whether it failed, and whether the thread ran,
    was blocked or waited for a core meanwhile.

    The flame graph has the command's name as a frame, and above it the kernel's functions in which the call was
    blocked. The trace ends after -d SECONDS, with the traced processes, or by Ctrl-C."""
    measures = replace(IOCTL, spans=options.make_spans(given)), *options.make_timeline(given)
    return run(given, options.make_scope(given), measures, stem="ioctl", what="Time in ioctl calls")
