"""Short names of the places where threads wait."""

from __future__ import annotations

from ...base.text import printable
from ...facts.wait_sites import site
from ...model import Stack
from ...model.scheduling import NO_STACK, Scheduling
from ...model.states import BY_BITS, UNKNOWN


def wait_name(scheduling: Scheduling, stack: int, state: str) -> str:
    """``ioctl: rwsem_down_read`` for a stack (its index), else the state: ``uninterruptible``. Printable."""
    return printable((stack != NO_STACK and _told(scheduling.stacks[stack])) or state)


def state_name(bits: int) -> str:
    """Name of a state as reported by the kernel; if several bits are set, the lowest known one counts."""
    return next((name for bit, name in BY_BITS.items() if bits & bit or bits == bit), UNKNOWN)


def _told(stack: Stack) -> str:
    where = site(stack)
    parts = [*where.frames[-1:], where.kernel]
    return ": ".join(dict.fromkeys(filter(None, parts))) or (stack[-1].name if stack else "")
