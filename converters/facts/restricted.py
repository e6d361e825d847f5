"""Facts of some of the traced processes."""

from __future__ import annotations

from collections.abc import Collection

from .facts import Beside, Facts
from .thread_roles import ThreadRoles


def of_processes(facts: Facts, pids: Collection[int]) -> Facts:
    """The facts of the processes with these ids. The waits are those of ``facts``: nothing is classified again.

    Recorded wakers are left out: who ends a wait can be a thread of another process.
    """
    chosen = frozenset(pids)
    threads = {thread: times for thread, times in facts.threads.items() if thread[0] in chosen}
    sums = {thread: places for thread, places in facts.sums.items() if thread in threads}
    beside = Beside(
        accounts=tuple(each for each in facts.accounts if each.pid in chosen),
        contention=tuple(each for each in facts.contention if chosen.issuperset(each.pids)),
        gil=tuple(each for each in facts.gil if each.gil.pid in chosen),
        pools=facts.pools,
        neighbours=facts.neighbours,
        runs={thread: of for thread, of in facts.runs.items() if thread in threads},
        ranks={pid: rank for pid, rank in facts.ranks.items() if pid in chosen},
    )
    return Facts(sums, threads, _roles(facts.roles, chosen), facts.duration, beside)


def _roles(roles: ThreadRoles, pids: frozenset[int]) -> ThreadRoles:
    return ThreadRoles(
        kernel=frozenset(each for each in roles.kernel if each[0] in pids),
        still=frozenset(each for each in roles.still if each[0] in pids),
        quiet={each: places for each, places in roles.quiet.items() if each[0] in pids},
        idle=frozenset(each for each in roles.idle if each[0] in pids),
        by={each: shown for each, shown in roles.by.items() if each[0] in pids},
    )
