"""The sentence of each rule's verdicts. Names are unescaped (hostile)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..base.units import plural, share
from ..facts import thresholds
from ..facts.both_wait import both_wait
from ..facts.event_loops import are_in_loops
from ..facts.facts import Facts
from ..facts.file_locks import FileHolder
from ..facts.gil import GilShare
from ..facts.runs import AT_LIMIT, FREES, SWAPS
from ..facts.sampling import shown_share
from ..facts.wait_functions import COLLECTIVE
from ..facts.wait_kinds import PEER, WORK
from ..model.steps import Steps
from ..rules import (
    all_wait,
    busy,
    calm,
    crowd,
    deadlock,
    for_others,
    gil_main,
    held_up,
    herd,
    idle,
    late_messages,
    late_rank,
    longest,
    polling,
    pool_anew,
    processes_anew,
    quota,
    reclaim,
    slow_step,
    straggler,
    stuck_ranks,
    turns,
    unclear,
    workers,
)
from ..rules.crowd import Crowd
from ..rules.finding import Finding
from ..rules.holder import Holder
from ..rules.polling import Polling
from ..rules.pool_anew import Pool
from ..rules.quota import Throttled
from ..rules.ranking import Judgement
from ..rules.reclaim import Reclaim
from ..rules.straggler import Straggler
from ..rules.stuck_ranks import StuckRanks
from ..rules.verdict import GPU, Verdict
from . import collectives, cores, file_locks, gil, jobs, locks, messages
from .chain_ends import without_others
from .connections import network
from .ends_with import ends_with
from .pools import pools
from .steps import slow_steps
from .still import did_not_move
from .stuck_ranks import stuck_ranks as told_as_stuck
from .wait_objects import reached
from .words import Phrases, chain, listed, on_cores

_FOR_MEMORY = {
    AT_LIMIT: "frees some at the limit of its control group",
    FREES: "frees some of the host",
    SWAPS: "swaps in",
}


_BOTH_WAIT = (
    "; meanwhile both ends of the connection wait: TCP holds back what was sent, as it does with small writes until "
    "the one before is acknowledged (TCP_NODELAY)"
)


class Sentences:
    """Sentences for the verdicts of one profile."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.words = Phrases(facts.threads, facts.ranks)

    @property
    def duration(self) -> int:
        """ns that the trace took."""
        return self._facts.duration

    def of(self, verdict: Verdict) -> str:
        """Sentence for a verdict."""
        return _BY_RULE[verdict.rule](self, verdict)

    def as_much(self, verdict: Verdict) -> str:
        """Sentence on a verdict that is worth as much as the one before."""
        return f"About as much: {self.of(verdict)}"

    def with_rest(self, verdict: Verdict, rest: str) -> str:
        """Sentence for a verdict on waits, and what the same threads do in ``rest`` of their time."""
        if _BY_RULE[verdict.rule] is not Sentences.waits:
            return self.of(verdict)
        clause = self.words.clause(_finding(verdict), verdict.cause, _having(verdict))
        return f"{clause}{network(self._facts, verdict)}; {rest}."

    def waits(self, verdict: Verdict) -> str:
        """``84.2 % of the time of … is blocked in …; meanwhile …``"""
        finding, other = _finding(verdict), verdict.cause or verdict.effect
        if verdict.kind != COLLECTIVE or other:
            having = _having(verdict)
            beside = "" if other or having else self._other_end(finding)
            clause = self.words.clause(finding, other, having, alone=bool(finding.nobody))
            beside = f"; {without_others(finding.nobody)}" if finding.nobody else beside
            return f"{clause}{self._in_loop(finding)}{beside}{network(self._facts, verdict)}."
        by_network = network(self._facts, verdict)
        if any(late.pids & finding.pids for late in straggler.find(self._facts)):
            return f"{self.words.clause(finding)}."
        if not by_network:
            by_network = (
                "; no traced rank stands out as late: it may be one that is not traced, the network, or each of them "
                "in turn"
            )
        return f"{self.words.clause(finding)}{by_network}."

    def _in_loop(self, finding: Finding) -> str:
        """``; while it waits, its event loop serves nobody else``, if an event loop has called what waits."""
        if not finding.places or not are_in_loops(self._facts, finding.threads, finding.time):
            return ""
        loop = "it waits, its event loop serves" if len(finding.threads) == 1 else "they wait, their event loops serve"
        return f"; while {loop} nobody else"

    def _other_end(self, finding: Finding) -> str:
        """``; meanwhile postgres uses 0.9 cores``: what is known of the one process, not traced, that has the other end
        of what these threads wait on, or that it waits on the same connection; "" if it is not known, or tells
        nothing."""
        if finding.on and finding.on.tells_network:
            return ""
        if finding.kind == PEER and both_wait(self._facts, finding.threads[0]):
            return _BOTH_WAIT
        ends = finding.on.ends if finding.kind == PEER and finding.on and not finding.on.what.more_ends else ()
        if len(ends) != 1 or not self._facts.duration:
            return ""
        known = (each for each in self._facts.neighbours if each.pid == ends[0].pid)
        used = next((each.on_cpu / self._facts.duration for each in known), None)
        if used is None or thresholds.PEER_HARDLY_RUNS <= used < thresholds.PEER_RUNS:
            return ""
        does = f"uses {used:.1f} cores" if used >= thresholds.PEER_RUNS else "hardly runs"
        return f"; meanwhile {ends[0].process} {does}"

    def herd(self, verdict: Verdict) -> str:
        """``The 16 worker threads of app are woken 1,000 times a second each, …``"""
        sentence = self.words.herd(_finding(verdict), self._facts.duration)
        return sentence[:1].upper() + sentence[1:]

    def deadlock(self, verdict: Verdict) -> str:
        """``2 threads of app (a, b) did not move at all, each of them waiting for a lock, …``"""
        finding, threads = _finding(verdict), self._facts.threads
        if isinstance(verdict.detail, deadlock.FileCycle):
            told = file_locks.cycle(verdict.detail.processes)
            return f"{told[:1].upper()}{told[1:]}: a deadlock, in {chain(finding)}."
        names = list(dict.fromkeys(threads[thread].thread for thread in sorted(finding.threads)))
        whom = f"{plural(len(finding.threads), 'thread')} of {threads[finding.threads[0]].process} ({listed(names)})"
        ways = list(dict.fromkeys(" → ".join(place.site.frames) for place in finding.places))
        return (
            f"{whom} did not move at all, each of them waiting for a lock, in {listed(ways)}: "
            "a deadlock, if they hold each other's."
        )

    def busy(self, verdict: Verdict) -> str:
        """``20.0 % of the time of all 8 threads is on a core, 5.0 % is waiting for one.``"""
        detail = verdict.detail
        assert isinstance(detail, busy.Busy)
        first, whole = detail.groups[0], sum(each.time for each in detail.groups)
        is_of_one = first.time >= thresholds.MOSTLY_ONE * whole
        where = _runs_in(detail, first) if is_of_one else _most_often_in(detail.runs_in)
        where += _takers(detail)
        if is_of_one and first.wall:
            return " ".join(filter(None, (f"{self.words.clause(first)}{where}.", pools(detail.pools))))
        names = {self._facts.threads[thread].process for group in detail.groups for thread in group.threads}
        of = f" of {names.pop()}" if len(names) == 1 else ""
        whom = f"{everyone(detail.everyone)}{of}"
        if detail.threads != detail.everyone:
            one = detail.everyone - detail.threads == 1
            others = "the other one only waits" if one else "the others only wait"
            whom = f"{detail.threads} of {plural(detail.everyone, 'thread')}{of} ({others})"
        return f"{on_cores(whom, detail.on_cpu, detail.runnable, detail.wall)}{where}."

    def polling(self, verdict: Verdict) -> str:
        """``97.3 % of the time of the main thread of app is spent polling in main → wait → sched_yield: …``"""
        detail, finding = verdict.detail, _finding(verdict)
        assert isinstance(detail, Polling)
        where = " → ".join(detail.frames) or detail.call
        return self.words.polling(finding, where, verdict.cause, of_gpu=verdict.kind == GPU)

    def reclaim(self, verdict: Verdict) -> str:
        """``97.1 % of the time on cores of the main thread of app goes into getting memory, which is short: …``"""
        detail, finding = verdict.detail, _finding(verdict)
        assert isinstance(detail, Reclaim)
        parts = [f"{shown_share(number, number, detail.samples)} {_FOR_MEMORY[kind]}" for kind, number in detail.memory]
        number = sum(number for _, number in detail.memory)
        much = shown_share(number, number, detail.samples)
        where = f", in {' → '.join(detail.frames)}" if detail.frames else ""
        whom, limit = self.words.subject(finding.threads), detail.limit
        group = f"; control group {limit.cgroup}: {reached(limit)}" if limit else ""
        of = f"{plural(detail.samples, 'sample')}{group}"
        return (
            f"{much[:1].upper()}{much[1:]} of the time on cores of {whom} goes into getting memory, which is short"
            f"{where}: {', '.join(parts)} ({of}); {self.words.on_cores_of(finding)}."
        )

    def all_wait(self, verdict: Verdict) -> str:
        """``No thread of app moved: main → join, work → get_result; all wait for each other, …``"""
        finding, threads = _finding(verdict), self._facts.threads
        ways = list(dict.fromkeys(" → ".join(place.site.frames) for place in finding.places))
        return (
            f"No thread of {threads[finding.threads[0]].process} moved at all: they wait for each other, in "
            f"{listed(ways)}. Only a signal, or another process by shared memory, can wake them."
        )

    def turns(self, verdict: Verdict) -> str:
        """``The 4 worker threads of app take turns: together they use 1.0 of 8 cores, and wait for each other …``"""
        finding, facts = _finding(verdict), self._facts
        whom = self.words.subject(finding.threads)
        pid = finding.threads[0][0]
        used = sum(times.on_cpu for times in facts.threads.values() if times.pid == pid) / facts.duration
        much = share(finding.time, finding.wall)
        return (
            f"{whom[:1].upper()}{whom[1:]} take turns: they use {used:.1f} of {facts.cores_of(pid):g} cores together, "
            f"and wait for each other for {much} of their time, in {chain(finding)}: one lock that all need, such as "
            "an interpreter's, or work that they hand on."
        )

    def idle(self, verdict: Verdict) -> str:
        """``Hardly anything runs: 4 threads wait for events, in serve → epoll_wait, …``"""
        finding = _finding(verdict)
        whom, wait = self.words.subject(finding.threads), "waits" if len(finding.threads) == 1 else "wait"
        for_work = all(place.kind == WORK for place in finding.places)
        what, rest = ("work", "idle") if for_work else ("events", "idle, or waiting for replies from elsewhere")
        return (
            f"Hardly anything runs: {whom} {wait} for {what} for {share(finding.time, finding.wall)} of the time, in "
            f"{chain(finding)}: {rest}{network(self._facts, verdict)}."
        )

    def blamed(self, judgement: Judgement) -> str:
        """Sentence about who has a lock, which knows more than with whom waits end; or about that; "" if nobody stands
        out."""
        for verdict in judgement.blamed:
            if isinstance(verdict.detail, Holder):
                return locks.holder(verdict.detail)
        if late := self.late(judgement):
            return late
        found = judgement.ends_with
        return ends_with(found, self._facts.duration) if found else ""

    def late(self, judgement: Judgement) -> str:
        """Sentence about ranks that are late, if the first one does not tell of them; "" if there are none."""
        found = (each.detail for each in judgement.blamed if isinstance(each.detail, Straggler))
        return next(map(jobs.straggler, found), "")

    def unclear(self, verdict: Verdict) -> str:
        """``For 62.0 % of the threads' time it is not known where they were: …``"""
        assert isinstance(verdict.detail, float)
        much = share(round(1000 * verdict.detail), 1000)
        return (
            f"For {much} of the threads' time it is not known where they were: what was lost is told below; trace "
            "fewer processes, or for a shorter time."
        )

    def still(self, verdicts: Sequence[Verdict]) -> str:
        """``2 processes did not move: 2 × app (in main → read).``; "" if there are none."""
        return did_not_move(self._facts, [pid for verdict in verdicts for pid in sorted(verdict.pids)])


def _having(verdict: Verdict) -> str:
    """Words for who has the lock on a file; "" if that is not known."""
    return file_locks.having(verdict.detail) if isinstance(verdict.detail, FileHolder) else ""


def _takers(detail: busy.Busy) -> str:
    """``; processes that were not traced use cores: 3 × train 1.5``"""
    named = ", ".join(f"{name} {used:.1f}" for name, used in detail.takers)
    return f"; processes that were not traced use cores: {named}" if named else ""


def _runs_in(detail: busy.Busy, first: Finding) -> str:
    """Words for the place where threads run: by their preemptions, or by samples."""
    return _most_often_in(detail.lost_in.frames if detail.lost_in else first.runs_in)


def _most_often_in(frames: tuple[str, ...]) -> str:
    return f", most often in {' → '.join(frames)}" if frames else ""


def everyone(threads: int) -> str:
    """``all 8 threads``"""
    return {1: "the thread", 2: "both threads"}.get(threads, f"all {threads} threads")


def all_of_cores(verdicts: Iterable[Verdict], told: Iterable[Verdict] = ()) -> tuple[str, ...]:
    """Sentences of verdicts on quotas, crowds and pools, in this order: two of each, without those that are
    ``told``."""
    without = {id(verdict) for verdict in told}
    found = {rule: list[Verdict]() for rule in (quota.RULE, crowd.RULE, pool_anew.RULE)}
    for verdict in verdicts:
        if verdict.rule in found:
            found[verdict.rule].append(verdict)
    return tuple(
        _of_cores(verdict)
        for of in found.values()
        for verdict in of[: thresholds.CORES_TOLD]
        if id(verdict) not in without
    )


def _of_cores(verdict: Verdict) -> str:
    detail = verdict.detail
    if isinstance(detail, Throttled):
        return cores.quota(detail)
    if isinstance(detail, Crowd):
        return cores.crowd(detail)
    assert isinstance(detail, Pool)
    return cores.pool_anew(detail)


def _gil(_: Sentences, verdict: Verdict) -> str:
    assert isinstance(verdict.detail, GilShare)
    return gil.held_up_main(verdict.detail)


def _calm(sentences: Sentences, verdict: Verdict) -> str:
    assert isinstance(verdict.detail, calm.Calm)
    return cores.calm(verdict.detail, sentences.duration)


def _processes_anew(verdict: Verdict) -> str:
    assert isinstance(verdict.detail, processes_anew.Started)
    return cores.processes_anew(verdict.detail)


def _late_rank(verdict: Verdict) -> str:
    assert isinstance(verdict.detail, late_rank.LateRank)
    return collectives.late_rank(verdict.detail)


def _late_messages(sentences: Sentences, verdict: Verdict) -> str:
    assert isinstance(verdict.detail, late_messages.LateMessages)
    return messages.late_messages(verdict.detail, sentences.duration)


def _stuck_ranks(sentences: Sentences, verdict: Verdict) -> str:
    assert isinstance(verdict.detail, StuckRanks)
    return told_as_stuck(verdict.detail, sentences.duration)


def _slow_steps(verdict: Verdict) -> str:
    assert isinstance(verdict.detail, Steps) and verdict.detail.slow
    return slow_steps(verdict.detail, verdict.detail.slow)


def _finding(verdict: Verdict) -> Finding:
    assert verdict.finding
    return verdict.finding


_BY_RULE: dict[str, Callable[[Sentences, Verdict], str]] = {
    deadlock.RULE: Sentences.deadlock,
    gil_main.RULE: _gil,
    **dict.fromkeys((quota.RULE, crowd.RULE, pool_anew.RULE), lambda _, verdict: _of_cores(verdict)),
    herd.RULE: Sentences.herd,
    polling.RULE: Sentences.polling,
    reclaim.RULE: Sentences.reclaim,
    **dict.fromkeys((held_up.RULE, for_others.RULE, workers.RULE, longest.RULE), Sentences.waits),
    busy.RULE: Sentences.busy,
    calm.RULE: _calm,
    all_wait.RULE: Sentences.all_wait,
    idle.RULE: Sentences.idle,
    processes_anew.RULE: lambda _, verdict: _processes_anew(verdict),
    slow_step.RULE: lambda _, verdict: _slow_steps(verdict),
    late_rank.RULE: lambda _, verdict: _late_rank(verdict),
    late_messages.RULE: _late_messages,
    stuck_ranks.RULE: _stuck_ranks,
    turns.RULE: Sentences.turns,
    unclear.RULE: Sentences.unclear,
}
