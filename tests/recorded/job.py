"""A job of a real program with one known trouble, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stage import Stage

KINDS = (
    "deadlock", "lock", "database-lock", "file-lock", "gil", "driver", "gpu", "io", "memory", "network", "peer",
    "child", "thread", "cores", "quota", "cpu", "polling", "slow-loader", "slow-step", "collective", "idle",
    "unclear", "herd", "pool-anew", "late-rank", "late-messages",
)  # fmt: skip
"""Kinds of verdicts."""
PREFIX = "real_"
"""Prefix of captures of jobs."""


class Truth(NamedTuple):
    """Truth of a capture: what is to be said of it."""

    kinds: tuple[str, ...]
    """Kinds of the verdict; the first one is expected, the others are right, too."""
    subject: tuple[str, ...]
    """Regular expressions for the processes and threads that are in trouble."""
    named: tuple[str, ...] = ()
    """Regular expressions for what has to be named: function, holder, peer, file."""
    trouble: str = ""
    """Trouble in one line."""


@dataclass(frozen=True)
class Job:
    """Job that is started, and traced when it is ready."""

    name: str
    truth: Truth
    start: Callable[[Stage], Sequence[int]]
    """Starts all of it. The processes to trace."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Programs that have to be there, each with Debian's package that has it."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """Modules of Debian's Python that have to be there, each with its package."""
    commands: tuple[str, ...] = ("offcpu",)
    """Each makes a capture."""
    options: tuple[str, ...] = ()
    seconds: float = 2

    def capture(self, command: str) -> str:
        """Name of a capture, without the suffix. The usual command is not part of it."""
        return f"{PREFIX}{self.name}" + ("" if command == "offcpu" else f"-{command}")
