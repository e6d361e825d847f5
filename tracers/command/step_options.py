"""The option that names steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from ...converters.base.errors import StallscopeError
from ..kernel.breakpoints import on_virtual_machine
from ..measures.protocol import Measure
from ..measures.span_options import SpanOptions
from ..measures.steps import PythonSteps, Steps
from ..measures.timeline import Timeline
from ..probe_targets.python_steps import PythonFunction, python_function
from ..probe_targets.steps import StepFunction, StepFunctions
from . import options
from .api_options import find_library

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_FORM = "FILE:FUNCTION"


def step_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--step: what `make_steps` is made from, with the values of `options.timeline_options`."""
    option = click.option(
        "--step",
        "steps",
        multiple=True,
        metavar=_FORM,
        help="A call of this function is a step (repeatable): lib.so:symbol, ./program:symbol, "
        "train.py:function. The summary says how long steps take, what they wait for, and what is between them.",
    )
    accept = click.option(
        "--vm-breakpoints",
        is_flag=True,
        help="Of --step train.py:function: set hardware breakpoints on a virtual machine, too. Some hypervisors lose "
        "the cause of a trap, and the kernel then ends the program with SIGTRAP.",
    )
    return option(accept(function))


def make_steps(given: Mapping[str, Any]) -> tuple[Measure, ...]:
    """The measures of steps and of the timeline that these need; without steps those of `options.make_timeline`.
    Usage errors, and StallscopeError for a library without such a function."""
    timeline = options.make_timeline(given)
    if not given["steps"]:
        return timeline
    if given["every"]:
        raise click.UsageError("--step tells of a whole trace: leave out --every")
    limit, kept = given["max_events"]
    size = int(given["event_mb"]) << 20
    if not timeline:
        timeline = (Timeline(limit, kept, every_switch=given["everything"], buffer_bytes=size),)
    options_of_spans = SpanOptions(limit, kept, 0, size >> 2)
    native, python = _functions(given["steps"])
    measures: list[Measure] = [Steps(native, options_of_spans)] if native.functions else []
    if python and (given["python"] == "no" or given["kernel_only"]):
        raise click.UsageError("--step FILE.py:FUNCTION needs Python functions: leave out --no-python and -K")
    if python and not given["vm_breakpoints"] and on_virtual_machine():
        raise StallscopeError(
            "on a virtual machine, the hardware breakpoints of --step FILE.py:FUNCTION could end the program",
            "--vm-breakpoints accepts that: some hypervisors lose the cause of a few of a million traps, and the "
            "kernel then sends SIGTRAP; --step lib.so:symbol has no such risk",
        )
    if python:
        measures.append(PythonSteps(python, options_of_spans))
    return *measures, *timeline


def _functions(named: Iterable[str]) -> tuple[StepFunctions, list[PythonFunction]]:
    """Functions of libraries and programs, and those of Python."""
    found, python = [], []
    for text in dict.fromkeys(named):
        path, _, symbol = text.rpartition(":")
        if not path or not symbol:
            raise click.BadParameter(f"{text!r} is not {_FORM}, such as libtrain.so:train_step", param_hint="'--step'")
        if function := python_function(path, symbol):
            python.append(function)
            continue
        found.append(StepFunction(find_library(path, re.compile(f"^{re.escape(symbol)}$")), symbol))
    return StepFunctions.of(found), python
