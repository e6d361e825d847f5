"""Kinds of what a profile has lost: time and events, or only details of a stack."""

from __future__ import annotations

import re
from collections.abc import Mapping

_INCOMPLETE = re.compile(r"stacks (not complete|cut)|frames without|user stacks that could not")
TIME = "ns of "
"""Begin of a kind that is the time of another one."""


def is_incomplete(kind: str) -> bool:
    """Whether no time is lost, only details of its stack."""
    return _INCOMPLETE.match(kind) is not None


def divided(lost: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Losses that are missing, and those that only make it incomplete: numbers above 0 by kind, without times of other
    kinds."""
    found = {kind: number for kind, number in lost.items() if number and not kind.startswith(TIME)}
    incomplete = {kind: number for kind, number in found.items() if is_incomplete(kind)}
    return {kind: number for kind, number in found.items() if kind not in incomplete}, incomplete
