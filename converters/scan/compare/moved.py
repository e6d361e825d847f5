"""Functions that run, and calls, of two sides: rates that are told without a test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...facts import thresholds
from ...facts.frame_names import label
from ...facts.ranks import ranks_of
from ...model import Profile
from ...model.states import RUNNING
from .intervals import names_of
from .judgement import overlap
from .statistic import mean

_Who = tuple[str, int | None, str]


class Moved(NamedTuple):
    """Rates of a function that runs, or of a call: means of the runs. ``process`` and ``name`` are hostile."""

    process: str
    rank: int | None
    name: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        return self.after - self.before


def functions(before: Sequence[Profile], after: Sequence[Profile]) -> tuple[Moved, ...]:
    """Time on a core by process, rank and the innermost function outside the kernel, what differs most first."""
    return _moved(before, after, _functions)


def calls(before: Sequence[Profile], after: Sequence[Profile]) -> tuple[Moved, ...]:
    """Time in calls that were timed, finished or not, what differs most first."""
    return _moved(before, after, _calls)


def _moved(
    before: Sequence[Profile], after: Sequence[Profile], times: Callable[[Profile], Mapping[_Who, int]]
) -> tuple[Moved, ...]:
    """Rates that differ by as much as matters, and are higher on one side than in any run of the other."""
    one, other = ([_rates(run, times(run)) for run in side] for side in (before, after))
    made = []
    for who in {key: None for run in (*one, *other) for key in run}:
        sides = [[run.get(who, 0.0) for run in side] for side in (one, other)]
        if not overlap(*sides):
            made.append(Moved(*who, *map(mean, sides)))
    matter = (each for each in made if abs(each.difference) >= thresholds.COMPARED_LEAST)
    return tuple(sorted(matter, key=lambda each: (-abs(each.difference), str(each))))


def _rates(run: Profile, times: Mapping[_Who, int]) -> dict[_Who, float]:
    return {who: time / run.duration_ns for who, time in times.items()} if run.duration_ns else {}


def _functions(profile: Profile) -> Counter[_Who]:
    """ns on a core by process, rank and the innermost function outside the kernel."""
    found: Counter[_Who] = Counter()
    if "wall" not in [each.name for each in profile.value_types]:
        return found
    column, ranks, names = profile.index("wall"), ranks_of(profile), names_of(profile)
    for sample in profile.samples:
        if not sample.stack or not sample.values[column] or sample.label("state") != RUNNING:
            continue
        leaf = next((each for each in reversed(sample.stack) if each.kind != "kernel"), sample.stack[-1])
        pid = sample.label("pid")
        name = str(sample.label("process") or "")
        process, rank = (names.get(pid, name), ranks.get(pid)) if isinstance(pid, int) else (name, None)
        found[process, rank, label(leaf)] += sample.values[column]
    return found


def _calls(profile: Profile) -> Counter[_Who]:
    found: Counter[_Who] = Counter()
    ranks, names = ranks_of(profile), names_of(profile)
    for call in profile.calls:
        found[names.get(call.pid, call.process), ranks.get(call.pid), call.name] += call.total + call.open_time
    return found
