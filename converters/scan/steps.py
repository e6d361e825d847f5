"""Iterations of a job: how many steps a second each process makes, and what its loader of data costs in one.

Steps are calls of functions that the user named, or were found: see `summary.found_steps`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..facts.jobs import Job
from ..model.steps import Found, Reader, Spent, Steps
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
    reader: Reader | None = None
    """Threads that end the waits for the next batch, if they are its own, or of processes that it started."""

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
            "steps": self.steps.steps.count,
            "median_ns": self.steps.median,
            "p90_ns": self.steps.p90,
            "max_ns": self.steps.max,
            **_parts_json(self.steps.steps),
            "found": self.steps.found and _found_json(self.steps, self.steps.found),
            "reader": self.reader and _reader_json(self.reader),
        }


def _parts_json(spent: Spent) -> dict[str, Any]:
    """Parts of the time of a step: means of all steps."""
    number = max(spent.count, 1)
    return {
        "on_cpu_ns": spent.on_cpu // number,
        "runnable_ns": spent.runnable // number,
        "blocked_ns": spent.blocked // number,
        "waits": [
            {
                "frames": [json_text(frame) for frame in wait.site.frames],
                "kernel_wait": json_text(wait.site.kernel),
                "time_ns": wait.time // number,
            }
            for wait in spent.waits
        ],
    }


def _found_json(steps: Steps, found: Found) -> dict[str, Any]:
    return {
        "frames": [json_text(frame) for frame in found.place.frames],
        "kernel_wait": json_text(found.place.kernel),
        "intervals": steps.steps.count,
        "deviation_ns": found.deviation,
        "wait_ns": found.waited // max(steps.steps.count, 1),
        "timed": found.is_timed,
    }


def _reader_json(reader: Reader) -> dict[str, Any]:
    makers = reader.makers
    return {
        "threads": [[kernel_id(each.pid), kernel_id(each.tid)] for each in makers[: thresholds.VERDICT_THREADS]],
        "number": len(makers),
        "batches_per_second": reader.per_second,
        "work_ns": reader.work,
        "at_most_per_second": reader.at_most,
    }


def paces(found: Iterable[Steps], facts: Facts, jobs: Iterable[Job]) -> dict[str, list[Pace]]:
    """Paces by function, the slowest first."""
    ranks = {rank.pid: rank.number for job in jobs for rank in job.ranks}
    made: dict[str, list[Pace]] = defaultdict(list)
    for each in found:
        if each.steps.count:
            made[each.title].append(Pace(each, ranks.get(each.pid), _loader(each, facts), _own_reader(each, facts)))
    return {name: sorted(of, key=lambda each: (each.per_second or 0, each.steps.pid)) for name, of in made.items()}


def _own_reader(steps: Steps, facts: Facts) -> Reader | None:
    """The reader if all of its threads are of the process, or of those below it: others serve others, too."""
    reader = steps.reader
    if reader is None or not all(
        each.pid == steps.pid or _is_below(each.pid, steps.pid, facts) for each in reader.makers
    ):
        return None
    return reader


def _is_below(pid: int, above: int, facts: Facts) -> bool:
    origin = facts.origins.get(pid)
    return origin is not None and any(each.pid == above for each in origin.ancestors)


def _loader(steps: Steps, facts: Facts) -> int:
    places = facts.waits_of((steps.pid, steps.tid))
    sites = {place.site for place in places if kind_of_place(place) == SLOW_LOADER}
    return sum(wait.time for part in (steps.steps, steps.between) for wait in part.waits if wait.site in sites)


def paces_json(found: Mapping[str, Sequence[Pace]]) -> list[dict[str, Any]]:
    """Key ``steps`` of the report: an object per function, with its ``paces``, the slowest first."""
    return [{"name": json_text(name), "paces": [each.to_json() for each in of]} for name, of in found.items()]
