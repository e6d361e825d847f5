"""Says in one or two sentences where the time goes, claiming no more than the profile shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..base.units import duration, plural, share
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.file_locks import FileHolder
from ..facts.identity import kernel_id
from ..facts.idle_evidence import PERIODIC
from ..facts.sampling import are_few, shown_share
from ..facts.wait_functions import COLLECTIVE
from ..facts.wait_kinds import EVENTS, LOCK, PEER, SLEEP
from ..facts.wakers import TIMEOUT
from ..model.remarks import WaitsHidden
from ..phrases.gil import gil_sentence
from ..phrases.remarks import tells_the_rest
from ..phrases.sentences import Sentences, everyone
from ..phrases.words import listed, on_cores
from ..rules import busy, crowd, deadlock, for_others, gil_main, held_up, workers
from ..rules.finding import Finding
from ..rules.late_rank import LateRank
from ..rules.ranking import Judgement, is_of_gil
from ..rules.verdict import Verdict
from .few_samples import few_of_work, hidden_part
from .figures import Running, Summary, Wait
from .functions_at_work import by_function
from .lock_holders import beside_lock
from .part_of_trace import with_part

_OF_WAITS = (held_up.RULE, for_others.RULE, workers.RULE)
NO_WAIT = "trouble"
"""`Answer.kind` for problems with threads and cores."""


@dataclass(frozen=True)
class Answer:
    """Names are unescaped (hostile)."""

    sentences: tuple[str, ...]
    kind: str = ""
    """Kind of the first sentence: `Finding.kind` or `NO_WAIT`; "" if there is nothing to report."""
    explained: bool = False
    """Whether the first sentence also says who is waited for."""
    deadlock: bool = False
    judged: str = ""
    """The kind of the first verdict."""
    told: tuple[Verdict, ...] = ()
    """Verdicts of which it tells."""
    holder: int = 0
    """The pid of a process that was not traced and has the lock on a file for which the first sentence's threads
    wait; 0 if there is none."""
    victim: int = 0
    """The kernel's id of the thread that waits most in the first sentence and has moved; 0 if there is none."""
    is_endless: bool = False
    """Most of what the first sentence tells are waits that had not ended with the trace, or ended with a timeout of
    their own, and that no traced thread explains."""
    is_late_rank: bool = False
    """Whether the first sentence is left out: that on a late rank says for whom these ranks wait."""
    names_takers: bool = False
    """Whether the first sentence names those that had the cores, or says that these threads outnumber them."""


def answer(summary: Summary, facts: Facts, judgement: Judgement) -> Answer:
    """Causes of waits come before the waits that they cause; see docs/summary.md."""
    if summary.weight and summary.weight.name != "wall" and summary.times.threads:
        return Answer(_of_samples(summary))
    if not summary.times.threads:
        return Answer(("No thread was seen.",))
    words = Sentences(facts)
    still = words.still(judgement.still)
    first = judgement.first
    if not first:
        return Answer((still or _nothing(summary),))
    follows = _without_what_is_told(judgement.second, first)
    equal = words.as_much(follows) if follows and judgement.is_equal else ""
    said, second = words.of(first), words.of(follows) if follows and not equal else ""
    if first.finding and (rest := beside_lock(first.finding, facts)) and not _tells_of_gil(first, summary):
        said = words.with_rest(first, rest)
    if summary.weight and first.rule in (busy.RULE, crowd.RULE) and (work := _work_sentence(summary)):
        second = work if summary.waits else _with_hidden(summary, work)
        follows = follows if equal else None
    is_late_rank = _waits_for_late_rank(first, judgement)
    said = "" if is_late_rank else with_part(said, first, facts)
    sentences = tuple(filter(None, (said, equal, second, still)))
    is_gil = first.rule == gil_main.RULE
    return Answer(
        sentences,
        LOCK if is_gil else first.wait_kind or NO_WAIT,
        explained=is_gil or bool(first.cause or first.effect or isinstance(first.detail, FileHolder)),
        deadlock=first.rule == deadlock.RULE,
        judged=first.kind,
        told=tuple(filter(None, (first, follows))),
        holder=_untraced_holder(first),
        victim=kernel_id(min(first.pids)) if is_gil else _victim(first.finding, facts),
        is_endless=_is_endless(first, facts),
        is_late_rank=is_late_rank,
        names_takers=any(_names_takers(each) for each in (first, follows) if each),
    )


def _without_what_is_told(second: Verdict | None, first: Verdict) -> Verdict | None:
    """The second verdict, without what others do meanwhile if the first one tells of the same; None if that is all
    of it: the first one tells what the holder of a lock does."""
    if second is None:
        return None
    told = (first.cause, first.effect)
    if isinstance(first.detail, FileHolder) and _are_same(first.cause, second.finding):
        return None
    cause, effect = (None if each in told else each for each in (second.cause, second.effect))
    return second if (cause, effect) == (second.cause, second.effect) else replace(second, cause=cause, effect=effect)


def _are_same(cause: Finding | None, finding: Finding | None) -> bool:
    if cause is None or finding is None:
        return False
    return cause.kind == finding.kind and set(finding.threads) <= set(cause.threads)


def _tells_of_gil(first: Verdict, summary: Summary) -> bool:
    """Whether another sentence tells who has the lock for which these threads wait."""
    return is_of_gil(first, first.pids) and bool(gil_sentence(summary.gil))


def _untraced_holder(first: Verdict) -> int:
    holder = first.detail
    if not isinstance(holder, FileHolder) or holder.is_traced or (holder.took_and_ended and not holder.process):
        return 0
    return holder.pid


def _victim(finding: Finding | None, facts: Facts) -> int:
    moving = (thread for thread in (finding.threads if finding else ()) if not facts.are_still((thread,)))
    return next((tid for _, thread in moving if (tid := kernel_id(thread))), 0)


def _names_takers(verdict: Verdict) -> bool:
    detail = verdict.detail
    if isinstance(detail, crowd.Crowd):
        return bool(detail.takers) or not detail.others_have_cores
    return isinstance(detail, busy.Busy) and bool(detail.takers)


def _is_endless(verdict: Verdict, facts: Facts) -> bool:
    """See `Answer.is_endless`. Threads of one process that wait for each other are all traced."""
    finding = verdict.finding
    if not finding or verdict.cause or verdict.rule not in _OF_WAITS or finding.kind not in (LOCK, PEER, EVENTS):
        return False
    waits = (facts.waits_of(thread) for thread in finding.threads)
    sums = [of[place] for of in waits for place in finding.places if place in of]
    by_nobody = sum(each.open_time + each.wakers.get(TIMEOUT, 0) for each in sums)
    return by_nobody >= thresholds.MOSTLY * finding.time


def _waits_for_late_rank(first: Verdict, judgement: Judgement) -> bool:
    """Whether the first verdict says no more than that ranks wait for others, of which one is told as late."""
    return (first.rule == for_others.RULE and first.kind == COLLECTIVE) and any(
        isinstance(each.detail, LateRank) and each.detail.late is not None and first.pids <= each.pids
        for each in judgement.steps
    )


def with_blame(told: Answer, blamed: str) -> tuple[str, ...]:
    """The sentences of an answer, and after the first one who is ``blamed``: ends waits, has a lock, or is late."""
    place = 0 if told.is_late_rank else 1
    return (*told.sentences[:place], blamed, *told.sentences[place:]) if blamed else told.sentences


def _nothing(summary: Summary) -> str:
    idle = sum(wait.time for wait in summary.waits if wait.idle)
    others = sum(wait.time for wait in summary.waits if not (wait.idle or wait.runnable))
    if idle and others <= thresholds.HARDLY * idle:
        nothing, when = ("Hardly anything", "nearly all the time") if others else ("Nothing", "all the time")
        asleep = [wait for wait in summary.waits if wait.idle and wait.idle_by == PERIODIC and wait.kind == SLEEP]
        if sum(wait.time for wait in asleep) > thresholds.MOSTLY * idle:
            return _asleep(nothing, max(asleep, key=lambda wait: wait.time))
        return f"{nothing} but idle threads: {plural(summary.times.threads, 'thread')}, waiting for work {when}."
    return "No wait of significance was recorded." if others else "No wait was recorded."


def _asleep(nothing: str, longest: Wait) -> str:
    """Sentence on threads that only sleep, as a program does that asks again and again for something, too."""
    sleeps = f"{plural(longest.count, 'sleep')}, mean {duration(longest.mean)}"
    return (
        f"{nothing} but threads that sleep in steady intervals, most of it in {' → '.join(longest.frames)} ({sleeps}): "
        "they have nothing to do, or ask again and again for something that does not happen."
    )


def _of_samples(summary: Summary) -> tuple[str, ...]:
    """Answer of profiles with samples only: what runs, and its share of the time."""
    work = _work_sentence(summary) or "No sample found a thread at work."
    if not summary.times.wall:
        return (work,)
    work = _with_hidden(summary, work)
    times = summary.times
    whom = everyone(times.threads)
    if times.on_cpu < thresholds.MOSTLY * times.wall:
        rest = f"{share(times.on_cpu, times.wall)} of the time of {whom} is on a core"
        return work, f"{rest}: {tells_the_rest(_rest_tool(summary))}."
    return work, f"{on_cores(whom, times.on_cpu, times.runnable, times.wall)}."


def _with_hidden(summary: Summary, work: str) -> str:
    """Text after what was not sampled, if that is much."""
    hidden = hidden_part(summary, sum(each.weight for each in summary.running))
    return f"{hidden} {work}" if hidden else work


def _rest_tool(summary: Summary) -> str:
    """A command, the one that the engine names if it does not show waits to this user."""
    named = (each.command for each in summary.comments if isinstance(each, WaitsHidden))
    return next(named, "trace-wall or trace-offcpu")


def _work_sentence(summary: Summary) -> str:
    """Sentence on the function that most of the weight is spent on; "" when nothing stands out."""
    total = sum(work.weight for work in summary.running)
    works = by_function(summary.running)
    top = next((work for work in works if work.samples and work.weight >= thresholds.SIGNIFICANT * total), None)
    if top is None or summary.weight is None:
        return ""
    what = "time on cores" if summary.weight.unit == "nanoseconds" else summary.weight.name
    if are_few(top.samples, top.weight, top.whose.threads_weight):
        return "" if summary.waits else few_of_work(summary, sum(work.samples for work in summary.running))
    where = " → ".join(top.frames) or "the kernel"
    if top.in_kernel and top.frames:
        where += ", in the kernel"
    much = shown_share(top.samples, top.weight, top.whose.threads_weight)
    details = plural(top.samples, "sample")
    if top.mostly:
        samples = top.samples * top.mostly_weight // top.weight
        details += f"; {shown_share(samples, top.mostly_weight, top.weight)} of it in {top.mostly}"
    return f"{much[:1].upper()}{much[1:]} of the {what} of {_subject(top.whose)} is in {where} ({details})."


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
