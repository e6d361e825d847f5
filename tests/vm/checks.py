"""The checks that run in a guest, by name: ``@check`` makes a function one of them."""

from __future__ import annotations

from collections.abc import Callable

CHECKS: dict[str, Callable[[], str]] = {}


def check(function: Callable[[], str]) -> Callable[[], str]:
    """It returns what it measured, as one line for docs/kernels.md, and raises AssertionError where that is wrong."""
    CHECKS[function.__name__] = function
    return function
