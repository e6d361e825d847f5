"""Says that there are few samples, and how to get more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..base.units import plural, share
from ..facts import thresholds
from ..facts.wait_sums import Thread
from ..model import Profile
from ..model.remarks import Comment, NotSampled, SamplesLeftOut
from ..model.states import RUNNABLE, RUNNING
from ..phrases.remarks import why_not_sampled
from .figures import Running, Summary

_NOT_SAMPLED = "[not sampled]"


def few_of_threads(profile: Profile) -> str:
    """A sentence if waits are known by samples, and half of the threads' time is of threads with few; else ""."""
    names = [value_type.name for value_type in profile.value_types]
    if not {"samples", "count"} <= set(names):
        return ""
    column, number = names.index("samples"), Counter[Thread]()
    of_waits = 0
    for sample in profile.samples:
        if samples := sample.values[column]:
            labels = dict(sample.labels)
            state, pid, tid = (labels.get(key) for key in ("state", "pid", "tid"))
            if isinstance(pid, int) and isinstance(tid, int):
                number[pid, tid] += samples
            if not str(state).startswith((RUNNING, RUNNABLE)):
                of_waits += samples
    if not of_waits:
        return ""
    middle = _middle([(number[times.pid, times.tid], times.wall) for times in profile.threads])
    if middle >= thresholds.FEW_SAMPLES:
        return ""
    many = f"only some {plural(middle, 'sample')} of each thread" if middle else "hardly any samples of most threads"
    processes = len({times.pid for times in profile.threads})
    help_ = _help(profile.comments, processes, len(profile.threads))
    return f"There are {many}, so that shares of places are rough: {help_}."


def _is_too_slow(comments: Sequence[Comment]) -> bool:
    """Whether the engine cannot sample more often."""
    return any(isinstance(comment, SamplesLeftOut) for comment in comments)


def _help(comments: Sequence[Comment], processes: int, threads: int) -> str:
    """Ways to get more samples."""
    fewer = "trace fewer processes (-p)" if processes > 1 else ""
    if not _is_too_slow(comments):
        ways = [fewer, "trace for longer (-d)", "sample more often (-F)"]
    elif fewer or threads == 1:
        ways = [fewer, "trace for longer (-d)"]
    else:
        ways = ["trace one thread (-t TID)", "trace for longer (-d)"]
    *others, last = filter(None, ways)
    return f"{', '.join(others)}{',' if len(others) > 1 else ''} or {last}" if others else last


def _middle(numbers: Sequence[tuple[int, int]]) -> int:
    """The median of numbers with their weights."""
    half, seen = sum(weight for _, weight in numbers) / 2, 0
    for number, weight in sorted(numbers):
        seen += weight
        if seen >= half:
            return number
    return 0


def few_of_work(summary: Summary, samples: int) -> str:
    """Sentence in place of one on what runs, of which ``samples`` were taken."""
    more = "trace for longer (-d)"
    if not _is_too_slow(summary.comments):
        more += ", or sample more often (-F)"
    return f"There are too few samples to tell what runs ({samples}): {more}."


def hidden_part(summary: Summary, total: int) -> str:
    """A sentence if most of what runs was not sampled; else ""."""
    weight = _not_sampled(summary.running)
    if weight < thresholds.NOT_SAMPLED * total or not weight:
        return ""
    known = (f": {why_not_sampled(each)}" for each in summary.comments if isinstance(each, NotSampled))
    return f"{share(weight, total)} of the time on cores was not sampled{next(known, '')}."


def _not_sampled(running: Sequence[Running]) -> int:
    return sum(work.weight for work in running if work.frames == (_NOT_SAMPLED,))
