"""Programs that are of no measure: they run beside measures that have use for them, where the kernel allows it."""

from __future__ import annotations

from collections.abc import Collection

from ...kernel.bpfobject import Link, Object
from ...kernel.shapes import Shape
from ..limits import MOST_REFUSALS, MOST_RESENDING
from . import faults, refused_locks, retransmissions
from .measures.protocol import Collector

_ALL = (faults, refused_locks, retransmissions)
SIZES = {"refused_locks": MOST_REFUSALS, "retransmissions": MOST_RESENDING}
"""Numbers of entries of their maps."""


def wanted(collectors: Collection[Collector], shape: Shape) -> set[str]:
    """Names of the programs that are of use."""
    return {name for each in _ALL for name in each.wanted(collectors, shape)}


def attached(loaded: Object) -> list[Link]:
    """Links of those that were loaded."""
    return [link for each in _ALL for link in each.attached(loaded)]
