"""Handlers of signals on stacks: what is above one is what the thread did before the signal came."""

from __future__ import annotations

from ..model import Frame, Stack
from .wait_sites import site

_RETURNS = frozenset(("__restore_rt", "<signal handler called>", "__kernel_rt_sigreturn"))
"""Functions to which a handler returns (glibc's and musl's sigaction, the kernel's vdso), and the name that GDB gives
them."""
_CALLS_HANDLERS = ("_PyErr_CheckSignals", "PyErr_CheckSignals")
"""Begins of the functions with which CPython calls the handlers of a script (Modules/signalmodule.c)."""


def interrupted_in(stack: Stack) -> tuple[str, ...]:
    """Place in which a signal interrupted the thread, whose handler is the innermost one on the stack; () if there is
    none. ``stack``: outermost frame first."""
    at = max((number for number, frame in enumerate(stack) if _is_handler(stack, number, frame)), default=0)
    return site(stack[:at]).frames if at else ()


def _is_handler(stack: Stack, number: int, frame: Frame) -> bool:
    if frame.kind != "native":
        return False
    if frame.name in _RETURNS:
        return True
    # Python looks for signals all the time: only what it calls then is a handler.
    return frame.name.startswith(_CALLS_HANDLERS) and any(each.kind == "python" for each in stack[number + 1 :])
