"""What threads that are alike are called."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?<=[-_./:# ])\d+$|(?<=\D)\d{2,}$")


def thread_pattern(name: str, main: bool) -> str:
    """Common name of numbered threads: ``pool-*`` for ``pool-17``, ``main`` for main threads."""
    return "main" if main else _NUMBER.sub("*", name)
