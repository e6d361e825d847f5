"""Patterns that a text has to have."""

from __future__ import annotations

import re


def match_of(pattern: str, text: str, flags: int = 0) -> re.Match[str]:
    """The first match in a text. AssertionError if there is none."""
    found = re.search(pattern, text, flags)
    assert found, (pattern, text)
    return found
