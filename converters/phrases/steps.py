"""Slow steps in words. Names are unescaped (hostile)."""

from __future__ import annotations

from math import isqrt

from ..base.units import count, duration, share
from ..facts import thresholds
from ..model.steps import SLOW, SlowSteps, Steps


def slow_steps(steps: Steps, slow: SlowSteps) -> str:
    """``Every 5th step of train (number 5, 10, …) takes 71.6 ms in the mean, the others 321 µs: …``"""
    spent, others = slow.spent, slow.others
    number = count(spent.count)
    if slow.every:
        some = f"Every {_ordinal(slow.every)} step of {steps.name} (number {slow.first}, {slow.first + slow.every}, …)"
        text = f"{some} takes {duration(spent.mean)} in the mean"
        many = f"these {number} steps have"
    else:
        text = f"{number} of the steps of {steps.name} {'takes' if spent.count == 1 else 'take'} "
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
    least = thresholds.STEP_PART * (spent.mean - others.mean)
    named = sorted((part for part in parts if part[0] > least), key=lambda part: -part[0])
    return ", ".join(f"{duration(time)} {where}" for time, where in named)


def _where(slow: SlowSteps) -> str:
    """The waits that they have most more of than the others: their time in a slow step."""
    usual = {wait.site: wait.time // slow.others.count for wait in slow.others.waits}
    waits = [(wait.time // slow.spent.count, wait.site) for wait in slow.spent.waits if wait.site.frames]
    more = sorted(((time - usual.get(site, 0), time, site) for time, site in waits), reverse=True)
    least = thresholds.STEP_PART * (slow.spent.mean - slow.others.mean)
    places = [
        f"{duration(time)} a step in {' → '.join(site.frames)}"
        for part, time, site in more[: thresholds.SLOW_PLACES]
        if part > least
    ]
    return f" ({', '.join(places)})" if places else ""


def _ran(slow: SlowSteps) -> str:
    """Functions that slow steps run more of than the others, by samples: their time in a slow step."""
    spent, others = slow.spent, slow.others
    usual = {run.frames: others.estimated(run.samples) // others.count for run in others.ran}
    minor, found = thresholds.STEP_PART * (spent.mean - others.mean), []
    for run in spent.ran:
        time, varies = (spent.estimated(n) // spent.count for n in (run.samples, 2 * isqrt(run.samples)))
        more = time - usual.get(run.frames, 0)
        if run.frames and run.samples >= thresholds.FEW_SAMPLES and more > max(minor, varies):
            found.append((-more, f"{duration(time)} a step in {' → '.join(run.frames)}"))
    places = ", ".join(text for _, text in sorted(found)[: thresholds.SLOW_PLACES])
    return f" ({places}, by {count(spent.samples)} samples)" if places else ""


def _ordinal(number: int) -> str:
    """``20th``, ``3rd``, ``112th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
