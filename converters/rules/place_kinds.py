"""Kinds of waits in the words of verdicts, for what has no verdict of its own."""

from __future__ import annotations

from ..facts.wait_sums import Place, Thread
from ..facts.waits import Wait
from ..model.sites import Site
from .busy import Busy
from .finding import CPU, Finding
from .verdict import CORES, Verdict, kind_of

_SOMEBODY = ((0, 0),)


def kind_of_place(place: Place) -> str:
    """Kind of a verdict on waits in this place, one of `rules.verdict.KINDS`, however many there are."""
    return kind_of(Finding(place.kind, _SOMEBODY, 0, 0, (place,)))


def kind_of_wait(wait: Wait, state: str) -> str:
    """Kind of a verdict on this wait of a thread in ``state``."""
    return kind_of_place(Place(state, Site((), ""), wait))


def slice_kinds(verdict: Verdict) -> frozenset[str]:
    """Kinds of what a verdict is on, as slices of a trace have them; none if it is on nothing that they have."""
    finding = verdict.finding
    if finding is None:
        return frozenset()
    if finding.kind == CPU:
        return frozenset((CPU, CORES))
    return frozenset(map(kind_of_place, finding.places))


def threads_of(verdict: Verdict) -> tuple[Thread, ...]:
    """All threads that a verdict is on."""
    if isinstance(verdict.detail, Busy):  # its finding has those of the first group
        return tuple(thread for group in verdict.detail.groups for thread in group.threads)
    return verdict.finding.threads if verdict.finding else ()
