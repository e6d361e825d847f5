"""The command that would show more, as data: worded where it is shown."""

from __future__ import annotations

import shlex
from typing import NamedTuple

COMMAND = "COMMAND"
"""Stands for a command, as in the help."""
WHO_WAKES, WHO_ENDS, WHO_ENDS_IN_CALLS = "who-wakes", "who-ends", "who-ends-in-calls"
WHAT_ENDERS_DO, PATH, WHOLE_STACKS = "what-enders-do", "path", "whole-stacks"
ALL_THAT_RUNS, RUNS_TOO, HAS_CORES, HOW_OFTEN = "all-that-runs", "runs-too", "has-cores", "how-often"
WHAT_HOLDER_DOES = "what-holder-does"
WHICH_IOCTLS, REST, LEFT_OUT, ALL_RANKS = "which-ioctls", "rest", "left-out", "all-ranks"
WHAT_OTHERS_DO = "what-others-do"
MISSING_RANK, MISSING_WAITS_FOR, RANKS_STAND = "missing-rank", "missing-waits-for", "ranks-stand"
WHAT_CULPRIT_RUNS, WHAT_CULPRIT_WAITS_FOR, LONGER = "what-culprit-runs", "what-culprit-waits-for", "longer"
CODES = (
    *(WHO_WAKES, WHO_ENDS, WHO_ENDS_IN_CALLS, WHAT_ENDERS_DO, WHAT_HOLDER_DOES, PATH, WHOLE_STACKS),
    *(ALL_THAT_RUNS, RUNS_TOO, HAS_CORES, HOW_OFTEN, WHICH_IOCTLS, REST, LEFT_OUT, ALL_RANKS, WHAT_OTHERS_DO),
    *(WHAT_CULPRIT_RUNS, WHAT_CULPRIT_WAITS_FOR, LONGER, MISSING_RANK, MISSING_WAITS_FOR, RANKS_STAND),
)
"""Codes for what a command shows: `phrases.next_steps` words them."""
OF_HANGS = (MISSING_RANK, MISSING_WAITS_FOR, RANKS_STAND)
"""Codes of commands that look at a job that stands still."""


class Whom(NamedTuple):
    """Choice of what to trace. Words as a program gets them, not quoted; hostile."""

    options: tuple[str, ...] = ()
    """Options of scope: ``-p 4,5 --children``."""
    command: tuple[str, ...] = ()
    """The command that is traced, if there is one."""


class NextStep(NamedTuple):
    """A command to run next, and what it shows. Words as in `Whom`."""

    tool: str
    """Name of the command: ``trace-offcpu``."""
    whom: Whom
    options: tuple[str, ...]
    """Options behind those of scope."""
    tells: str
    """Code for what the command shows: one of `CODES`, or text of an earlier version's file."""
    first: tuple[str, ...] = ()
    """Words before the options of scope: an engine, functions."""
    sudo: bool = False
    left_out: int = 0
    """Number of processes that were left out, for `LEFT_OUT`."""
    needs_module: bool = False
    """Whether SystemTap needs another module for it."""

    @property
    def words(self) -> tuple[str, ...]:
        """The options, without a command that is traced."""
        return (*self.first, *self.whom.options, *self.options)

    def without_command(self) -> NextStep:
        """The step without the words of a command that is traced: `COMMAND` stands for them."""
        return self._replace(whom=self.whom._replace(command=(COMMAND,))) if self.whom.command else self

    @property
    def command(self) -> str:
        """The whole line, quoted for a shell. Hostile."""
        words = [*(["sudo"] if self.sudo else []), self.tool, *self.words]
        if self.whom.command:
            words += ["--", *self.whom.command]
        return shlex.join(words)
