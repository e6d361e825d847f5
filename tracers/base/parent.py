"""Programs that this one starts end with it, however that ends."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
"""prctl.h."""


def end_with_parent(number: signal.Signals) -> Callable[[], None]:
    """Function that a child calls before it executes its program: it gets the signal when the thread that started it
    has ended."""

    def ask() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))

    return ask
