"""Steps of threads in lines: how many a second, how long they take, and by what they were found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..facts.identity import shown_id
from .steps import Pace


def pace_lines(found: Mapping[str, Sequence[Pace]], shown: Collection[int] = ()) -> list[str]:
    """``train.py:train_step: 1.2 (rank 3) to 2.1 steps a second in 4 ranks; rank 3 waits 310 ms of a step (37.2 %) for
    its loader of data: with batches always there it would make 1.91.`` Of steps that nobody named, those of ranks and
    of the processes ``shown``, with the evidence: ``By time alone, a step is from one end of the wait in get to …``"""
    named = [(name, of) for name, of in found.items() if of[0].steps.found is None]
    others = [(name, told) for name, of in found.items() if (told := _told(of, shown))]
    lines = [_line(name, of) for name, of in named[: thresholds.STEP_FUNCTIONS]]
    return lines + [_line(evidence(name, of[0]), of) + _parts(of) for name, of in others[: thresholds.FOUND_STEPS]]


def _told(of: Sequence[Pace], shown: Collection[int]) -> list[Pace]:
    """Steps that nobody named, of processes that matter."""
    return [each for each in of if each.steps.found and (each.rank is not None or each.steps.pid in shown)]


def _line(name: str, of: Sequence[Pace]) -> str:
    known = [each for each in of if each.per_second is not None]
    if not known:
        return f"{name}: {plural(sum(each.steps.steps.count for each in of), 'step')}, too few for a rate."
    slowest, text = known[0], f"{name}: {_rate(known[0])}"
    if len(known) > 1:
        text += f" ({who(slowest)}) to {_rate(known[-1])} steps a second in {_number(known)}"
    else:
        text += " steps a second" + (f" in {who(slowest)}" if len(of) > 1 else "")
    whom = who(slowest) if len(known) > 1 else ""
    return f"{text}{_lengths(slowest, whom)}{_loader(slowest, whom)}{_reader(slowest)}."


def _lengths(pace: Pace, whom: str) -> str:
    """`` (median 24.1 ms, p90 30.2 ms, max 91.0 ms)``"""
    steps = pace.steps
    if steps.p90 is None or steps.steps.count < thresholds.STEPS_FOR_MEDIAN:
        return ""
    whose = f"{whom}: " if whom else ""
    return f" ({whose}median {duration(steps.median)}, p90 {duration(steps.p90)}, max {duration(steps.max)})"


def _loader(pace: Pace, whom: str) -> str:
    rate = pace.without_loader
    if rate is None:
        return ""
    part = f"{duration(pace.loader_each)} of a step ({share(pace.loader, pace.loop)})"
    return f"; {whom or 'it'} waits {part} for its loader of data: with batches always there it would make {rate:.3g}"


def _reader(pace: Pace) -> str:
    """Threads that make what a step waits for, and how many they could make; "" if the step hardly waits for them."""
    reader, found = pace.reader, pace.steps.found
    waited = max(pace.loader, found.waited if found else 0)
    if reader is None or reader.at_most is None or waited < thresholds.SIGNIFICANT * pace.loop:
        return ""
    number = len(reader.makers)
    most = f"{reader.at_most:.3g} a second at most"
    if number == 1:
        return f"; 1 thread ends these waits, and takes {duration(reader.work)} for each: {most}"
    return f"; {count(number)} threads end these waits, and one takes {duration(reader.work)} for each: together {most}"


def evidence(name: str, pace: Pace) -> str:
    """``By time alone, a step is from one end of the wait in get to the next (…)``; "" for what the user named."""
    steps, found = pace.steps, pace.steps.found
    if found is None:
        return ""
    shows = f"{plural(steps.steps.count, 'interval')}, MAD {share(found.deviation, steps.median)} of the median"
    shows += "; one that need not wait there is part of the step before"
    timer = ", which a timer ends," if found.is_timed else ""
    return f"By time alone, a step is from one end of the wait in {name}{timer} to the next ({shows})"


def _parts(of: Sequence[Pace]) -> str:
    """`` Of a step, 40.0 % is in this wait, 35.1 % on a core, 12.0 % in sync → read.`` Of the slowest one."""
    pace = of[0]
    spent, found = pace.steps.steps, pace.steps.found
    assert found is not None
    elsewhere = [(wait.time, " → ".join(wait.site.frames)) for wait in spent.waits if wait.site != found.place]
    parts = [
        (found.waited, "in this wait"),
        (spent.on_cpu, "on a core"),
        (spent.runnable, "waiting for a core"),
        *((time, f"in {place}") for time, place in elsewhere if place),
    ]
    told = sorted((part for part in parts if part[0] >= thresholds.TELLING * spent.wall), key=lambda part: -part[0])
    what = ", ".join(f"{share(time, spent.wall)} {where}" for time, where in told)
    whose = f" of {who(pace)}" if len(of) > 1 else ""
    return f" Of a step{whose}: {what}." if what else ""


def _rate(pace: Pace) -> str:
    return f"{pace.per_second:.3g}"


def who(pace: Pace) -> str:
    """``rank 3``, or ``pid 4711``."""
    return f"pid {shown_id(pace.steps.pid)}" if pace.rank is None else f"rank {pace.rank}"


def _number(of: Sequence[Pace]) -> str:
    return f"{count(len(of))} ranks" if all(each.rank is not None for each in of) else plural(len(of), "thread")
