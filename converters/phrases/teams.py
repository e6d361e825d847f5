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
    alike: dict[str, list[Team]] = {}
    for team in found:
        alike.setdefault(_work(team), []).append(team)
    told = [_alike(work, teams, "" if i else " threads") for i, (work, teams) in enumerate(list(alike.items())[:most])]
    others = sum(map(len, list(alike.values())[most:]))
    more = [f"{count(others)} more team{'s' if others > 1 else ''}"] if others else []
    return f"They are teams of {listed(libraries)}: {', '.join([*told, *more])}."


def _alike(work: str, teams: Sequence[Team], noun: str) -> str:
    """``15 threads run conv2d in 3 teams``"""
    number = sum(len(team.threads) for team in teams)
    return f"{count(number)}{noun} run {work}" + (f" in {count(len(teams))} teams" if len(teams) > 1 else "")


def _work(team: Team) -> str:
    return team.work or f"functions of {team.library}"
