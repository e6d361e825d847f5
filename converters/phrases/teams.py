"""Words for teams of threads."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.units import count
from ..facts import thresholds
from ..facts.teams import Team
from .words import listed


def teams(found: Sequence[Team]) -> str:
    """``They are teams of libgomp: 8 threads run conv2d, 8 run resize.``, ``16 of them are a team of libgomp, and run
    sgemm.``; "" for none. Unescaped (hostile)."""
    if not found:
        return ""
    if len(found) == 1:
        team = found[0]
        return f"{count(len(team.threads))} of them are a team of {team.library}, and run {_work(team)}."
    most = thresholds.TEAMS_NAMED
    libraries = sorted({team.library for team in found})
    told = [
        f"{count(len(team.threads))}{' threads' if not i else ''} run {_work(team)}" for i, team in enumerate(found)
    ]
    more = [f"{count(len(found) - most)} more teams"] if len(found) > most else []
    return f"They are teams of {listed(libraries)}: {', '.join([*told[:most], *more])}."


def _work(team: Team) -> str:
    return team.work or f"functions of {team.library}"
