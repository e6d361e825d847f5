"""Threads burn cores while they wait: they ask again and again whether something has happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from ..facts import thresholds
from ..facts.call_kinds import ASKING
from ..facts.facts import Facts
from ..facts.runtimes import PROGRESS
from ..facts.wait_kinds import THREAD
from ..facts.wait_sums import Thread
from ..model.states import PREEMPTED
from .causes import causes_among, own_kinds
from .finding import Finding, Key, by_time, running
from .verdict import GPU, POLLING, Verdict

RULE = "polling"
_Times = Counter[tuple[tuple[str, ...], str, bool]]
"""Samples, or preemptions, by place and call, and whether it waits for a GPU."""


class Polling(NamedTuple):
    """The detail of such a verdict."""

    frames: tuple[str, ...]
    """Place where the threads ask most often."""
    call: str
    """The function of CUDA for which it waits, that of a library's thread, or the system call."""
    share: float
    """Part of their time on cores, from 0 to 1."""


def find(facts: Facts) -> list[Verdict]:
    """One for threads of one name, longest first."""
    groups: dict[Key, dict[Thread, _Times]] = defaultdict(dict)
    for thread in facts.own:
        times = facts.threads[thread]
        if times.on_cpu + times.runnable >= thresholds.POLLS_RUN * times.wall > 0:
            seen = _seen(facts, thread)
            asking = sum(number for place, number in seen.items() if _asks(place))
            if seen.total() >= thresholds.POLLS_SEEN and asking >= thresholds.POLLS_IN * seen.total():
                groups[facts.process_of(thread), facts.name_of(thread)][thread] = seen
    polling = {thread for members in groups.values() for thread in members}
    found = [_verdict(facts, members, polling) for members in groups.values()]
    return sorted(found, key=lambda verdict: by_time(verdict.finding) if verdict.finding else (0, ()))


def _seen(facts: Facts, thread: Thread) -> _Times:
    """Places where a thread runs: by samples, or by its preemptions."""
    times: _Times = Counter()
    if facts.runs:
        for run, total in facts.runs.get(thread, {}).items():
            times[run.site.frames, run.gpu or run.polls or run.call, bool(run.gpu)] += total.samples
        return times
    for place, of in facts.waits_of(thread).items():
        if place.state == PREEMPTED:
            times[place.site.frames, place.wait.gpu or place.wait.call, bool(place.wait.gpu)] += of.count
    return times


def _asks(place: tuple[tuple[str, ...], str, bool]) -> bool:
    _, call, of_gpu = place
    return of_gpu or call in ASKING or call in PROGRESS


def _verdict(facts: Facts, members: dict[Thread, _Times], polling: set[Thread]) -> Verdict:
    finding = running(facts, members)
    seen = sum(members.values(), _Times())
    asking = _Times({place: number for place, number in seen.items() if _asks(place)})
    (frames, call, of_gpu), _ = max(asking.items(), key=lambda entry: (entry[1], entry[0]))
    detail = Polling(frames, call, asking.total() / seen.total())
    kind = GPU if of_gpu else POLLING
    if call in PROGRESS:
        return Verdict(RULE, kind, finding.time, thresholds.PROGRESS_SAVES, finding.pids, finding, detail=detail)
    return Verdict(RULE, kind, finding.time, 1, finding.pids, finding, _cause(facts, finding, polling), detail=detail)


def is_wanted(verdict: Verdict) -> bool:
    """Whether a verdict is on threads of a library that poll for as long as it is at work: they explain no waits."""
    return isinstance(verdict.detail, Polling) and verdict.detail.call in PROGRESS


def _cause(facts: Facts, finding: Finding, polling: set[Thread]) -> Finding | None:
    """Work of others of these processes, and of main threads of similar ones, meanwhile, if they do not poll, too."""
    names = {facts.process_of(thread) for thread in finding.threads}
    asked = [
        thread
        for thread in facts.own
        if thread not in polling
        and (thread[0] in finding.pids or (thread[0] == thread[1] and facts.process_of(thread) in names))
    ]
    found = causes_among(facts, asked, own_kinds(THREAD))
    return max(found, key=lambda of: (of.time / of.wall, of.threads), default=None)
