"""Functions in which processes run, by samples: where a verdict on running threads has no single place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.frame_names import without_line
from ..facts.inner_function import Names, with_inner


class Hot(NamedTuple):
    """Functions in which processes run. Names are unescaped (hostile)."""

    samples: int
    """Number of all samples of these processes on cores."""
    places: tuple[tuple[tuple[str, ...], int], ...] = ()
    """Frames, outermost first, without lines; and the number of samples there. Most first."""

    @property
    def told(self) -> list[tuple[tuple[str, ...], int]]:
        """Functions that are worth telling, if there are enough samples to tell anything."""
        if self.samples < thresholds.FEW_SAMPLES:
            return []
        enough = thresholds.TELLING * self.samples
        return [each for each in self.places if each[1] >= enough][: thresholds.HOT_NAMED]


NOTHING = Hot(0)


def hot_of(facts: Facts, pids: Collection[int]) -> Hot:
    """Functions in which the threads of these processes run; `NOTHING` without samples."""
    found: Counter[tuple[str, ...]] = Counter()
    inner: dict[tuple[str, ...], Counter[Names]] = defaultdict(Counter)
    for (pid, _), runs in facts.runs.items():
        if pid in pids:
            for run, total in runs.items():
                frames = tuple(map(without_line, run.site.frames))
                found[frames] += total.samples
                inner[frames].update(total.inner)
    told: Counter[tuple[str, ...]] = Counter()
    for frames, number in found.items():
        told[with_inner(frames, inner[frames], number)] += number
    return _sorted(told)


def together(several: Iterable[Hot]) -> Hot:
    """Functions of several processes as one."""
    found: Counter[tuple[str, ...]] = Counter()
    for each in several:
        found.update(dict(each.places))
    return _sorted(found)


def _sorted(found: Counter[tuple[str, ...]]) -> Hot:
    places = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
    return Hot(found.total(), tuple((frames, number) for frames, number in places if frames))
