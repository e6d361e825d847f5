"""Sends SIGINT to a command at a chosen import: Ctrl-C comes at every stage of its start, however fast the machine."""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = """
import atexit, os, runpy, signal, sys

class Interrupting:
    count = -1

    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_FROM"] or self.count >= 0:
            self.count += 1
            if str(self.count) == os.environ["INTERRUPT_AT"]:
                os.kill(os.getpid(), signal.SIGINT)

hook = Interrupting()
sys.meta_path.insert(0, hook)

def at_exit():
    with open(os.environ["INTERRUPT_COUNT"], "w") as file:
        file.write(str(hook.count))
    if os.environ["INTERRUPT_AT"] == "exit":
        os.kill(os.getpid(), signal.SIGINT)

atexit.register(at_exit)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class InterruptedImports:
    """Hook that makes Python do so; the modules are counted from the command's own on."""

    def __init__(self, folder: Path, module: str) -> None:
        """``folder`` is an empty one; ``module`` is the command's."""
        self._count, self._program = folder / "count", folder / "interrupting.py"
        self._program.write_text(_PROGRAM)
        self._module = module

    def run_by(self) -> list[str]:
        """Beginning of a command line with the path of a console script."""
        return [sys.executable, "-I", str(self._program)]

    def at(self, number: int | str) -> dict[str, str]:
        """The signal comes with this import (the first is 0), when Python ends ("exit"), or not at all ("never")."""
        return {
            "INTERRUPT_FROM": self._module,
            "INTERRUPT_AT": str(number),
            "INTERRUPT_COUNT": str(self._count),
        }

    @property
    def count(self) -> int:
        """Number of imports of the last command that was not interrupted."""
        return int(self._count.read_text())
