"""Says in one or two sentences where the time goes, claiming no more than the profile shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..base.units import plural, share
from ..facts.identity import kernel_id
from ..facts.wait_functions import TAKE_GIL
from ..facts.wait_kinds import EVENTS, HALTED, HELD, LOCK, SLEEP, THREAD
from .few_samples import are_few, few_of_work, hidden_part, shown_share
from .figures import Running, Summary
from .finding import CPU, Finding
from .findings import SIGNIFICANT, Findings
from .functions_at_work import by_function
from .gil import gil_sentence, held_up_main
from .lock_holders import beside_lock
from .phrases import Phrases, listed, on_cores
from .trouble import Trouble

NO_WAIT = "trouble"
"""`Answer.kind` for problems with threads and cores (`trouble.Trouble`)."""
_WEIGHT = {SLEEP: 0.5, EVENTS: 0.2}
"""Lower weights of main threads' waits: nobody causes a sleep, and servers wait for work in this way (events)."""
_BESIDE_WORK = 0.6
"""Weight of a wait for one of few events (poll) in threads that work, too: it is no loop that waits for requests."""
_ALONE = 0.5
"""Weight of a wait for a lock or device that delays no main thread."""
_WORTH = 0.1
"""Minimum share of the first sentence's score for a second sentence."""
_BUSY = 0.4
"""The same for running threads: running is not a problem."""
_ON_CPU = {False: 0.5, True: 1.0}
"""Weight of time on cores relative to waits, without and with on-CPU samples."""
_QUEUED = 0.75
"""Weight of waits for a core that `trouble` does not explain."""
_MOST_OF = 0.7
_PLACES = 3
"""Maximum of still processes' places; beyond it, only names."""
_IDLY = 20
"""Nothing but idle threads is to be seen if other waits have at most 1/this of their time."""
_TELLS_THE_REST = "tells where the rest goes"
"""The end of a comment in which an engine names the command for waits that this user may run."""
_UNKNOWN = 0.2
"""Weight of a wait that lasts the whole trace and has no traced cause, or of one in a process that does little."""


@dataclass(frozen=True)
class Answer:
    """Names are unescaped (hostile)."""

    sentences: tuple[str, ...]
    kind: str = ""
    """Kind of the first sentence: `Finding.kind` or `NO_WAIT`; "" if there is nothing to report."""
    explained: bool = False
    """It also says who is waited for."""
    deadlock: bool = False
    victim: int = 0
    """The kernel's id of the thread that waits most in the first sentence and has moved; 0 if there is none."""


@dataclass(frozen=True)
class _Choice:
    say: Callable[[], str]
    """Makes its sentence: of many, two are said."""
    score: float
    finding: Finding | None = None
    explained: bool = False
    pids: frozenset[int] = frozenset()
    is_effect: bool = False
    told: frozenset[int] = frozenset()
    """Processes named in addition to those of ``finding``."""


def answer(summary: Summary, findings: Findings, troubles: Sequence[Trouble] = ()) -> Answer:
    """Causes of waits come before the waits that they cause; see docs/summary.md."""
    if summary.weight and summary.weight.name != "wall" and summary.times.threads:
        return Answer(_of_samples(summary))
    if not summary.times.threads:
        return Answer(("No thread was seen.",))
    words = Phrases(findings.threads)
    choices = _choices(summary, findings, troubles, words)
    still = _still_sentence(findings, choices[0].told if choices else frozenset())
    if not findings.deadlocks() and (held := held_up_main(summary.gil)):
        others = (choice.say() for choice in choices if not _is_of_gil(choice, held.pid))
        told = tuple(filter(None, (held.sentence, next(others, ""), still)))
        return Answer(told, LOCK, explained=True, victim=kernel_id(held.pid))
    if not choices:
        return _without_choice(summary, findings, still, words)
    first = choices[0]
    second = _second(first, choices[1:])
    if not second and first.finding and not (_is_of_gil(first, *first.pids) and gil_sentence(summary.gil)):
        second = beside_lock(first.finding, findings, summary.duration_ns)
    if summary.weight and first.finding and first.finding.kind == CPU and (work := _work_sentence(summary)):
        second = work
    sentences = tuple(filter(None, (first.say(), second, still)))
    kind = first.finding.kind if first.finding else NO_WAIT
    victim = _victim(first.finding, findings) if first.finding else 0
    return Answer(sentences, kind, first.explained, bool(findings.deadlocks()), victim)


def _is_of_gil(choice: _Choice, *pids: int) -> bool:
    """Whether it tells that threads of these processes wait for Python's interpreter lock."""
    if not choice.finding or choice.finding.kind != LOCK or choice.finding.pids != set(pids):
        return False
    return all(place.wait.lock == TAKE_GIL for place in choice.finding.places)


def _victim(finding: Finding, findings: Findings) -> int:
    moving = (thread for thread in finding.threads if not findings.are_still((thread,)))
    return next((tid for _, thread in moving if (tid := kernel_id(thread))), 0)


def with_blame(sentences: tuple[str, ...], blamed: str) -> tuple[str, ...]:
    """The sentences of an answer, and after the first one with whom waits end."""
    return (*sentences[:1], blamed, *sentences[1:]) if blamed else sentences


def _without_choice(summary: Summary, findings: Findings, still: str, words: Phrases) -> Answer:
    """If nothing is significant: the longest wait, if any."""
    longest = findings.longest()
    if longest and not findings.pids_moving.isdisjoint(longest.pids):
        sentences = tuple(filter(None, (words.sentence(longest), still)))
        return Answer(sentences, longest.kind, victim=_victim(longest, findings))
    return Answer((still or _nothing(summary),))


def _nothing(summary: Summary) -> str:
    idle = sum(wait.time for wait in summary.waits if wait.idle)
    others = sum(wait.time for wait in summary.waits if not (wait.idle or wait.runnable))
    if idle and others * _IDLY <= idle:
        nothing, when = ("Hardly anything", "nearly all the time") if others else ("Nothing", "all the time")
        return f"{nothing} but idle threads: {plural(summary.times.threads, 'thread')}, waiting for work {when}."
    return "No wait of significance was recorded." if others else "No wait was recorded."


def _second(first: _Choice, others: Sequence[_Choice]) -> str:
    """Second sentence: a cause, or a problem of other processes."""
    for other in others:
        told = first.is_effect and other.is_effect
        follows = other.is_effect and first.pids and other.pids <= first.pids and not _is_busy(first)
        # A wait for events has a low score among waits, but counts in full against running.
        time = max(first.score, first.finding.time) if first.finding else first.score
        worth = _BUSY * time if _is_busy(other) else _WORTH * first.score
        if not told and not follows and other.score >= worth:
            return other.say()
    return ""


def _is_busy(choice: _Choice) -> bool:
    return choice.finding is not None and choice.finding.kind == CPU


def _choices(summary: Summary, findings: Findings, troubles: Sequence[Trouble], words: Phrases) -> list[_Choice]:
    """Possible sentences, the most important first."""
    if deadlocks := findings.deadlocks():
        return [_deadlock(deadlocks[0], findings), *_moving(summary, findings, troubles, words)]
    return _moving(summary, findings, troubles, words)


def _deadlock(finding: Finding, findings: Findings) -> _Choice:
    names = [findings.threads[thread].thread for thread in sorted(finding.threads)]
    whom = f"{plural(len(names), 'thread')} of {findings.threads[finding.threads[0]].process} ({listed(names)})"
    ways = list(dict.fromkeys(" → ".join(place.site.frames) for place in finding.places))
    sentence = (
        f"{whom} did not move at all, each of them waiting for a lock, in {listed(ways)}: "
        "a deadlock, if they hold each other's."
    )
    return _Choice(lambda: sentence, float("inf"), finding, pids=finding.pids)


def _moving(summary: Summary, findings: Findings, troubles: Sequence[Trouble], words: Phrases) -> list[_Choice]:
    held, effect = findings.held_up(), _top(findings.effects(), findings)
    cause = findings.cause_of(effect) if effect else None
    if effect and cause:
        effect = findings.without(effect, cause)
    matters = _matters(effect, cause, findings) if effect else 0
    made = [
        _Choice(partial(str, trouble.sentence), trouble.time, pids=trouble.pids)
        for trouble in sorted(troubles, key=lambda each: -each.time)
    ]
    if herd := findings.herd():
        sentence = words.herd(herd, summary.duration_ns)
        capital = sentence[:1].upper() + sentence[1:]
        made.append(_Choice(lambda: capital, herd.time, herd, pids=herd.pids))
    follows = False
    for finding in held:
        leads = _leads_to(finding, effect, cause)
        follows = follows or leads
        told = effect if leads and effect and not set(effect.threads) & set(finding.threads) else None
        weight = _ALONE if matters == 1 and not leads and not any(map(findings.is_main, finding.threads)) else 1
        say = partial(words.sentence, finding, told)
        made.append(_Choice(say, weight * finding.time, finding, bool(told), finding.pids))
    explained: list[str] = []
    if effect and not follows:
        made.append(_of_effect(effect, cause, matters * effect.time, made, words))
        explained = [CPU] if cause and cause.kind == CPU else []
    waits = [effect] if effect else []
    if (not effect or effect.kind == EVENTS) and (workers := findings.workers()):
        score = _ALONE * _WEIGHT.get(workers.kind, 1) * workers.time
        made.append(_Choice(partial(words.sentence, workers), score, workers, pids=workers.pids, is_effect=True))
        waits.append(workers)
    busy = findings.busy()
    together = sum(each.time for each in busy)
    if busy and not explained and together >= SIGNIFICANT * findings.active_wall:
        score = _busy_score(busy, troubles, _ON_CPU[bool(summary.weight)])
        if any(together < wait.time and _is_telling(wait, findings) for wait in waits):
            score = min(score, 0.99 * max(choice.score for choice in made))
        made.append(_Choice(partial(_busy_sentence, summary, busy, words), score, _all(busy, together)))
    return sorted(made, key=lambda choice: -choice.score)


def _is_telling(effect: Finding, findings: Findings) -> bool:
    """Whether it says more than that threads run for less time: not of what waits for work on a whole host."""
    return not findings.is_whole_host and not findings.are_still(effect.threads)


def _top(effects: Sequence[Finding], findings: Findings) -> Finding | None:
    return max(effects, key=lambda each: _weight(each, findings) * each.time, default=None)


def _weight(effect: Finding, findings: Findings) -> float:
    if effect.kind == EVENTS and findings.waits_beside_work(effect):
        return _BESIDE_WORK
    return _WEIGHT.get(effect.kind, 1)


def _matters(effect: Finding, cause: Finding | None, findings: Findings) -> float:
    if effect.kind == EVENTS:
        return _weight(effect, findings)
    if findings.are_slight(effect.threads):
        return _UNKNOWN
    return _UNKNOWN if not cause and findings.are_still(effect.threads) else 1


def _of_effect(
    effect: Finding, cause: Finding | None, score: float, others: Sequence[_Choice], words: Phrases
) -> _Choice:
    # The problem of their process explains these threads' waits.
    wrong = [other.score for other in others if effect.pids <= other.pids and not _is_held(other)]
    if wrong:
        score = min(score, 0.99 * max(wrong))
    told = cause.pids if cause else frozenset()
    say = partial(words.sentence, effect, cause)
    return _Choice(say, score, effect, cause is not None, effect.pids, is_effect=True, told=told)


def _is_held(choice: _Choice) -> bool:
    return choice.finding is not None and choice.finding.kind in (LOCK, HELD, HALTED)


def _leads_to(finding: Finding, effect: Finding | None, cause: Finding | None) -> bool:
    """Whether ``finding`` causes the waits of ``effect``."""
    if not effect or finding.kind == HALTED:
        return False
    by_name = cause is not None and bool(set(cause.threads) & set(finding.threads)) and cause.kind == finding.kind
    # Without times of threads it is unknown what they mostly do.
    unknown = effect.kind == THREAD and not effect.wall and finding.pids <= effect.pids
    return by_name or unknown or (set(effect.threads) == set(finding.threads) and finding.time >= effect.time)


def _all(busy: Sequence[Finding], together: int) -> Finding:
    return Finding(CPU, busy[0].threads, together, busy[0].wall)


def _busy_score(busy: Sequence[Finding], troubles: Sequence[Trouble], on_cpu: float) -> float:
    """Score of running threads, without processes that ``troubles`` covers."""
    told = {pid for trouble in troubles for pid in trouble.pids}
    left = [each for each in busy if not each.pids <= told]
    return sum(on_cpu * (each.time - each.runnable) + _QUEUED * each.runnable for each in left)


def _busy_sentence(summary: Summary, busy: Sequence[Finding], words: Phrases) -> str:
    if len(busy) > 1 and busy[0].time >= _MOST_OF * sum(each.time for each in busy) and busy[0].wall:
        return words.sentence(busy[0])
    times, everyone = summary.active, summary.times.threads
    whom = _everyone(everyone)
    if times.threads != everyone:
        others = "the other one only waits" if everyone - times.threads == 1 else "the others only wait"
        whom = f"{times.threads} of {plural(everyone, 'thread')} ({others})"
    return f"{on_cores(whom, times.on_cpu, times.runnable, times.wall)}."


def _still_sentence(findings: Findings, named: frozenset[int]) -> str:
    """Names the processes that did not move during the trace, except those ``named`` already."""
    told = named | {pid for finding in findings.deadlocks() for pid in finding.pids}
    pids = sorted(findings.still_pids - told)
    if not pids:
        return ""
    where: dict[str, list[int]] = defaultdict(list)
    for pid in pids:
        where[findings.where_of(pid)].append(pid)
    if len(where) > _PLACES:
        where.clear()
        for pid in pids:
            where[findings.name_of(pid)].append(pid)
    by_number = sorted(where.items(), key=lambda entry: -len(entry[1]))
    names = [f"{len(pids)} × {name}" if len(pids) > 1 else f"{name}" for name, pids in by_number]
    return f"{plural(sum(map(len, where.values())), 'process')} did not move: {listed(names)}."


def _of_samples(summary: Summary) -> tuple[str, ...]:
    """For profiles with samples only: what runs, and its share of the time."""
    work = _work_sentence(summary) or "No sample found a thread at work."
    if not summary.times.wall:
        return (work,)
    hidden = hidden_part(summary, sum(each.weight for each in summary.running))
    if hidden and not work.startswith(hidden):
        work = f"{hidden} {work}"
    times = summary.times
    everyone = _everyone(times.threads)
    if times.on_cpu * 2 < times.wall:
        rest = f"{share(times.on_cpu, times.wall)} of the time of {everyone} is on a core"
        return work, f"{rest}: {_who_tells_the_rest(summary)} {_TELLS_THE_REST}."
    return work, f"{on_cores(everyone, times.on_cpu, times.runnable, times.wall)}."


def _who_tells_the_rest(summary: Summary) -> str:
    """A command, the one that the engine names if it does not show waits to this user."""
    named = (comment.removesuffix(_TELLS_THE_REST) for comment in summary.comments if comment.endswith(_TELLS_THE_REST))
    return next(named, "trace-wall or trace-offcpu").rpartition(": ")[2].strip()


def _work_sentence(summary: Summary) -> str:
    """What most of the weight is spent on; "" when nothing stands out."""
    total = sum(work.weight for work in summary.running)
    works = by_function(summary.running)
    top = next((work for work in works if work.samples and work.weight >= SIGNIFICANT * total), None)
    if top is None or summary.weight is None:
        return ""
    what = "time on cores" if summary.weight.unit == "nanoseconds" else summary.weight.name
    if are_few(top.samples, top.weight, top.whose.threads_weight):
        return "" if summary.waits else few_of_work(summary, total, sum(work.samples for work in summary.running))
    where = " → ".join(top.frames) or "the kernel"
    if top.in_kernel and top.frames:
        where += ", in the kernel"
    much = shown_share(top.samples, top.weight, top.whose.threads_weight)
    details = plural(top.samples, "sample")
    if top.mostly:
        samples = top.samples * top.mostly_weight // top.weight
        details += f"; {shown_share(samples, top.mostly_weight, top.weight)} of it in {top.mostly}"
    return f"{much[:1].upper()}{much[1:]} of the {what} of {_subject(top.whose)} is in {where} ({details})."


def _everyone(threads: int) -> str:
    return {1: "the thread", 2: "both threads"}.get(threads, f"all {threads} threads")


def _subject(work: Running) -> str:
    """``the 8 worker threads of demo``; ``8 of the 12 worker threads of demo`` when others have that name too."""
    names = list(dict.fromkeys(who.pattern for who in work.who))
    processes = list(dict.fromkeys(who.process for who in work.who))
    of = f" of {processes[0]}" if len(processes) == 1 else ""
    if len(names) > 1:
        return f"{work.threads} threads{of} ({listed(names)})"
    one = "thread" if work.threads_alike == 1 else "threads"
    if work.threads == work.threads_alike:
        number = "" if work.threads == 1 else f"{work.threads} "
    elif work.threads == 1 and work.who[0].tids:
        return f"the {names[0]} thread{of} (tid {work.who[0].tids[0]})"
    else:
        return f"{work.threads} of the {work.threads_alike} {names[0]} {one}{of}"
    return f"the {number}{names[0]} {one}{of}"
