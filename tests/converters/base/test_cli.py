from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from stallscope.converters.base import cli
from stallscope.converters.base.errors import StallscopeError

EXAMPLES = [
    ("sudo trace-x -p 4711 -d 10", "where one process waits"),
    ("sudo trace-x -a", "the whole host"),
    ("sudo trace-x -- ./train --epochs 1", "a command from its start to its end"),
]
EXAMPLES_TEXT = """\
Examples:
  sudo trace-x -p 4711 -d 10          # where one process waits
  sudo trace-x -a                     # the whole host
  sudo trace-x -- ./train --epochs 1  # a command from its start to its end
"""
HELP = f"""\
Usage: trace-x [OPTIONS]

{EXAMPLES_TEXT}
  Shows where threads wait.

Options:
  --version               Show the version and exit.
  -p, --pid ID[,ID...]    Trace these.
  -d, --duration SECONDS  Stop after so many seconds.
  -h, --help              Show this message and exit.
"""
SCRIPT = """
import sys
from stallscope.converters.base import cli
@cli.command("trace-x", examples=[("a", "b")] * 3)
def main():
    {body}
sys.exit(main())
"""

Seen = list[tuple[tuple[int, ...], float | None]]


def make(action: Callable[[], int | None] = lambda: None) -> tuple[cli.ExamplesCommand, Seen]:
    seen: Seen = []

    @cli.command("trace-x", examples=EXAMPLES)
    @cli.ids_option("-p", "--pid", "pids", help="Trace these.")
    @cli.seconds_option("-d", "--duration", help="Stop after so many seconds.")
    def main(pids: tuple[int, ...], duration: float | None) -> int | None:
        """Shows where threads wait."""
        seen.append((pids, duration))
        return action()

    return main, seen


def raising(error: BaseException) -> cli.ExamplesCommand:
    def action() -> None:
        raise error

    return make(action)[0]


def script(body: str, shell: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command whose function is ``body`` by a shell line in which ``$X`` is it."""
    text = shell.replace("$X", '"$0" -c "$1"')
    return subprocess.run(
        ["bash", "-c", text, sys.executable, SCRIPT.format(body=body)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_starts_with_three_examples(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    main, _ = make()
    assert main([flag]) == 0
    out = capsys.readouterr()
    assert out.out == HELP
    assert out.err == ""


def test_options_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    @cli.command("trace-x", examples=EXAMPLES, groups={"Scope": ["--pid"], "Time": ["--duration"]})
    @click.argument("rest", nargs=-1)
    @cli.seconds_option("-d", "--duration", help="Stop after so many seconds.")
    @cli.ids_option("-p", "--pid", "pids", help="Trace these.")
    def main(**_: object) -> None:
        """Shows where threads wait."""

    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert text.endswith(
        """
Scope:
  -p, --pid ID[,ID...]  Trace these.

Time:
  -d, --duration SECONDS  Stop after so many seconds.

Other options:
  --version   Show the version and exit.
  -h, --help  Show this message and exit.
"""
    )


def test_three_examples_it_must_be() -> None:
    with pytest.raises(ValueError, match="trace-x needs 3 examples"):
        cli.command("trace-x", examples=EXAMPLES[:2])(lambda: None)


def test_context_settings_are_added() -> None:
    @cli.command("trace-x", examples=EXAMPLES, context_settings={"ignore_unknown_options": True})
    @click.argument("rest", nargs=-1)
    def main(rest: tuple[str, ...]) -> int:
        return len(rest)

    assert main(["--foo", "bar"]) == 2
    assert main(["-h"]) == 0


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert make()[0](["--version"]) == 0
    name, version = capsys.readouterr().out.split()
    assert name == "trace-x"
    assert version[0].isdigit()


def test_arguments_come_from_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    main, seen = make()
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/trace-x", "-p", "1,2"])
    assert main() == 0
    assert seen == [((1, 2), None)]


@pytest.mark.parametrize(("result", "status"), [(None, 0), (0, 0), (3, 3)])
def test_what_the_function_returns_is_the_status(result: int | None, status: int) -> None:
    assert make(lambda: result)[0]([]) == status


@pytest.mark.parametrize(
    ("arguments", "pids"),
    [
        ([], ()),
        (["-p", "1"], (1,)),
        (["-p", "3,1,2"], (3, 1, 2)),
        (["-p", "1, 2", "--pid", "2,5"], (1, 2, 5)),
        (["-p", "7\n8\n"], (7, 8)),
        (["-p1,,2,"], (1, 2)),
        (["--pid=4194304"], (4194304,)),
    ],
)
def test_ids(arguments: list[str], pids: tuple[int, ...]) -> None:
    main, seen = make()
    assert main(arguments) == 0
    assert seen == [(pids, None)]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("-p", "a", "'a' is not a number; several are separated by commas: 4711,4712"),
        ("-p", "1;2", "'1;2' is not a number"),
        ("-p", "-1", "'-1' is not a number"),
        ("-p", "1_0", "'1_0' is not a number"),
        ("-p", "٣", "'٣' is not a number"),
        ("-p", "1,0", "0 is not between 1 and 4194304"),
        ("-p", "4194305", "4194305 is not between"),
        ("-p", "9" * 5000, "is not between"),
        ("-p", "", "no id given"),
        ("-p", " , ", "no id given"),
        ("-d", "0", "0 is not a time above 0 seconds"),
        ("-d", "-1", "-1 is not a time above"),
        ("-d", "nan", "nan is not a time above"),
        ("-d", "inf", "inf is not a time above"),
        ("-d", "ten", "'ten' is not a number of seconds"),
        ("-d", "", "'' is not a number of seconds"),
    ],
)
def test_wrong_values(option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    main, seen = make()
    assert main([option, value]) == 2
    cause, remedy = capsys.readouterr().err.splitlines()
    assert cause.startswith(f"trace-x: Invalid value for '{option}'")
    assert message in cause
    assert remedy == "trace-x --help shows examples and explains the options"
    assert not seen


def test_seconds() -> None:
    main, seen = make()
    assert main(["-d", "0.5"]) == main(["-d", "1e3"]) == 0
    assert seen == [((), 0.5), ((), 1000.0)]


@pytest.mark.parametrize("arguments", [["--nonsense"], ["surplus"], ["-d"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert make()[0](arguments) == 2
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 2
    assert err[0].startswith("trace-x: ")


def test_missing_scope_shows_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(cli.MissingScope("say what to trace"))([]) == 2
    out = capsys.readouterr()
    assert out.err == "trace-x: say what to trace\n" + EXAMPLES_TEXT
    assert out.out == ""


@pytest.mark.parametrize(
    ("error", "text", "status"),
    [
        (StallscopeError("process 4711 is gone", "look for it with pgrep"),
         "trace-x: process 4711 is gone\nlook for it with pgrep\n", 1),
        (StallscopeError("wrong", exit_code=2), "trace-x: wrong\n", 2),
        (StallscopeError("x\x1b[2J\ny\u202e", "a\nb"), "trace-x: x\\x1b[2J\\x0ay\\u202e\na\\x0ab\n", 1),
        (click.FileError("/x", "is a folder"), "trace-x: Could not open file '/x': is a folder\n", 1),
        (KeyError("a\nb"), "trace-x: internal error: KeyError: 'a\\nb'\n"
         "STALLSCOPE_TRACEBACK=1 before trace-x (and after sudo) shows where it comes from\n", 1),
        (RuntimeError("a\nb"), "trace-x: internal error: RuntimeError: a\\x0ab\n"
         "STALLSCOPE_TRACEBACK=1 before trace-x (and after sudo) shows where it comes from\n", 1),
        (KeyboardInterrupt(), "", 130),
        (click.Abort(), "", 130),
        (OSError(28, "No space left on device"), "trace-x: cannot write: [Errno 28] No space left on device\n"
         "make room, or write to another file system\n", 1),
        (OSError(27, "File too large"), "trace-x: cannot write: [Errno 27] File too large\n"
         "raise the limit (ulimit -f), or write to another file system\n", 1),
    ],
)  # fmt: skip
def test_errors(
    error: BaseException, text: str, status: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(cli.TRACEBACK, raising=False)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    assert raising(error)([]) == status
    out = capfd.readouterr()
    assert (out.out, out.err) == ("", text)


def test_system_exit_passes() -> None:
    with pytest.raises(SystemExit) as caught:
        raising(SystemExit(7))([])
    assert caught.value.code == 7


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
def test_traceback_on_request(
    value: str, shown: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cli.TRACEBACK, value)
    assert raising(RuntimeError("x\x1by"))([]) == 1
    err = capsys.readouterr().err
    assert (Path(__file__).name in err) is shown
    assert "Traceback" not in err or shown
    assert "\x1b" not in err


def test_reader_that_leaves_is_no_error() -> None:
    result = script("[print(i) for i in range(200000)]", "$X | head -n 1; echo ${PIPESTATUS[0]}")
    assert result.stdout == "0\n141\n"
    assert result.stderr == ""


def test_reader_that_left_before_the_last_flush() -> None:
    result = script("import time; time.sleep(0.5); print('late')", "$X | true; echo ${PIPESTATUS[0]}")
    assert (result.stdout, result.stderr) == ("141\n", "")


@pytest.mark.parametrize("lines", [1, 200_000])
def test_full_disk_behind_standard_output_is_a_failure(lines: int) -> None:
    result = script(f"[print(i) for i in range({lines})]", "$X > /dev/full")
    assert result.returncode == 1
    assert result.stderr == (
        "trace-x: cannot write: [Errno 28] No space left on device\nmake room, or write to another file system\n"
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_hide_no_failure(closed: str) -> None:
    assert script("return 0", f"$X {closed}").returncode == 0
    assert script("raise KeyError('x')", f"$X {closed}").returncode == 1


def test_nothing_heavy_is_imported() -> None:
    body = "print(sorted({'rich', 'numpy', 'google', 'traceback', 'importlib.metadata'} & sys.modules.keys()))"
    baseline = subprocess.run(
        [sys.executable, "-c", f"import sys, click\n{body}"], capture_output=True, text=True, check=True
    )
    assert script(body, "$X").stdout == baseline.stdout


def test_ctrl_c_where_nothing_can_handle_it_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """A callback, such as that of a weak reference in the import system, reports what it raises."""

    class Dies:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error

    hook = sys.unraisablehook

    @cli.command("trace-x", examples=[("a", "b"), ("c", "d"), ("e", "f")])
    def main() -> int:
        Dies(KeyboardInterrupt())
        Dies(ValueError("a fault"))
        return 0

    assert cli.run(main, []) == 0
    told = capsys.readouterr().err
    assert "KeyboardInterrupt" not in told
    assert "a fault" in told
    assert sys.unraisablehook is hook
