"""Common code of the tests of the symboliser."""

from __future__ import annotations

import subprocess
from pathlib import Path

from stallscope.tracers.symbols.symboliser import Symboliser


def names(symboliser: Symboliser, pid: int, *addresses: int, epoch: int = 0) -> list[str]:
    """Names of the frames of one stack, innermost first, as the addresses are."""
    (stack,) = symboliser.user_stacks([(pid, epoch, addresses)])
    return [frame.name for frame in reversed(stack)]


def strip(program: Path, folder: Path) -> Path:
    """A copy of a program without any name, and without a link to its debug file."""
    stripped = folder / "stripped"
    subprocess.run(["objcopy", "--strip-all", program, stripped], check=True)
    return stripped
