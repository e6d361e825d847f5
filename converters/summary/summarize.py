"""Makes the summary of a profile: equal waits of all threads together, what runs, and the answer."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..base.collection import no_collection
from ..base.errors import StallscopeError
from ..base.units import share
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.groups import alike_of
from ..facts.hot_function import hot_function
from ..facts.identity import is_sum, number_of, processes_of
from ..facts.idle_evidence import waiting_for_work
from ..facts.runs import SAMPLED as ON_CPU
from ..facts.thread_names import name_pattern, thread_pattern
from ..facts.thread_roles import ThreadRoles
from ..facts.wait_causes import row_of
from ..facts.wait_kinds import CORE, TOLD_BY_OTHERS, WORK
from ..facts.wait_sums import LOST, Place, Sum, Thread
from ..facts.wakers import longest
from ..model import Profile, Stack, ThreadTimes
from ..model.calls import WITHOUT_PROBE
from ..model.next_step import Whom
from ..model.remarks import is_caveat
from ..model.sites import Site
from ..model.states import BLOCKED, RUNNABLE
from ..phrases.gil import gil_sentence
from ..phrases.remarks import word
from ..phrases.sentences import Sentences, all_of_cores
from ..rules import gil_main, late_messages, late_rank, stuck_ranks
from ..rules.ranking import Judgement, judge
from .answer import answer, with_blame
from .call_ioctl_sentence import call_ioctl_sentence
from .call_places import is_joined
from .call_time import answer_of_times, call_times
from .calls import CALLS, Calls, add_up_calls, answer_of_calls
from .collective_sentences import sentences as sentences_of_collectives
from .core_takers import Cores
from .critical import critical_of, critical_sentence, untraced_on
from .events import EVENTS, answer_of_events, counted_events
from .few_samples import few_of_threads
from .figures import NAMELESS, Process, Summary, Times, Wait, Who
from .judging import OFF_CPU, Read, read
from .next_command import (
    after_calls,
    after_path,
    after_samples,
    after_wakers,
    next_command,
    scope_of,
    victim_of,
)
from .next_for_hang import after_hang
from .outliers import groups_of
from .outside_ioctls import outside_ioctls
from .running import running_of
from .sharing import serialised, shared_calls
from .step_sentences import sentences as sentences_of_steps
from .thread_groups import who_of
from .verdicts import Judged
from .waits_for import blocking

_NOWHERE = Site((), "")


def summarize(profile: Profile, chosen: Whom | None = None, known: Read | None = None) -> Summary:
    """The summary of a profile of off-CPU time, of on-CPU samples, of calls, or of several of these.

    Off-CPU time needs the value types ``count``, ``min``, ``max`` beside it; on-CPU samples need ``samples``.
    ``chosen``: how the user chose the processes, for the command that is recommended.
    ``known``: what `judging.read` has found in it, if that is known already.
    StallscopeError if there is neither. Shares of threads come from ``profile.threads``; where a thread is not
    among them they are unknown, never guessed.
    """
    summary = _summarize(profile, chosen, known)
    first = tuple(f"{word(comment)}." for comment in summary.comments if is_caveat(comment))
    others = tuple(comment for comment in summary.comments if not is_caveat(comment))
    return replace(summary, answer=(*first, *summary.answer), comments=others)


@no_collection()
def _summarize(profile: Profile, chosen: Whom | None, known: Read | None) -> Summary:
    names = {value_type.name for value_type in profile.value_types}
    if not (names >= OFF_CPU or names >= ON_CPU or names >= CALLS or EVENTS in names):
        raise StallscopeError(
            "the profile is neither of off-CPU time nor of on-CPU samples, nor of calls",
            "record it with trace-offcpu, trace-oncpu, trace-wall or trace-ioctl",
        )
    given = profile
    profile, before, facts = known or read(given)
    sums, threads, roles = facts.sums, facts.threads, facts.roles
    running = running_of(facts.runs, threads)
    contention, gil = tuple(facts.contention), tuple(facts.gil)
    judgement = facts.once(judge)
    # Kernel threads are only traced with the whole host.
    cores = Cores(contention, profile.neighbours, whole_host=bool(roles.kernel))
    waits = _group(facts, cores)
    calls = add_up_calls(profile)
    active = [times for thread, times in threads.items() if not facts.is_quiet(thread)]
    summary = Summary(
        title=profile.title,
        host=profile.host,
        start_ns=profile.start_ns,
        duration_ns=profile.duration_ns,
        answer=(),
        processes=_processes(threads, roles, before),
        times=_times([times for thread, times in threads.items() if thread != LOST]),
        active=_times(active),
        waits=tuple(sorted(waits, key=lambda w: (w.still and w.processes > 0, w.idle, -w.time, w.frames, w.kernel))),
        running=running,
        weight=profile.value_types[0] if names >= ON_CPU else None,
        lost=dict(profile.lost),
        comments=tuple(profile.comments),
        judged=Judged((*judgement.steps, *judgement.verdicts, *judgement.blamed, *judgement.still), threads),
        trouble=all_of_cores(judgement.verdicts),
        untold=all_of_cores(judgement.verdicts),
        contention=contention,
        calls=calls,
        alike=groups_of(profile, _functions(calls, profile), active, functools.partial(thread_pattern, main=False)),
        shared=shared_calls(profile),
        answers=tuple(profile.answers),
        locks=tuple(profile.locks),
        gil=gil,
        file_locks=tuple(profile.file_locks),
        group_limits=tuple(profile.group_limits),
        critical=critical_of(profile, facts.recorded.graph if facts.recorded else None),
        kernel_threads=len(roles.kernel),
        blocking=blocking(facts.recorded.graph, waiting_for_work(roles, sums)) if facts.recorded else None,
        steps=tuple(profile.steps),
        collectives=facts.collectives,
    )
    own = [process for process in summary.processes if not process.in_kernel]
    if EVENTS in names:
        events = counted_events(profile)
        return replace(summary, calls=(), events=events, answer=answer_of_events(events, profile.duration_ns))
    if names >= CALLS and not names & (OFF_CPU | ON_CPU):
        return _of_calls(_joined(summary, profile) if is_joined(profile) else summary, own, chosen, profile)
    told = answer(summary, facts, judgement)
    step = next_command(told, bool(running), own, summary.waits, chosen) if profile.duration_ns else None
    if running:
        step = after_samples(step, told, hot_function(profile), own, chosen)
    of_gil, blamed = _of_gil(summary, judgement), Sentences(facts).late(judgement)
    if facts.recorded:
        blamed = Sentences(facts).blamed(judgement)
        if profile.critical is None:
            ends = judgement.ends_with
            victim, untraced = (ends.victim, ends.untraced) if ends else (0, ())
            step = after_wakers(step, own, chosen, victim_of(told, victim), untraced)
        else:
            on_path = untraced_on(summary.critical, facts.recorded.graph) if summary.critical else ()
            step = after_path(step, own, chosen, on_path)
    step = after_hang(step, facts, judgement)
    path = critical_sentence(summary.critical) if summary.critical else ""
    # The user asked for steps.
    first, rest = sentences_of_collectives(summary.collectives, facts), with_blame(told, blamed)
    if judgement.first and judgement.first.rule == stuck_ranks.RULE:
        first, rest = (*first, *rest[:1]), rest[1:]  # a job that stands still comes before one that is slow
    met = (*first, *_late_ranks(facts, judgement))
    sentences = (few_of_threads(profile), *met, *sentences_of_steps(summary.steps), path, *rest, of_gil)
    sentences = tuple(filter(None, sentences))
    untold = all_of_cores(judgement.verdicts, told.told)
    return replace(summary, answer=sentences, untold=untold, next_step=step)


def _of_gil(summary: Summary, judgement: Judgement) -> str:
    """Sentence on Python's interpreter lock, without what the answer tells already."""
    first = judgement.first
    told = first.pids if first and first.rule == gil_main.RULE else frozenset()
    return gil_sentence(tuple(each for each in summary.gil if each.gil.pid not in told))


def _functions(calls: tuple[Calls, ...], profile: Profile) -> tuple[Calls, ...]:
    """Calls whose times add up: without ioctls that are parts of functions' calls."""
    return tuple(each for each in calls if each.total.library) if is_joined(profile) else calls


def _joined(summary: Summary, profile: Profile) -> Summary:
    """Ioctls are parts of functions' calls."""
    ioctls = tuple(each for each in summary.calls if not each.total.library)
    return replace(
        summary,
        calls=_functions(summary.calls, profile),
        inner_calls=ioctls,
        outside_ioctls=outside_ioctls(profile, ioctls),
        call_times=call_times(profile),
        copies=tuple(profile.copies),
    )


def _of_calls(summary: Summary, processes: list[Process], chosen: Whom | None, profile: Profile) -> Summary:
    whole, wall = sum(each.time for each in summary.calls), summary.times.wall
    of_time = whole / wall if wall else 1.0
    # What takes little of the time holds nobody up, however slow one call is.
    together = serialised(summary.shared) if of_time >= thresholds.MINOR_CALLS else ()
    step = None
    if summary.duration_ns and processes:
        step = after_calls(of_time, bool(together), scope_of(processes, chosen))
    is_minor = whole and of_time < thresholds.MINOR_CALLS
    minor = (f"{share(whole, wall)} of the threads' time is in calls.",) if is_minor else ()
    told = answer_of_calls(summary.calls, profile.lost.get(WITHOUT_PROBE, 0))
    if is_joined(profile) and (sentence := call_ioctl_sentence(profile, summary.calls, summary.shared)):
        told = (sentence, *answer_of_times(summary.call_times), *told[1:])
    return replace(summary, answer=(*minor, *told, *together), next_step=step)


_Flags = tuple[bool, str, bool, bool]
"""A wait's (idle, idle_by, still, in_kernel)."""
_Member = tuple[Thread, Place, Sum]


def _group(facts: Facts, cores: Cores) -> list[Wait]:
    """Groups equal waits of all threads; idle threads, processes that did not move and kernel threads are separate
    from others in the same place. Waits for a core are one group per thread name."""
    sums, threads, roles, still = facts.sums, facts.threads, facts.roles, facts.still_pids
    groups: dict[tuple[object, _Flags], list[_Member]] = defaultdict(list)
    for thread, places in sums.items():
        times = threads[thread]
        is_kernel, is_still = thread in roles.kernel, thread[0] in still
        name = name_pattern(times.process), thread_pattern(times.thread, times.pid == times.tid)
        for_a_core = (CORE, *((is_kernel,) if is_kernel else name))
        idle = roles.quiet[thread] if thread in roles.idle else frozenset()
        for place, total in places.items():
            for_work = place.kind == WORK and not is_kernel
            is_idle = bool(idle) and place in idle
            flags = for_work or is_idle, roles.by.get(thread, "") if is_idle else "", is_still, is_kernel
            groups[for_a_core if place.kind == CORE else row_of(place), flags].append((thread, place, total))
    whose = _Whose(threads)
    waits = []
    while groups:  # Each is taken out, from the end: there may be very many.
        (_, flags), members = groups.popitem()
        made = _wait(members, whose, flags, facts)
        if made.runnable and not made.in_kernel:
            pids = {thread[0] for thread, _, _ in members}
            made = replace(made, takers=cores.takers(pids, made.time, made.threads_wall, made.threads))
        waits.append(made)
    return waits[::-1]


class _Members(NamedTuple):
    who: tuple[Who, ...]
    alike: int
    wall: int
    processes: int
    threads: int


class _Whose:
    """Tells of groups of threads who they are."""

    def __init__(self, threads: dict[Thread, ThreadTimes]) -> None:
        self._threads = threads
        self._alike = alike_of(threads.values())
        self._single: dict[Thread, _Members] = {}

    def of(self, times: dict[Thread, int]) -> _Members:
        """The threads with the time of each in one wait."""
        if len(times) > 1:
            return self._find(sorted(times, key=lambda thread: (-times[thread], thread)))
        # Most waits are of one thread, if there are very many of them.
        thread = next(iter(times))
        found = self._single.get(thread)
        if found is None:
            found = self._single[thread] = self._find([thread])
        return found

    def _find(self, members: list[Thread]) -> _Members:
        who = who_of([self._threads[thread] for thread in members])
        walls = [self._threads[thread].wall for thread in members]
        alike = sum(self._alike[kind] for kind in {(entry.process, entry.pattern) for entry in who})
        threads = [self._threads[thread] for thread in members]
        wall = sum(walls) if all(walls) else 0
        return _Members(who, alike, wall, processes_of(threads), number_of(threads))


def _wait(members: list[_Member], whose: _Whose, flags: _Flags, facts: Facts) -> Wait:
    thread, place, total = members[0]
    times = {thread: total.time}
    if len(members) > 1:  # There may be very many with one.
        total = total.copy()
        for thread, _, part in members[1:]:
            total.add(part)
            times[thread] = times.get(thread, 0) + part.time
        _, place, _ = max(members, key=lambda member: member[2].time)
    of = whose.of(times)
    runnable = place.kind == CORE
    lost_in, lost_time = _most_often(members) if runnable else (_NOWHERE, 0)
    nearly_always = lost_time >= thresholds.LOST_IN * total.time
    where = place.site if not runnable else lost_in if nearly_always else _NOWHERE
    here = members if not runnable else [each for each in members if nearly_always and each[1].site == lost_in]
    return Wait(
        state=RUNNABLE.rstrip("-") if runnable else place.state,
        kind=place.kind,
        frames=where.frames,
        kernel=where.kernel,
        time=total.time,
        count=total.count,
        min=total.min,
        max=total.max,
        open_time=total.open_time,
        open_count=total.open_count,
        idle=flags[0],
        idle_by=flags[1],
        still=flags[2],
        in_kernel=flags[3],
        told_by_others=place.kind in TOLD_BY_OTHERS,
        processes=of.processes,
        threads=of.threads,
        threads_wall=of.wall,
        threads_alike=of.alike,
        who=of.who,
        mostly=((), 0) if nearly_always or _is_placeholder(lost_in) else (lost_in.frames, lost_time),
        woken_by=longest(total.wakers),
        stack=_longest_stack(here),
        on=None if runnable else facts.on(total, place.kind, {pid for pid, _ in times}),
    )


def _longest_stack(members: Sequence[_Member]) -> Stack:
    """The stack of the member with most time; () if there is none."""
    if len(members) == 1:  # as of most waits
        return members[0][1].stack
    most = max((total.time for _, _, total in members), default=0)
    stacks = {id(place): place.stack for _, place, total in members if total.time == most}
    return max(stacks.values(), key=lambda stack: [frame.name for frame in stack], default=())


def _most_often(members: list[_Member]) -> tuple[Site, int]:
    """The place where threads lost their core for longest, and that time."""
    times: dict[Site, int] = defaultdict(int)
    for _, place, total in members:
        times[place.site] += total.time
    most = max(times, key=lambda where: (times[where], where))
    return most, times[most]


def _is_placeholder(site: Site) -> bool:
    """``[other stacks]``, ``[no stack]``: a text in place of functions."""
    return all(frame[:1] == "[" and " " in frame for frame in site.frames)


def _processes(threads: dict[Thread, ThreadTimes], roles: ThreadRoles, before: dict[str, str]) -> tuple[Process, ...]:
    kernel = {pid for pid, _ in roles.kernel}
    names: dict[int, str] = {}
    for (pid, tid), times in threads.items():
        if (pid, tid) == LOST:
            continue
        if pid == tid or pid not in names:
            names[pid] = times.process
    pids: dict[tuple[bool, str], list[int]] = defaultdict(list)
    ended: Counter[tuple[bool, str]] = Counter()
    for pid, name in sorted(names.items()):
        if is_sum(pid):
            # Threads without their main thread are of processes that are listed.
            if (pid, pid) in threads:
                ended[pid in kernel, name] += threads[pid, pid].count
                pids[pid in kernel, name] += []
        else:
            pids[pid in kernel, name].append(pid)
    by_number = sorted(
        pids.items(),
        key=lambda entry: (entry[0][0], entry[0][1] == NAMELESS, -len(entry[1]) - ended[entry[0]], entry[1]),
    )
    return tuple(
        Process(name, tuple(numbers), in_kernel, before.get(name, ""), ended[in_kernel, name])
        for (in_kernel, name), numbers in by_number
    )


def _times(threads: list[ThreadTimes]) -> Times:
    blocked = dict.fromkeys(BLOCKED, 0)
    for times in threads:
        for state, time in times.blocked.items():
            blocked[state] = blocked.get(state, 0) + time
    return Times(
        threads=number_of(threads),
        wall=sum(times.wall for times in threads),
        on_cpu=sum(times.on_cpu for times in threads),
        runnable=sum(times.runnable for times in threads),
        blocked=blocked,
    )


def _late_ranks(facts: Facts, judgement: Judgement) -> list[str]:
    return [Sentences(facts).of(each) for each in judgement.steps if each.rule in (late_rank.RULE, late_messages.RULE)]
