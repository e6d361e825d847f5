"""Judgement of a profile, by way of its facts."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import NamedTuple

from ..facts.accounts import with_one_account_each
from ..facts.contention import contention_of
from ..facts.facts import Beside, Facts, Recorded
from ..facts.gil import gil_shares
from ..facts.identity import kernel_id, with_own_ids
from ..facts.idle_evidence import roles_by_wakers
from ..facts.polled_locks import with_polled_locks
from ..facts.ranks import ranks_of
from ..facts.runs import SAMPLED as ON_CPU
from ..facts.runs import add_up_runs
from ..facts.scripts import named_locks, with_scripts
from ..facts.shed_stacks import with_shed_stacks
from ..facts.slices import slices_by_thread
from ..facts.started import started_processes, with_waits_for_started
from ..facts.timed_locks import with_waits_joined
from ..facts.timed_selects import with_timed_selects
from ..facts.timed_services import with_timed_services
from ..facts.wait_sums import Sums, add_up_waits, merged_threads
from ..facts.waits_for_servers import with_waits_for_servers
from ..facts.wrappers import Wrappers
from ..model import Profile
from ..model.waits_for import has_wakers, waits_for
from ..rules.crowd import pools_of_libraries
from ..rules.ranking import Judgement, judge

OFF_CPU = {"count", "min", "max"}
"""Columns of waits other than their time."""


class Read(NamedTuple):
    """A profile, and what is found in it."""

    profile: Profile
    """Profile with own ids, one account of each, and names that tell scripts."""
    before: dict[str, str]
    """The names that processes with scripts had, by those that they have now."""
    facts: Facts


def read(given: Profile) -> Read:
    """Reads what the summary, and all rules, look at."""
    given = with_waits_joined(given)
    names = {value_type.name for value_type in given.value_types}
    profile, before = with_scripts(with_one_account_each(with_own_ids(given)))
    names_by_pid = _names_by_pid(profile)
    profile = replace(profile, locks=named_locks(profile.locks, names_by_pid))
    threads = merged_threads(profile.threads)
    started = started_processes(threads)
    sums: Sums = with_shed_stacks(add_up_waits(profile, threads)) if names >= OFF_CPU else {}
    objects = {each.id: each for each in profile.objects}
    sums = with_waits_for_servers(with_waits_for_started(sums, threads, started), objects)
    sums = with_polled_locks(with_timed_selects(sums, objects), profile.file_locks)
    runs = add_up_runs(profile, threads) if names >= ON_CPU else {}
    recorded = None
    if sums and has_wakers(given):
        recorded = Recorded(replace(given, locks=profile.locks), waits_for(given, names_by_pid))
        sums = with_timed_services(sums, recorded.graph)
    roles = roles_by_wakers(profile, sums, threads, recorded.graph if recorded else None)
    gil = gil_shares(profile.gil, profile.threads)
    pools = functools.partial(pools_of_libraries, profile)
    contention = contention_of(profile)
    of_all = profile.threads, contention, gil, pools, profile.neighbours, recorded, runs, profile.steps
    labels = {each.pid: each.ranks for each in profile.processes if each.ranks}
    origins = {each.pid: each for each in profile.origins}
    woke = {waker.pid for _, waker in recorded.graph.edges} if recorded else set()
    at_ends = Wrappers(threads, sums, profile.origins, profile.neighbours, woke).without(objects)
    kept = profile.file_locks, at_ends, labels, origins, profile.group_limits, slices_by_thread(profile.slices)
    watched = {each.pid: each.calls for each in profile.watched}
    beside = Beside(*of_all, ranks_of(profile), started, *kept, profile.collectives, watched)
    return Read(profile, before, Facts(sums, threads, roles, profile.duration_ns, beside))


def _names_by_pid(shown: Profile) -> dict[int, str]:
    """Names under which processes are shown, by the kernel's pids."""
    names = {each.pid: each.process for each in shown.neighbours}
    return names | {kernel_id(times.pid): times.process for times in shown.threads}


def judgement_of(profile: Profile) -> tuple[Facts, Judgement]:
    """Facts of a profile, and the judgement by them."""
    facts = read(profile).facts
    return facts, facts.once(judge)
