"""Check that a recommended command in a file is one that these commands recommend.

Whoever reads an answer may paste the command into a shell of root's, and the file may be anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..model.next_step import NextStep

TOOLS = (
    *("trace-offcpu", "trace-oncpu", "trace-wall", "trace-wakeup"),
    *("trace-ioctl", "trace-cuda", "trace-func", "trace-nccl", "trace-scan"),
)
_ALONE = None
_NUMBERS, _NUMBER, _PLAIN = re.compile(r"\d+(,\d+)*"), re.compile(r"\d+(\.\d+)?(e[+-]\d+)?"), re.compile(r"[a-z-]+")
_ANY, _PATH = re.compile(r"(?s).+"), re.compile(r"(?s)[^-].*")
_SCOPE: Mapping[str, re.Pattern[str] | None] = {
    "-p": _NUMBERS,
    "-t": _NUMBERS,
    "-n": _ANY,
    "--cgroup": _PATH,
    "-a": _ALONE,
    "--children": _ALONE,
}
_OPTIONS: Mapping[str, re.Pattern[str] | None] = {
    "-d": _NUMBER,
    "-o": re.compile(r"[a-z]+\.[a-z]+"),
    "--critical": re.compile(r"\d+|command"),
    "--per-thread": _ALONE,
}
_FIRST: Mapping[str, re.Pattern[str] | None] = {"--engine": _PLAIN, "--stap-module": _PATH}
"""Options, and what their values look like."""
_TELLS = re.compile(r"[A-Za-z0-9 ,:-]+")
"""A code, or text of an earlier version: nothing that a shell without comments would run."""


def is_recommended(step: NextStep) -> bool:
    """Whether ``step`` has no program, option or word that would do something else than trace, but for the command that
    is traced: an answer does not show that one."""
    return (
        step.tool in TOOLS
        and _known(step.first, _FIRST, others=True)
        and _known(step.whom.options, _SCOPE)
        and _known(step.options, _OPTIONS)
        and bool(_TELLS.fullmatch(step.tells))
    )


def _known(words: tuple[str, ...], options: Mapping[str, re.Pattern[str] | None], *, others: bool = False) -> bool:
    """Whether all words are such options and their values. ``others``: or no options, such as functions to be timed."""
    left = iter(words)
    for word in left:
        if word not in options:
            if not others or not _PATH.fullmatch(word):
                return False
        elif (value := options[word]) is not _ALONE and not value.fullmatch(next(left, "")):
            return False
    return True
