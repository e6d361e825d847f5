"""Ranks whose main threads are in one collective operation for all of the trace: blocked, or polling on a core.

That a thread waits without an end is seen: it did not move once. One that polls looks the same in a job that does
nothing but all-reduce: all that was sampled of either is in the operation. Only that the trace has seen all calls of
the process, and that it made none, tells that it never came out.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.runs import Run
from ..facts.wait_functions import COLLECTIVE, FOR_ALL_RANKS
from ..facts.wait_kinds import CORE
from ..facts.wait_sums import Place, Thread
from ..facts.watched_functions import WATCHED
from .rank_states import standing_for


class Stands(NamedTuple):
    """A thread that stands for a rank, and is in an operation all the time."""

    thread: Thread
    frames: tuple[str, ...]
    """Place; hostile."""
    meets: bool
    """Whether it waits for other ranks; for the GPU otherwise."""
    for_all: bool
    """Whether all ranks take part in the operation."""
    place: Place | None
    """Place where it is blocked; None: it polls."""

    @property
    def operation(self) -> tuple[str, ...]:
        """Equal for ranks that are in one operation: how they wait inside of it may differ."""
        return _down_to_operation(self.frames)


def standing_in(facts: Facts, pid: int) -> Stands | None:
    """The thread that stands for a process, and the operation in which it has been all the time."""
    for thread in standing_for(facts, pid):
        found = _blocked(facts, thread) if thread in facts.roles.still else _polling(facts, thread)
        if found:
            return found
    return None


def _blocked(facts: Facts, thread: Thread) -> Stands | None:
    for place, total in facts.waits_of(thread).items():
        meets = place.wait.job == COLLECTIVE
        if total.count <= 1 and (meets or place.wait.gpu):
            return Stands(thread, place.site.frames, meets, place.wait.for_all, place)
    return None


def _polling(facts: Facts, thread: Thread) -> Stands | None:
    """None unless all samples are in one operation of which a call would have been seen, and none was."""
    if facts.watched.get(thread[0]) != 0 or _waits_elsewhere(facts, thread):
        return None
    samples: Counter[Run] = Counter()
    for run, total in facts.runs.get(thread, {}).items():
        samples[run] += total.samples
    samples += Counter()  # without those of no samples
    operations = {run.operation for run in samples}
    operation = operations.pop() if len(operations) == 1 else ""
    if not WATCHED.fullmatch(operation) or samples.total() < thresholds.FEW_SAMPLES:
        return None
    meets = any(run.job == COLLECTIVE for run in samples)
    most = max(samples, key=lambda run: (samples[run], run))
    return Stands(thread, _down_to_operation(most.site.frames), meets, bool(FOR_ALL_RANKS.fullmatch(operation)), None)


def _waits_elsewhere(facts: Facts, thread: Thread) -> bool:
    """Whether it is blocked in other operations, or in none. While it waits for a core, it is where it ran."""
    blocked = ((place, total) for place, total in facts.waits_of(thread).items() if place.kind != CORE)
    time = sum(total.time for place, total in blocked if place.wait.job != COLLECTIVE and not place.wait.gpu)
    return time > thresholds.POLLS_ELSEWHERE * facts.threads[thread].wall


def _down_to_operation(frames: tuple[str, ...]) -> tuple[str, ...]:
    """Frames without those inside of the operation, which change all the time in one that polls."""
    places = [place for place, name in enumerate(frames, 1) if WATCHED.fullmatch(name)]
    return frames[: places[-1]] if places else frames
