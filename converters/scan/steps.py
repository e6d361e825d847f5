"""Iterations of a job: how many steps a second each process makes, and what its loader of data costs in one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_id, shown_id
from ..facts.jobs import Job
from ..model.steps import Steps
from ..rules.place_kinds import kind_of_place
from ..rules.verdict import SLOW_LOADER


@dataclass(frozen=True)
class Pace:
    """Steps of one function in one thread. Times in ns; names are hostile."""

    steps: Steps
    rank: int | None
    """Number of its rank; None if it is none."""
    loader: int
    """Time of all its steps, and between them, for which it waits for its loader of data."""

    @property
    def per_second(self) -> float | None:
        """Steps a second; None if it is not known."""
        return self.steps.per_second

    @property
    def loop(self) -> int:
        """Time of all its steps and between them."""
        return self.steps.steps.wall + self.steps.between.wall

    @property
    def loader_each(self) -> int:
        """Time for which it waits for its loader of data, of a step and what is between it and the next one."""
        mean = self.steps.steps.mean + self.steps.between.mean
        return round(mean * self.loader / self.loop) if self.loop else 0

    @property
    def without_loader(self) -> float | None:
        """Steps a second if the next batch was always there; None if that is not known, or changes little."""
        rate, left = self.per_second, self.loop - self.loader
        if rate is None or left <= 0 or self.loader < thresholds.SIGNIFICANT * self.loop:
            return None
        return rate * self.loop / left

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``json.dumps``."""
        return {
            "pid": kernel_id(self.steps.pid) or None,
            "tid": kernel_id(self.steps.tid) or None,
            "rank": self.rank,
            "steps_per_second": self.per_second,
            "mean_ns": self.steps.steps.mean,
            "between_ns": self.steps.between.mean,
            "loader_ns": self.loader_each,
            "without_loader_per_second": self.without_loader,
        }


def paces(found: Iterable[Steps], facts: Facts, jobs: Iterable[Job]) -> dict[str, list[Pace]]:
    """Paces by function, the slowest first."""
    ranks = {rank.pid: rank.number for job in jobs for rank in job.ranks}
    made: dict[str, list[Pace]] = defaultdict(list)
    for each in found:
        if each.steps.count:
            made[each.name].append(Pace(each, ranks.get(each.pid), _loader(each, facts)))
    return {name: sorted(of, key=lambda each: (each.per_second or 0, each.steps.pid)) for name, of in made.items()}


def _loader(steps: Steps, facts: Facts) -> int:
    places = facts.waits_of((steps.pid, steps.tid))
    sites = {place.site for place in places if kind_of_place(place) == SLOW_LOADER}
    return sum(wait.time for part in (steps.steps, steps.between) for wait in part.waits if wait.site in sites)


def pace_lines(found: Mapping[str, Sequence[Pace]]) -> list[str]:
    """``train.py:train_step: 1.2 (rank 3) to 2.1 steps a second in 4 ranks; rank 3 waits 310 ms of a step (37.2 %) for
    its loader of data: with batches always there it would make 1.91.``"""
    return [_line(name, of) for name, of in list(found.items())[: thresholds.STEP_FUNCTIONS]]


def _line(name: str, of: Sequence[Pace]) -> str:
    known = [each for each in of if each.per_second is not None]
    if not known:
        return f"{name}: {plural(sum(each.steps.steps.count for each in of), 'step')}, too few for a rate."
    slowest, text = known[0], f"{name}: {_rate(known[0])}"
    if len(known) > 1:
        text += f" ({_who(slowest)}) to {_rate(known[-1])} steps a second in {_number(known)}"
    else:
        text += " steps a second" + (f" in {_who(slowest)}" if len(of) > 1 else "")
    rate = slowest.without_loader
    if rate is None:
        return f"{text}."
    whose = f"{_who(slowest)} waits" if len(known) > 1 else "it waits"
    part = slowest.loader_each
    text += f"; {whose} {duration(part)} of a step ({share(slowest.loader, slowest.loop)}) for its loader of data"
    return f"{text}: with batches always there it would make {rate:.3g}."


def _rate(pace: Pace) -> str:
    return f"{pace.per_second:.3g}"


def _who(pace: Pace) -> str:
    return f"pid {shown_id(pace.steps.pid)}" if pace.rank is None else f"rank {pace.rank}"


def _number(of: Sequence[Pace]) -> str:
    return f"{count(len(of))} ranks" if all(each.rank is not None for each in of) else plural(len(of), "thread")


def paces_json(found: Mapping[str, Sequence[Pace]]) -> list[dict[str, Any]]:
    """Key ``steps`` of the report: an object per function, with its ``paces``, the slowest first."""
    return [{"name": json_text(name), "paces": [each.to_json() for each in of]} for name, of in found.items()]
