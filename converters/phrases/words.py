"""Findings in words: whose time, what share of it, where. Names are unescaped (hostile)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..facts.groups import alike_of
from ..facts.identity import is_sum, number_of, shown_id
from ..facts.ranks import named
from ..facts.sampling import shown_share
from ..facts.thread_names import thread_pattern
from ..facts.wait_causes import DRIVERS_CALL
from ..facts.wait_functions import (
    COLLECTIVE,
    LIGHT_LOCKS,
    LOADER,
    LOCK_OF_FILE,
    LOCKS_BY_TIMER,
    LOCKS_OF_PROGRAMS,
    METADATA_LOCK,
    ROW_LOCK,
    SERVERS,
    STARTED,
    TAKE_GIL,
)
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, LOCK, PEER, SLEEP, THREAD
from ..facts.wait_sites import GAP
from ..facts.wait_sums import Thread
from ..model import ThreadTimes
from ..rules.finding import CPU, Finding, sleeps_again
from . import wait_objects

_FOR_WHOM = {
    THREAD: ("another thread", "other threads"),
    PEER: ("its peer", "their peers"),
    CHILD: ("a process to end", "processes to end"),
    EVENTS: ("events", "events"),
}
_FOR_JOB = {
    LOADER: ("its data loader", "their data loaders"),
    COLLECTIVE: ("other ranks", "other ranks"),
    STARTED: ("a process that it has started", "processes that they have started"),
}
"""Words for what a part of a training job is to one thread, and to several."""
_KNOWN_LOCKS = {
    TAKE_GIL: "Python's interpreter lock (GIL)",
    **dict.fromkeys(LOCKS_OF_PROGRAMS, "a lock of PostgreSQL"),
    **dict.fromkeys(LIGHT_LOCKS, "a lightweight lock of PostgreSQL (LWLock)"),
    ROW_LOCK: "a lock of MariaDB",
    METADATA_LOCK: "a metadata lock of MariaDB (MDL)",
    LOCK_OF_FILE: "the lock of a file",
    **dict.fromkeys(LOCKS_BY_TIMER, "a lock of an SQLite database"),
}


NO_RANKS: Mapping[int, int] = {}


def on_cores(whom: str, on_cpu: int, runnable: int, wall: int) -> str:
    """``20.0 % of the time of … is on a core, 5.0 % is waiting for one``; the larger part comes first."""
    if runnable > on_cpu:
        return f"{share(runnable, wall)} of the time of {whom} is waiting for a core, {share(on_cpu, wall)} is on one"
    return f"{share(on_cpu, wall)} of the time of {whom} is on a core, {share(runnable, wall)} is waiting for one"


class Phrases:
    """Phrases for the threads of one profile."""

    def __init__(self, threads: dict[Thread, ThreadTimes], ranks: Mapping[int, int] = NO_RANKS) -> None:
        """``ranks``: those of processes in their job, by pid."""
        self._threads, self._ranks = threads, ranks
        self._alike = alike_of(threads.values())

    def sentence(self, finding: Finding, meanwhile: Finding | None = None) -> str:
        """``84.2 % of the time of the 8 worker threads of demo is blocked in …; meanwhile ….``"""
        return f"{self.clause(finding, meanwhile)}."

    def clause(
        self, finding: Finding, meanwhile: Finding | None = None, having: str = "", *, alone: bool = False
    ) -> str:
        """The sentence without its end. ``having``: who has what is waited for. ``alone``: nobody can end the wait."""
        much = _much(finding) if finding.wall else duration(finding.time)
        much = much[:1].upper() + much[1:] if much.startswith("about") else much
        whom = self.subject(finding.threads)
        if finding.kind == CPU:
            text = on_cores(whom, finding.time - finding.runnable, finding.runnable, finding.wall)
        else:
            details = f"{_counts(finding)}{_alone(finding)}".removeprefix("; ")
            text = f"{much} of the time of {whom} is {_spent(finding, alone=alone)}" + (
                f" ({details})" if details else ""
            )
        text += f"; {having}" if having else ""
        if not meanwhile:
            return text
        return f"{text}; {self._meanwhile(meanwhile, same_processes=meanwhile.pids == finding.pids, of=finding)}"

    def _meanwhile(self, finding: Finding, *, same_processes: bool, of: Finding | None = None) -> str:
        whom, one = self.subject(finding.threads, with_process=not same_processes), len(finding.threads) == 1
        whom += self._asked_by(finding, of) if of and finding.asked_by else ""
        much = duration(finding.time)
        if finding.wall:
            much = f"{_much(finding)} of {'its' if one else 'their'} time"
        where = f" in {chain(finding)}{_on(finding)}"
        if finding.kind == CPU:
            on_cpu = share(finding.time - finding.runnable, finding.wall)
            queued = share(finding.runnable, finding.wall)
            much = f"{on_cpu} of {'its' if one else 'their'} time"
            does = (
                f"{'is' if one else 'are'} on a core for {much}, and {'waits' if one else 'wait'} for one for {queued}"
            )
            does += f", most often in {' → '.join(finding.runs_in)}" if finding.runs_in else ""
        elif finding.kind == SLEEP:
            does = f"{'sleeps' if one else 'sleep'} for {much}{where}"
        elif finding.kind == HALTED:
            does = f"{'is' if one else 'are'} stopped for {much}"
        elif finding.kind in _FOR_WHOM:
            does = f"{'waits' if one else 'wait'} for {_for_whom(finding)} for {much}{where}"
        else:
            does = f"{'is' if one else 'are'} blocked for {much}{where}"
        return f"meanwhile {whom} {does}"

    def _asked_by(self, finding: Finding, of: Finding) -> str:
        """``, for which haproxy waits,``"""
        names = list({times.process: None for (pid, _), times in self._threads.items() if pid in finding.asked_by})
        who = " and ".join(names) if len(names) == 2 else listed(names)
        if finding.asked_by == of.pids:
            return f", for which other threads of {who} wait,"
        return f", for which {who} {'waits' if len(finding.asked_by) == 1 else 'wait'},"

    def on_cores_of(self, finding: Finding) -> str:
        """``it runs for 82.6 % of its time, and waits for a core for 17.4 %``"""
        one = len(finding.threads) == 1
        on_cpu, queued = share(finding.time - finding.runnable, finding.wall), share(finding.runnable, finding.wall)
        runs, waits, whose = ("it runs", "waits", "its") if one else ("they run", "wait", "their")
        return f"{runs} for {on_cpu} of {whose} time, and {waits} for a core for {queued}"

    def polling(self, finding: Finding, where: str, meanwhile: Finding | None, *, of_gpu: bool = False) -> str:
        """Threads that run while they wait."""
        one = len(finding.threads) == 1
        much = share(finding.time, finding.wall) if finding.wall else duration(finding.time)
        uses = "it uses a core while it waits" if one else "they use cores while they wait"
        what = "waiting for the GPU" if of_gpu else "polling"
        text = f"{much} of the time of {self.subject(finding.threads)} is spent {what} in {where}: {uses}"
        if not meanwhile:
            return f"{text}."
        return f"{text}; {self._meanwhile(meanwhile, same_processes=meanwhile.pids == finding.pids)}."

    def herd(self, finding: Finding, trace: int) -> str:
        """Threads that are woken for nothing."""
        threads = len(finding.threads)
        often = finding.count * 1_000_000_000 // (threads * trace)
        each = sum(self._threads[thread].on_cpu for thread in finding.threads) // finding.count
        return (
            f"{self.subject(finding.threads)} are woken {count(often)} times a second each, and run for "
            f"{duration(each)} before they wait again in {chain(finding)}: if each time all are woken for what one can "
            "do, the others are woken in vain."
        )

    def subject(self, threads: Sequence[Thread], *, with_process: bool = True) -> str:
        """``the 8 worker threads of demo``; ``8 of the 12 worker threads of demo`` when others have that name."""
        names, processes = self._names(threads), self._processes(threads)
        of = f" of {processes[0]}" if len(processes) == 1 and with_process else ""
        all_ = number_of(self._threads[thread] for thread in threads)
        if len(names) > 1:
            return f"{count(all_)} threads{of} ({listed(names)})"
        alike = sum(self._alike[process, names[0]] for process in processes)
        if all_ == alike:
            number = "" if alike == 1 else f"{count(alike)} "
            return f"the {number}{names[0]} {'thread' if alike == 1 else 'threads'}{of}"
        ranks = named({pid for pid, _ in threads}, self._ranks) if names[0] == "main" else ""
        if len(threads) > thresholds.TOLD_APART or any(is_sum(tid) for _, tid in threads):
            return f"{count(all_)} of the {count(alike)} {names[0]} threads{of}" + (f" ({ranks})" if ranks else "")
        ids = ", ".join(shown_id(tid) for _, tid in sorted(threads))
        kind = "pid" if names[0] == "main" else "tid"
        kind = f"{ranks}; {kind}" if ranks else kind
        number = "the" if len(threads) == 1 else f"the {len(threads)}"
        return f"{number} {names[0]} {'thread' if len(threads) == 1 else 'threads'}{of} ({kind} {ids})"

    def _names(self, threads: Iterable[Thread]) -> list[str]:
        return list(dict.fromkeys(thread_pattern(self._threads[key].thread, key[0] == key[1]) for key in threads))

    def _processes(self, threads: Iterable[Thread]) -> list[str]:
        return list(dict.fromkeys(self._threads[thread].process for thread in threads))


def chain(finding: Finding) -> str:
    """Words for the place where a finding waits. Paths that end in the same function are combined: ``allocate, release
    → lock``."""
    ways = list(dict.fromkeys(place.site.frames for place in finding.places if place.site.frames))
    if not ways:
        return finding.places[0].site.kernel if finding.places else ""
    same = [way for way in ways if way[-1] == ways[0][-1]]
    if len(same) == 1 or any(len(way) == 1 for way in same):
        return " → ".join(ways[0])
    tail = _common_end(same)
    ends = [way[: len(way) - len(tail)] for way in same]
    callers = list(dict.fromkeys(end[-1] for end in ends if end))
    if len(callers) == 1:
        return " → ".join(ways[0])
    if GAP in callers or any(len(end) not in (1, 2) for end in ends):
        return f"{' → '.join(ways[0])}, and by {plural(len(same) - 1, 'other way')}"
    return " → ".join([listed(callers), *tail])


def _on(finding: Finding) -> str:
    """Words for what the waits are on, behind the system call."""
    return wait_objects.on(finding.on, finding.pids)


def _common_end(ways: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    number = 0
    for frames in zip(*(reversed(way) for way in ways), strict=False):
        if len(set(frames)) > 1:
            break
        number += 1
    return ways[0][len(ways[0]) - number :]


def _spent(finding: Finding, *, alone: bool = False) -> str:
    first = finding.places[0].site
    where = f" in {chain(finding)}{_on(finding)}" if first.frames else ""
    if finding.places[0].wait.gpu:
        return f"spent waiting for the GPU{where}"
    if finding.kind == SLEEP:
        return f"spent sleeping{' again and again' if sleeps_again(finding) else ''}{where}"
    if finding.kind in _FOR_WHOM:
        # What is waited for is told by the functions, if anything tells it.
        is_told = finding.kind == EVENTS and where and not finding.places[0].wait.job
        for_whom = "" if is_told or alone else f" for {_for_whom(finding)}"
        return f"spent waiting{for_whom}{where}" + ("" if where else f", in {first.kernel}")
    if finding.kind == HALTED:
        return f"lost: stopped{where}"
    lock = finding.places[0].wait.lock if finding.kind == LOCK else ""
    if lock in _KNOWN_LOCKS:
        return f"blocked on {_KNOWN_LOCKS[lock]}{where}"
    kernel = dict.fromkeys(place.site.kernel for place in finding.places if place.site.kernel)
    is_told = len(kernel) == 1 or finding.places[0].wait.call == DRIVERS_CALL
    return f"blocked{where}" + (
        f", waiting in {listed([_meaning(name) for name in kernel])}" if kernel and is_told else ""
    )


def _meaning(kernel: str) -> str:
    """A function of the kernel, with what it waits for if its name does not tell."""
    return f"{kernel} ({SERVERS[kernel]})" if kernel in SERVERS else kernel


def _for_whom(finding: Finding) -> str:
    job = finding.places[0].wait.job if finding.places else ""
    return (_FOR_JOB[job] if job else _FOR_WHOM[finding.kind])[len(finding.threads) > 1]


def _counts(finding: Finding) -> str:
    processes = len(finding.pids)
    details = [plural(processes, "process")] if processes > 1 else []
    if finding.count:
        mean = duration(finding.time // finding.count)
        details += [plural(finding.count, "wait"), f"mean {mean}", f"max {duration(finding.max)}"]
    if _much(finding) != share(finding.time, finding.wall):
        details.append(plural(finding.samples, "sample"))
    return ", ".join(details)


def _much(finding: Finding) -> str:
    return shown_share(finding.samples, finding.time, finding.wall)


def _alone(finding: Finding) -> str:
    """The one of several threads that has most of the time: ``; 75.9 % of it in pid 8943 alone``."""
    pid, tid = finding.threads[0]
    is_most = finding.most >= max(thresholds.ALONE, thresholds.ALONE_FAIR / len(finding.threads)) * finding.time > 0
    if not is_most or is_sum(tid) or _much(finding) != share(finding.time, finding.wall):
        return ""
    whose = f"pid {shown_id(pid)}" if pid == tid else f"tid {shown_id(tid)}"
    return f"; {share(finding.most, finding.time)} of it in {whose} alone"


def listed(names: Sequence[str]) -> str:
    limit = thresholds.NAMES_LISTED
    if len(names) <= limit + 1:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more names"
