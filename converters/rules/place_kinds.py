"""Kinds of waits in the words of verdicts, for what has no verdict of its own."""

from __future__ import annotations

from ..facts.wait_sums import Place
from ..facts.waits import Wait
from ..model.sites import Site
from .finding import Finding
from .verdict import kind_of

_SOMEBODY = ((0, 0),)


def kind_of_place(place: Place) -> str:
    """Kind of a verdict on waits in this place, one of `rules.verdict.KINDS`, however many there are."""
    return kind_of(Finding(place.kind, _SOMEBODY, 0, 0, (place,)))


def kind_of_wait(wait: Wait, state: str) -> str:
    """Kind of a verdict on this wait of a thread in ``state``."""
    return kind_of_place(Place(state, Site((), ""), wait))
