"""Whole runs of a command: how long each takes before and after, and in what the difference is.

A command that the trace has started, and that ended before the trace did, is in the capture from its begin to its end:
its times are those of the job, however long it takes. Times per second of the trace do not tell that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...facts import thresholds
from ...facts.frame_names import bare, function_name, is_named, label, without_line
from ...facts.plumbing import in_library, only_calls
from ...facts.stacks import Stacks
from ...facts.wait_sites import site_of
from ...model import Profile, Stack, ThreadTimes
from ...model.states import RUNNABLE as WAITS_FOR_CORE
from ...model.states import RUNNING
from .intervals import names_of
from .statistic import mean, welch
from .steps import BLOCKED, ON_CPU, RUNNABLE, Run, Side, StepChange, StepKey


@dataclass(frozen=True)
class _Whole:
    """One whole run."""

    name: str
    """Name of the command (hostile)."""
    run: Run
    functions: Counter[str]
    """ns on a core of the main thread in each function, and in what it called."""
    depths: Counter[str]
    """Sums of these times by how far inside the function is: 0 for the outermost one."""


def run_changes(before: Sequence[Profile], after: Sequence[Profile]) -> list[StepChange]:
    """The runs of both sides, as a step each, tested if there are enough; none if one of them is not whole, or a side
    has several commands. ``before``, ``after``: profiles with the names of `comparing.named`."""
    sides = [list(map(_whole, runs)) for runs in (before, after)]
    one, other = ([each for each in side if each] for side in sides)
    names = [{each.name for each in side} for side in (one, other)]
    if [len(one), len(other)] != [len(before), len(after)] or [len(each) for each in names] != [1, 1]:
        return []
    key = StepKey(names[0].pop(), None, names[1].pop())
    first, second = (Side([each.run for each in side]) for side in (one, other))
    enough = min(len(one), len(other)) >= thresholds.COMPARED_RUNS
    test = welch(first.means, second.means) if enough else None
    return [StepChange(key, first, second, test, is_run=True, mostly=_mostly(one, other))]


def _whole(profile: Profile) -> _Whole | None:
    """The run of the command that the trace has started; None if there is none, or if it goes on."""
    launched = {(each.pid, each.pid_life) for each in profile.origins if each.launched}
    mains = [each for each in profile.threads if each.tid == each.pid and (each.pid, each.pid_life) in launched]
    if len(mains) != 1 or not mains[0].exited or mains[0].count != 1:
        return None
    return _run(profile, mains[0])


def _run(profile: Profile, main: ThreadTimes) -> _Whole | None:
    if "wall" not in [each.name for each in profile.value_types]:
        return None
    column, stacks = profile.index("wall"), Stacks()
    parts: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    depths: Counter[str] = Counter()
    for sample in profile.samples:
        if (sample.label("pid"), sample.label("tid")) != (main.pid, main.tid) or not sample.values[column]:
            continue
        state, time = sample.label("state"), sample.values[column]
        if state == RUNNING:
            for depth, name in enumerate(dict.fromkeys(_functions(sample.stack))):
                functions[name] += time
                depths[name] += depth * time
        elif state != WAITS_FOR_CORE:
            parts[" → ".join(map(without_line, site_of(stacks.of(sample.stack)).frames))] += time
    rest = main.wall - main.on_cpu - main.runnable - parts.total()
    parts += Counter({ON_CPU: main.on_cpu, RUNNABLE: main.runnable, BLOCKED: max(rest, 0)})
    return _Whole(names_of(profile).get(main.pid, main.process), Run(1, 0, parts), functions, depths)


def _functions(stack: Stack) -> Iterator[str]:
    """Functions of user space that have names, and do not only call others; outermost first."""
    for frame in stack:
        if frame.kind != "kernel" and is_named(frame) and not only_calls(function_name(frame.name)):
            yield bare(frame.name) if in_library(frame) else label(frame)


def _mostly(before: Sequence[_Whole], after: Sequence[_Whole]) -> str:
    """The innermost function in which most of what the main thread runs longer, or shorter, is; "" if there is none."""
    names = {name: None for run in (*before, *after) for name in run.functions}
    sides = [{name: mean([run.functions[name] for run in side]) for name in names} for side in (before, after)]
    more = mean([run.run.parts[ON_CPU] for run in after]) - mean([run.run.parts[ON_CPU] for run in before])
    sign = 1 if more > 0 else -1
    moved = {name: sign * (sides[1][name] - sides[0][name]) for name in names}
    much = [name for name, time in moved.items() if time >= thresholds.MOSTLY_INSIDE * abs(more) > 0]
    runs = (*before, *after)
    inside = {name: sum(run.depths[name] for run in runs) / sum(run.functions[name] for run in runs) for name in much}
    return max(much, key=lambda name: (inside[name], name), default="")
