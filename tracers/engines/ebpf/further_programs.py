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
ON_OWN_STACKS = frozenset(
    (
        *("calls_session", "calls_enter", "calls_return", "calls_begin"),
        *("resumed_enter", "resumed_return", "resumed_drop", "events_user"),
    )
)
"""Programs at uprobes that have a map of their own: see bpf/include/own_stack.bpf.h."""


def wanted(collectors: Collection[Collector], shape: Shape) -> set[str]:
    """Names of the programs that are of use."""
    return {name for each in _ALL for name in each.wanted(collectors, shape)}


def attached(loaded: Object) -> list[Link]:
    """Links of those that were loaded."""
    return [link for each in _ALL for link in each.attached(loaded)]


def leave_out_tails(loaded: Object, names: Collection[str]) -> None:
    """Makes no such maps for programs that are not loaded. ``names``: of those that are, without what a shape adds."""
    for name in ON_OWN_STACKS.difference(names):
        loaded.find_map(f"{name}_tail").set_autocreate(False)
