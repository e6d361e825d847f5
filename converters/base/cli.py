"""Shared by all commands: help that starts with examples, one place that reports errors, common options.

    from ..converters.base import cli

    @cli.command(
        "trace-offcpu",
        examples=[
            ("sudo trace-offcpu -p 4711 -d 10", "where one process waits"),
            ("sudo trace-offcpu -a -d 5", "the whole host"),
            ("sudo trace-offcpu -- ./train --epochs 1", "a command from its start to its end"),
        ],
    )
    @cli.ids_option("-p", "--pid", "pids", help="Trace these processes.")
    @cli.seconds_option("-d", "--duration", help="Stop after so many seconds.")
    def main(pids: tuple[int, ...], duration: float | None) -> int | None:
        \"\"\"Shows where threads wait.\"\"\"
        if not pids:
            raise cli.MissingScope("say what to trace")
        ...  # raise StallscopeError(cause, remedy); return an exit status, or None for 0

``main`` is both the click command and, called without arguments, what ``console_scripts`` needs: it
returns the exit status.
"""

from __future__ import annotations

import errno
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from .errors import StallscopeError
from .text import printable

TRACEBACK = "STALLSCOPE_TRACEBACK"
"""Environment variable: if it is 1, internal errors show a traceback."""

Example = tuple[str, str]
"""A command line, and a description."""
Groups = Mapping[str, Sequence[str]]
"""Heading → options, as they are written: ``--pid``. The help shows all others last."""

_EXAMPLES = 3
_MAX_ID = 1 << 22
"""The kernel's PID_MAX_LIMIT on 64-bit machines (include/linux/threads.h)."""
_INTERRUPTED = 128 + 2
_BROKEN_PIPE = 128 + 13
"""Exit statuses as a shell reports them for a process ended by SIGINT or SIGPIPE."""


class MissingScope(click.UsageError):
    """The command was not told what to work on. Reported with the command's examples, exit status 2."""


class ExamplesCommand(click.Command):
    """A command whose help shows three examples right after the usage line. Calling it runs it (see `run`)."""

    def __init__(
        self, name: str, *, examples: Sequence[Example], groups: Groups | None = None, **attributes: Any
    ) -> None:
        """``attributes`` are those of click.Command. ValueError unless there are three examples."""
        super().__init__(name, **attributes)
        if len(examples) != _EXAMPLES:
            raise ValueError(f"{name} needs {_EXAMPLES} examples")
        self.examples = tuple(examples)
        self.groups = groups or {}

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """`run` with ``arguments``, ``sys.argv[1:]`` by default."""
        return run(self, arguments)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        self.format_examples(formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options under the headings of ``groups``, and the others under "Options"."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        left = [(set(option.opts), record) for option in options if (record := option.get_help_record(ctx))]
        for heading, names in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([record for name in names for opts, record in left if name in opts])
            left = [(opts, record) for opts, record in left if not opts & set(names)]
        with formatter.section("Other options" if self.groups else "Options"):
            formatter.write_dl([record for _, record in left])

    def format_examples(self, formatter: click.HelpFormatter) -> None:
        """Writes the examples: command lines are never wrapped, so that they can be copied."""
        width = max(len(line) for line, _ in self.examples)
        with formatter.section("Examples"):
            for line, purpose in self.examples:
                formatter.write(f"  {line:{width}}  # {purpose}\n")


def command(
    name: str, *, examples: Sequence[Example], groups: Groups | None = None, **attributes: Any
) -> Callable[[Callable[..., int | None]], ExamplesCommand]:
    """Decorator that makes a function a command; ``attributes`` go to click.command, ``groups`` order the options in
    its help. See the module's docstring.

    Adds ``--version`` and ``-h``. The function returns the exit status, None for 0. ``cls``: a subclass of
    `ExamplesCommand`.
    """
    kind: type[ExamplesCommand] = attributes.pop("cls", ExamplesCommand)
    settings = {
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        **attributes.pop("context_settings", {}),
    }

    def decorate(function: Callable[..., int | None]) -> ExamplesCommand:
        versioned = click.version_option(package_name="stallscope", prog_name=name, message="%(prog)s %(version)s")(
            function
        )
        make = click.command(name, cls=kind, examples=examples, groups=groups, context_settings=settings, **attributes)
        return make(versioned)

    return decorate


def run(command: ExamplesCommand, arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status; reports every error, without a traceback.

    0 success, 1 failure, 2 wrong usage, 130 interrupted, 141 standard output was closed by its reader.
    """
    name = command.name or ""
    hook, sys.unraisablehook = sys.unraisablehook, _silent_if_interrupted
    try:
        status = _invoke(command, list(sys.argv[1:] if arguments is None else arguments))
    except StallscopeError as error:
        status = error.exit_code
        _report(name, error.cause, error.remedy, error.excerpt)
    except click.UsageError as error:
        status = error.exit_code
        _report_usage(command, error)
    except click.ClickException as error:
        status = error.exit_code
        _report(name, error.format_message())
    except (KeyboardInterrupt, click.Abort):
        status = _INTERRUPTED
    except BrokenPipeError:
        status = _BROKEN_PIPE
        _discard_output()
    except Exception as error:
        status = 1
        _report_unexpected(name, error)
    finally:
        sys.unraisablehook = hook
    return status


def _silent_if_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    """Reports an exception that nothing can handle, as in a callback of the import system; a second Ctrl-C is none."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _invoke(command: click.Command, arguments: list[str]) -> int:
    # Not command.main(), which handles interrupts and broken pipes in a noisier way of its own.
    try:
        with command.make_context(command.name, arguments) as context:
            result = _with_details(command, context)
    except click.exceptions.Exit as leave:
        result = leave.exit_code
    if sys.stdout is not None and not sys.stdout.closed:
        # Now, while an error can still be reported.
        sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _with_details(command: click.Command, context: click.Context) -> Any:
    try:
        return command.invoke(context)
    except StallscopeError as error:
        if context.params.get("verbose"):
            for line in error.details.splitlines():
                _to_stderr(printable(line) + "\n")
        raise


def _discard_output() -> None:
    """Discards the rest of the output, about which the interpreter would otherwise complain at exit."""
    if sys.stdout is None:
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        return


def _report(name: str, cause: str, remedy: str = "", excerpt: Sequence[str] = ()) -> None:
    lines = [f"{name}: {printable(cause)}", *(f"  {printable(line)}" for line in excerpt)]
    lines += [printable(remedy)] if remedy else []
    _to_stderr("\n".join(lines) + "\n")


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        # It cannot be reported; the exit status still shows it.
        return


def _report_usage(command: ExamplesCommand, error: click.UsageError) -> None:
    name = command.name or ""
    if not isinstance(error, MissingScope):
        _report(name, error.format_message(), f"{name} --help shows examples and explains the options")
        return
    formatter = click.HelpFormatter()
    command.format_examples(formatter)
    _report(name, error.format_message())
    _to_stderr(formatter.getvalue())


def _report_unexpected(name: str, error: Exception) -> None:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG):
        _discard_output()
        first = "make room" if error.errno == errno.ENOSPC else "raise the limit (ulimit -f)"
        _report(name, f"cannot write: {error}", f"{first}, or write to another file system")
        return
    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            _to_stderr(printable(line) + "\n")
    cause = f"internal error: {type(error).__name__}: {error}"
    _report(name, cause, f"{TRACEBACK}=1 before {name} (and after sudo) shows where it comes from")


def ids_option(*declarations: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``-p 1,2 -p 3``: process or thread ids; the value is (1, 2, 3), without duplicates, () when not given."""

    def parsed(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[int, ...]:
        try:
            return tuple(dict.fromkeys(number for value in values for number in _ids(value)))
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    attributes.setdefault("metavar", "ID[,ID...]")
    return click.option(*declarations, multiple=True, callback=parsed, **attributes)


def _ids(value: str) -> list[int]:
    # White space also separates: "$(pgrep demo)" gives one id per line.
    ids = value.replace(",", " ").split()
    if not ids:
        raise ValueError("no id given")
    for text in ids:
        # int() also accepts signs, underscores and digits of other scripts.
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{text!r} is not a number; several are separated by commas: 4711,4712")
        if len(text) > len(str(_MAX_ID)) or not 0 < int(text) <= _MAX_ID:
            raise ValueError(f"{text} is not between 1 and {_MAX_ID}")
    return [int(text) for text in ids]


def seconds_option(*declarations: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``-d 0.5``: a time in seconds; the value is a finite float above 0, None when not given."""

    def parsed(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
        if value is None:
            return None
        try:
            seconds = float(value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is not a number of seconds", ctx, param) from None
        if not (math.isfinite(seconds) and seconds > 0):
            raise click.BadParameter(f"{value} is not a time above 0 seconds", ctx, param)
        return seconds

    attributes.setdefault("metavar", "SECONDS")
    return click.option(*declarations, callback=parsed, **attributes)


def mode_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--mode 0644``: the mode of the files that are written; the value is an int."""

    def parsed(ctx: click.Context, param: click.Parameter, value: str) -> int:
        # int() also accepts signs, underscores, prefixes and digits of other scripts.
        if not re.fullmatch(r"(?a:0?[46][0-7]{2})", value) or int(value, 8) & 0o113:
            raise click.BadParameter(f"{value!r} is no mode such as 0600, 0640 or 0644", ctx, param)
        return int(value, 8)

    text = (
        "The mode of the files: 0600 (default) for their owner only; 0640, the group reads them, too; 0644: everybody."
    )
    return click.option("--mode", default="0600", metavar="OCTAL", callback=parsed, help=text)(function)
