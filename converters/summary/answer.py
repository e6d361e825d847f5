"""Says in one or two sentences where the time goes, from the numbers of a summary and no further than they go."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.units import duration, plural, share
from .figures import Running, Summary, Wait, Who

_SIGNIFICANT = 0.05
"""A wait is worth the first sentence from this share of its threads' time, and of all active threads' time."""


def answer(summary: Summary) -> tuple[str, ...]:
    """One or two sentences. Names in them are as they are: hostile.

    What holds threads up (a lock, a device, memory, the cores) comes before waits that others end: a
    thread that waits on a condition variable shows the effect, not the cause.
    """
    if summary.weight and summary.weight.name != "wall" and summary.times.threads:
        return _of_samples(summary)
    return _of_waits(summary)


def _of_waits(summary: Summary) -> tuple[str, ...]:
    # What the kernel's own threads do when there is nothing to do answers nothing.
    waits = [wait for wait in summary.waits if not wait.runnable and (wait.frames or not wait.idle)]
    if not summary.times.threads:
        return ("No thread was seen.",)
    if not waits and not summary.times.wall:
        return ("No wait was recorded.",)
    if not waits and not summary.active.wall:
        return (f"Nothing but idle threads: {plural(summary.times.threads, 'thread')}, all of them waiting for work.",)
    significant = [wait for wait in waits if not wait.idle and _is_significant(wait, summary)]
    causes = [wait for wait in significant if not wait.told_by_others]
    top = next(iter(causes or significant), None)
    longest = max(waits, key=lambda wait: wait.time, default=None)
    busy = summary.active.on_cpu + summary.active.runnable
    if longest is None or (busy > (top.time if top else 0) and busy >= _SIGNIFICANT * summary.active.wall):
        first, second = _busy_sentence(summary), top or longest
        if summary.weight and (work := _work_sentence(summary)):
            return first, work
    else:
        told = top or longest
        first = _wait_sentence(told)
        second = max((wait for wait in waits if wait is not told), key=lambda wait: wait.time, default=None)
    if second is None or not (second in significant or second.time >= _SIGNIFICANT * summary.times.wall):
        return (first,)
    return first, _wait_sentence(second)


def _is_significant(wait: Wait, summary: Summary) -> bool:
    return wait.time >= _SIGNIFICANT * wait.threads_wall and wait.time >= _SIGNIFICANT * summary.active.wall


def _busy_sentence(summary: Summary) -> str:
    times, everyone = summary.active, summary.times.threads
    if times.threads == everyone:
        whom = _everyone(everyone)
    else:
        whom = f"the threads that are not idle ({times.threads} of {everyone})"
    sentence = f"{share(times.on_cpu, times.wall)} of the wall time of {whom} is on-CPU"
    return f"{sentence}, {share(times.runnable, times.wall)} is waiting for a core."


def _of_samples(summary: Summary) -> tuple[str, ...]:
    """Where there are only samples: what runs, and how much of the time that is."""
    work = _work_sentence(summary) or "No sample found a thread at work."
    if not summary.times.wall:
        return (work,)
    times = summary.times
    rest = f"{share(times.on_cpu, times.wall)} of the wall time of {_everyone(times.threads)} is on-CPU"
    if times.on_cpu * 2 < times.wall:
        return work, f"{rest}: trace-wall or trace-offcpu tells where the rest goes."
    return work, f"{rest}, {share(times.runnable, times.wall)} is waiting for a core."


def _work_sentence(summary: Summary) -> str:
    """What most of the weight is spent on; "" when nothing stands out."""
    total = sum(work.weight for work in summary.running)
    top = next((work for work in summary.running if work.samples and work.weight >= _SIGNIFICANT * total), None)
    if top is None or summary.weight is None:
        return ""
    what = "on-CPU time" if summary.weight.unit == "nanoseconds" else summary.weight.name
    where = " → ".join(top.frames) or "the kernel"
    if top.in_kernel and top.frames:
        where += ", in the kernel"
    much = share(top.weight, top.threads_weight)
    return f"{much} of the {what} of {_subject(top)} is in {where} ({plural(top.samples, 'sample')})."


def _everyone(threads: int) -> str:
    return "the thread" if threads == 1 else f"all {threads} threads"


def _wait_sentence(wait: Wait) -> str:
    much = share(wait.time, wait.threads_wall) if wait.threads_wall else duration(wait.time)
    where = " → ".join(wait.frames)
    text = f"{much} of the time of {_subject(wait)} is blocked" + (f" in {where}" if where else "")
    if wait.kernel:
        text += f", waiting in {wait.kernel}"
    details = [plural(wait.processes, "process")] if wait.processes > 1 else []
    details += [plural(wait.count, "wait"), f"mean {duration(wait.mean)}", f"max {duration(wait.max)}"]
    text += f" ({', '.join(details)})"
    return text + (": idle, or waiting for others." if wait.idle else ".")


def _subject(wait: Wait | Running) -> str:
    """``the 8 worker threads of demo``; ``8 of the 12 worker threads of demo`` when others have that name too."""
    names = list(dict.fromkeys(who.pattern for who in wait.who))
    processes = list(dict.fromkeys(who.process for who in wait.who))
    of = f" of {processes[0]}" if len(processes) == 1 else ""
    if len(names) > 1:
        return f"{wait.threads} threads{of} ({_listed(names)})"
    one = "thread" if wait.threads_alike == 1 else "threads"
    if wait.threads == wait.threads_alike:
        number = "" if wait.threads == 1 else f"{wait.threads} "
    else:
        number = f"{wait.threads} of the {wait.threads_alike} "
        return f"{number}{names[0]} {one}{of}"
    return f"the {number}{names[0]} {one}{of}"


def people(who: Sequence[Who]) -> str:
    """Whose wait it is, for a table: ``8 × demo/worker, 2 × feeder (main)``; numbered names are one: ``pool-*``."""
    kinds: dict[str, int] = {}
    for entry in who:
        name = f"{entry.process} (main)" if entry.main else f"{entry.process}/{entry.pattern}"
        kinds[name] = kinds.get(name, 0) + entry.threads
    return _listed([f"{threads} × {name}" if threads > 1 else name for name, threads in kinds.items()])


def _listed(names: Sequence[str], limit: int = 3) -> str:
    if len(names) <= limit + 1:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more names"
