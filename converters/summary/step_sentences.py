"""Steps in words, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.text import json_text
from ..base.units import duration, plural, share
from ..facts import thresholds
from ..facts.identity import kernel_id
from ..model.steps import SlowSteps, Spent, Steps
from ..phrases.steps import slow_steps


def each_function(found: Sequence[Steps]) -> list[Steps]:
    """The thread with the longest time of every function, then the other threads; otherwise in their order."""
    seen: set[str] = set()
    firsts: list[Steps] = []
    others: list[Steps] = []
    for each in found:
        (others if each.name in seen else firsts).append(each)
        seen.add(each.name)
    return firsts + others


def sentences(found: Sequence[Steps]) -> tuple[str, ...]:
    """Sentences on the functions with the longest times, each in the thread with the longest one, its slow steps first;
    none without a whole step."""
    functions = each_function(found)[: min(len({each.name for each in found}), thresholds.STEP_FUNCTIONS)]
    told: list[str] = []
    for each in functions:
        if each.steps.count:
            told += [slow_steps(each, each.slow)] if each.slow else []
            told.append(_sentence(each))
    return tuple(told)


def _sentence(first: Steps) -> str:
    spent, between = first.steps, first.between
    text = f"{plural(spent.count, 'step')} of {first.name} take {duration(spent.mean)} in the mean"
    text += f" in thread {first.tid} of {first.process}: {share(spent.on_cpu, spent.wall)} of it on a core"
    text += f", {share(spent.blocked, spent.wall)} blocked"
    if spent.waits and spent.waits[0].site.frames:
        most = spent.waits[0]
        text += f" ({share(most.time, spent.wall)} in {' → '.join(most.site.frames)})"
    if between.count:
        loop = spent.wall + between.wall
        text += f"; {duration(between.mean)} are between two steps, {share(between.wall, loop)} of the loop"
    return f"{text}."


def steps_json(steps: Steps) -> dict[str, Any]:
    """Times in ns, shares as fractions of 1, null when unknown."""
    loop = steps.steps.wall + steps.between.wall
    return {
        "name": json_text(steps.name),
        "process": json_text(steps.process),
        "pid": kernel_id(steps.pid) or None,
        "thread": json_text(steps.thread),
        "tid": kernel_id(steps.tid) or None,
        "steps_per_second": steps.per_second,
        "median_ns": steps.median,
        "p90_ns": steps.p90,
        "max_ns": steps.max,
        "not_whole": steps.not_whole,
        "steps": spent_json(steps.steps),
        "between": spent_json(steps.between),
        "between_share": steps.between.wall / loop if loop else None,
        "slowest": [
            {"number": each.number, "begin_ns": each.begin, "before_ns": each.before, **spent_json(each.spent)}
            for each in steps.slowest
        ],
        "slow": _slow_json(steps.slow) if steps.slow else None,
    }


def _slow_json(slow: SlowSteps) -> dict[str, Any]:
    return {
        "every": slow.every,
        "first": slow.first,
        "steps": spent_json(slow.spent),
        "others": spent_json(slow.others),
    }


def spent_json(spent: Spent) -> dict[str, Any]:
    """Times in ns, places as lists of frames."""
    return {
        "count": spent.count,
        "wall_ns": spent.wall,
        "mean_ns": spent.mean,
        "on_cpu_ns": spent.on_cpu,
        "blocked_ns": spent.blocked,
        "runnable_ns": spent.runnable,
        "waits": [
            {
                "frames": [json_text(frame) for frame in wait.site.frames],
                "kernel_wait": json_text(wait.site.kernel),
                "time_ns": wait.time,
                "count": wait.number,
            }
            for wait in spent.waits
        ],
        "samples": spent.samples,
        "ran": [{"frames": [json_text(frame) for frame in run.frames], "samples": run.samples} for run in spent.ran],
    }
