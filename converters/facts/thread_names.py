"""Names of threads that are alike, and of processes."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?<=[-_./:# ])\d+$|(?<=\D)\d{2,}$")
_MAIN = "main"


def name_pattern(name: str) -> str:
    """Common name of numbered threads or processes: ``pool-*`` for ``pool-17``."""
    return _NUMBER.sub("*", name)


def thread_pattern(name: str, main: bool) -> str:
    """`name_pattern`, or ``main`` for main threads. Another thread that has called itself so is told apart by
    quotes."""
    if main:
        return _MAIN
    return f'"{name}"' if name == _MAIN else name_pattern(name)
