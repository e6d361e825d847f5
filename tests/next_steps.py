"""Recommended commands from what a user would type."""

from __future__ import annotations

import shlex

from stallscope.converters.model.next_step import NextStep, Whom

_WITH_VALUE, _ALONE = ("-p", "-t", "-n", "--cgroup"), ("-a", "--children")


def step_of(line: str, tells: str = "") -> NextStep:
    """The step whose command is ``line``."""
    tool, *words = shlex.split(line)
    at = words.index("--") if "--" in words else len(words)
    asked, command = words[:at], words[at + 1 :]
    scope: list[str] = []
    first: list[str] = []
    while asked and asked[0] != "-d" and not (scope and asked[0] not in (*_WITH_VALUE, *_ALONE)):
        taken = 2 if asked[0] in _WITH_VALUE else 1
        (scope if asked[0] in (*_WITH_VALUE, *_ALONE) else first).extend(asked[:taken])
        del asked[:taken]
    return NextStep(tool, Whom(tuple(scope), tuple(command)), tuple(asked), tells, tuple(first))


def whom(options: str, command: str = "") -> Whom:
    """Choice that somebody made with these words."""
    return Whom(tuple(shlex.split(options)), tuple(shlex.split(command)))
