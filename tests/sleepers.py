"""Processes that are there and do nothing, and pids of none."""

from __future__ import annotations

import subprocess

GONE = 1 << 22
"""Pids from here on belong to nobody."""


def sleeper() -> subprocess.Popen[bytes]:
    """A process that sleeps until `end`, or for a minute."""
    return subprocess.Popen(["sleep", "60"])


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a process and waits until it is gone."""
    child.kill()
    child.wait()
