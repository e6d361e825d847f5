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
    """Ignores Ctrl-C, as what a shell starts in the background does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Run:
    """A command that prints its version, and what Ctrl-C did to it."""

    def __init__(self, folder: Path, command: str) -> None:
        self.imports = InterruptedImports(folder, COMMANDS[command])
        self._path = Path(sys.executable).with_name(command)

    def __call__(self, when: int | str, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.imports.run_by(), self._path, "--version"],
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


_SCRIPT = """#!{python}
import sys
from stallscope.converters.base.starting import run
sys.modules["command"] = type("Command", (), {{"main": lambda: print(sys.flags.isolated, *sys.argv[1:])}})
if __name__ == "__main__":
    sys.exit(run("command"))
"""


@pytest.mark.parametrize(
    ("variable", "isolated"),
    [
        ("PYTHONPATH", 1), ("PYTHONINSPECT", 1), ("PYTHONSTARTUP", 1), ("PYTHONUSERBASE", 1),
        ("PYTHONDEVMODE", 1), ("PYTHONUNBUFFERED", 0), ("OTHER", 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ignored", [False, True])
def test_a_script_made_by_pip_isolates_itself(tmp_path: Path, variable: str, isolated: int, ignored: bool) -> None:
    """The script isolates itself where a variable of Python's could change what it does; with the same arguments."""
    script = tmp_path / "script"
    script.write_text(_SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [script, "-c", "a b"],
        env={**kept, variable: "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        preexec_fn=ignore_ctrl_c if ignored else in_child,  # they only set signals
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"{isolated} -c a b\n", "", 0)


def test_commands_of_this_tree_are_isolated(tmp_path: Path) -> None:
    """Commands are isolated from their first instruction on: a module that is planted is not even imported at Python's
    start."""
    (tmp_path / "sitecustomize.py").write_text("print('planted')\n")
    for command in COMMANDS:
        script = Path(sys.executable).with_name(command)
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONINSPECT": "1"}
        done = subprocess.run(
            [script, "--version"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{command} ")
