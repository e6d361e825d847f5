from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from default_signals import in_child
from interrupted_imports import InterruptedImports

COMMANDS = {
    "trace-convert": "stallscope.converters.convert",
    "trace-doctor": "stallscope.tracers.doctor",
    "trace-offcpu": "stallscope.tracers.offcpu",
    "trace-oncpu": "stallscope.tracers.oncpu",
    "trace-wall": "stallscope.tracers.wall",
}


def ignore_ctrl_c() -> None:
    """As a shell does it for what it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Run:
    """A command that prints its version, and what Ctrl-C did to it."""

    def __init__(self, folder: Path, command: str) -> None:
        self.imports = InterruptedImports(folder, COMMANDS[command])
        self._path = Path(sys.executable).with_name(command)

    def __call__(self, when: int | str, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._path, "--version"],
            env={**os.environ, **self.imports.at(when)},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=ignore_ctrl_c if ignored else in_child,  # they only set signals
        )


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    return Run(tmp_path, request.param)


def test_ctrl_c_while_a_command_is_imported_is_silent(command: Run) -> None:
    finished = command("never")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout
    count = command.imports.count
    assert count > 20
    for number in (0, 1, 2, count // 4, count // 2, 3 * count // 4, count):
        finished = command(number)
        assert (finished.stdout, finished.stderr) == ("", ""), number
        # A shell says 130 also of a process that died of SIGINT.
        assert finished.returncode in (130, -signal.SIGINT), number


def test_ctrl_c_when_a_command_has_ended_is_silent(command: Run) -> None:
    finished = command("exit")
    assert finished.stderr == ""
    assert finished.returncode in (130, -signal.SIGINT)


def test_where_it_is_ignored_it_stays_so(command: Run) -> None:
    assert command("never").returncode == 0
    finished = command(command.imports.count // 2, ignored=True)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout
