"""Sites where threads wait: what `converters.facts.wait_sites` makes of a stack."""

from __future__ import annotations

from typing import NamedTuple


class Site(NamedTuple):
    """Site where a thread waits. Waits with equal sites are the same wait, in any thread or process."""

    frames: tuple[str, ...]
    """Outermost first: caller, API, and the system call; empty if only the kernel is known. Names are bare."""
    kernel: str
    """Innermost kernel function that is not the scheduler's, "" when unknown."""
