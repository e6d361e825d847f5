"""Options that ask about calls: --arg --where --hist --sum --count-by --print."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ..expressions.asked import Asked, Fault

if TYPE_CHECKING:
    from ..measures.questions import Line

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_BEFORE, _AFTER = 40, 30
"""Characters of an expression that are shown before a fault, and from there on."""
_CLEAR = "\r\x1b[K"


def question_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that `make_asked` is made from."""
    options = (
        ("--arg", "NAME:TYPE=EXPR", "Name a value, such as n:u64=arg2 or path:str=arg1, for the following options."),
        ("--where", "EXPR", "Time and count only calls of which this is true, such as 'n > 4096 && pid == 12'."),
        ("--hist", "EXPR", "Print how the values are distributed, of an argument or of retval."),
        ("--sum", "EXPR", "Add the values."),
        ("--count-by", "EXPR", "Print how often each value was there, also of strings, such as 'str(arg1)'."),
        (
            "--print",
            "'\"FORMAT\", EXPR...'",
            "Print a line per call, such as '\"%s %d\", str(arg1), n'.",
        ),
    )
    for name, metavar, text in reversed(options):
        option: Decorator = click.option(
            name, _parameter(name), multiple=True, metavar=metavar, help=f"{text} Repeatable."
        )
        function = option(function)
    return function


def _parameter(name: str) -> str:
    return f"asked_{name.strip('-').replace('-', '_')}"


def make_asked(given: Mapping[str, Any]) -> Asked:
    """Questions from the values of `question_options`. StallscopeError, which shows where a fault is."""
    parts = (given[_parameter(name)] for name in ("--arg", "--where", "--hist", "--sum", "--print"))
    try:
        asked = Asked.parse(*parts, counts=given[_parameter("--count-by")])
    except Fault as fault:
        raise refusal(fault) from None
    if asked.declared and not asked:
        raise click.UsageError("--arg only names a value: add --where, --hist, --sum, --count-by or --print")
    return replace(asked, over=given["over"] or 0)


def refusal(fault: Fault) -> StallscopeError:
    """The error, with a mark under what is wrong."""
    excerpt = marked(fault.text, fault.error.begin, fault.error.end) if fault.text else ()
    remedy = "trace-func --help names the options; docs/func.md explains the expressions"
    return StallscopeError(f"{fault.option}: {fault.error.what}", remedy, exit_code=2, excerpt=excerpt)


def marked(text: str, begin: int, end: int) -> tuple[str, str]:
    """The part of a text around a fault, and a line with a mark under it."""
    first = max(begin - _BEFORE, 0)
    left, fault, right = text[first:begin], text[begin:end], text[end : end + _AFTER]
    fault = fault[:_AFTER]
    head = ("…" if first else "") + printable(left)
    line = head + printable(fault) + printable(right)
    return line, " " * _columns(head) + "^" * max(_columns(printable(fault)), 1)


def _columns(text: str) -> int:
    """Columns of a text on a terminal, where some characters are two columns wide, and some none."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


class Printer:
    """Writes the lines of --print while the trace runs: to standard error if standard output is for data."""

    def __init__(self, *, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def show(self, function: str, line: Line) -> None:
        """One line."""
        text = line.text if line.is_raw else f"{line.pid} {line.tid} {function}: {line.text}"
        # A line of progress may be on the terminal.
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
        stream = sys.stderr if self._to_stderr else sys.stdout
        if stream is not None:
            stream.write(printable(text) + "\n")
            stream.flush()
