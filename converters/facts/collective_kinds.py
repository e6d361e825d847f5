"""Operations by which it is judged who comes late to the meetings of a communicator.

A rank that is late to the first operation of a step is on time for all that follow in it: over all of them, it would
hardly be late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model.collectives import CollectiveKind
from . import thresholds


def often(kinds: Iterable[CollectiveKind]) -> list[CollectiveKind]:
    """Kinds with enough meetings, in the same order, which is by their time."""
    return [each for each in kinds if each.meetings >= thresholds.MEETINGS]


def judged(kinds: Sequence[CollectiveKind]) -> CollectiveKind | None:
    """The operation whose meetings tell who is late; None: all of them together do, if no operation has enough, or if
    its ranks were not told apart."""
    kind = next(iter(often(kinds)), None)
    return kind if kind and kind.last else None
