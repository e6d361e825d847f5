"""Steps in words, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

from ..base.text import json_text
from ..base.units import count, duration, plural, share
from ..facts.identity import kernel_id
from ..model.steps import SLOW, SlowSteps, Spent, Steps

_FUNCTIONS = 3
"""How many functions have a sentence."""
_PLACES = 2
"""How many waits of slow steps are named."""
_ENOUGH_SAMPLES = 10
"""What has fewer samples is not named: its time is hardly known within a half."""
_MINOR = 20
"""Parts of less than 1/this of what slow steps take more are not named."""


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
    """Sentences on the functions with the longest times, each in the thread with the longest one; none without
    a whole step."""
    functions = each_function(found)[: min(len({each.name for each in found}), _FUNCTIONS)]
    told = [text for each in functions if each.steps.count for text in (_sentence(each), _of_slow(each))]
    return tuple(filter(None, told))


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


def _of_slow(steps: Steps) -> str:
    """The group of slow steps, and what their more time is made of."""
    slow = steps.slow
    if not slow:
        return ""
    spent, others = slow.spent, slow.others
    number = count(spent.count)
    if slow.every:
        some = f"Every {_ordinal(slow.every)} step of {steps.name} (number {slow.first}, {slow.first + slow.every}, …)"
        text = f"{some} takes {duration(spent.mean)} in the mean"
        many = f"these {number} steps have"
    else:
        text = f"{number} of these steps of {steps.name} {'takes' if spent.count == 1 else 'take'} "
        text += f"more than {SLOW} times the median, {duration(spent.mean)} in the mean"
        many = f"{'it has' if spent.count == 1 else 'they have'}"
    text += f", the others {duration(others.mean)}: {many} {share(spent.wall, steps.steps.wall)} of the steps' time"
    return f"{text}; what {'it takes' if spent.count == 1 else 'they take'} more: {_more(slow)}."


def _more(slow: SlowSteps) -> str:
    """``109 ms runnable without a core, 53.6 ms on a core, 7.24 ms blocked (7.20 ms a step in save → fsync)``."""
    spent, others = slow.spent, slow.others
    on_cpu, blocked, runnable = (
        part // spent.count - other // others.count
        for part, other in (
            (spent.on_cpu, others.on_cpu),
            (spent.blocked, others.blocked),
            (spent.runnable, others.runnable),
        )
    )
    core, waits = f"on a core{_ran(slow)}", f"blocked{_where(slow)}"
    parts = [(on_cpu, core), (runnable, "runnable without a core"), (blocked, waits)]
    least = (spent.mean - others.mean) // _MINOR
    named = sorted((part for part in parts if part[0] > least), key=lambda part: -part[0])
    return ", ".join(f"{duration(time)} {where}" for time, where in named)


def _where(slow: SlowSteps) -> str:
    """The waits that they have most more of than the others: their time in a slow step."""
    usual = {wait.site: wait.time // slow.others.count for wait in slow.others.waits}
    waits = [(wait.time // slow.spent.count, wait.site) for wait in slow.spent.waits if wait.site.frames]
    more = sorted(((time - usual.get(site, 0), time, site) for time, site in waits), reverse=True)[:_PLACES]
    least = (slow.spent.mean - slow.others.mean) // _MINOR
    places = [f"{duration(time)} a step in {' → '.join(site.frames)}" for part, time, site in more if part > least]
    return f" ({', '.join(places)})" if places else ""


def _ran(slow: SlowSteps) -> str:
    """Text on what slow steps run more of than the others, by samples: its time in a slow step."""
    spent, others = slow.spent, slow.others
    usual = {run.frames: others.estimated(run.samples) // others.count for run in others.ran}
    minor, found = (spent.mean - others.mean) // _MINOR, []
    for run in spent.ran:
        time, varies = (spent.estimated(n) // spent.count for n in (run.samples, 2 * isqrt(run.samples)))
        more = time - usual.get(run.frames, 0)
        if run.frames and run.samples >= _ENOUGH_SAMPLES and more > max(minor, varies):
            found.append((-more, f"{duration(time)} a step in {' → '.join(run.frames)}"))
    places = ", ".join(text for _, text in sorted(found)[:_PLACES])
    return f" ({places}, by {count(spent.samples)} samples)" if places else ""


def _ordinal(number: int) -> str:
    """``20th``, ``3rd``, ``112th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


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
        "max_ns": steps.max,
        "not_whole": steps.not_whole,
        "steps": _spent_json(steps.steps),
        "between": _spent_json(steps.between),
        "between_share": steps.between.wall / loop if loop else None,
        "slowest": [
            {"number": each.number, "begin_ns": each.begin, "before_ns": each.before, **_spent_json(each.spent)}
            for each in steps.slowest
        ],
        "slow": _slow_json(steps.slow) if steps.slow else None,
    }


def _slow_json(slow: SlowSteps) -> dict[str, Any]:
    return {
        "every": slow.every,
        "first": slow.first,
        "steps": _spent_json(slow.spent),
        "others": _spent_json(slow.others),
    }


def _spent_json(spent: Spent) -> dict[str, Any]:
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
