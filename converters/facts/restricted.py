"""Facts of some of the traced processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from .facts import Beside, Facts
from .thread_roles import ThreadRoles
from .wait_sums import Thread

_Entry = TypeVar("_Entry")


class Restricted:
    """The facts of some processes at a time. All facts are sorted by process once, so that those of each of many
    processes take as long as these alone. The waits are classified only once, too.

    Recorded wakers are left out: who ends a wait can be a thread of another process.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._threads = _by_pid(facts.threads, _pid_of)
        self._accounts = _by_pid(facts.accounts, lambda each: each.pid)
        self._gil = _by_pid(facts.gil, lambda each: each.gil.pid)
        self._contention = _by_pid(facts.contention, lambda each: min(each.pids, default=0))
        roles = facts.roles
        self._kernel, self._still = _by_pid(roles.kernel, _pid_of), _by_pid(roles.still, _pid_of)
        self._quiet, self._idle = _by_pid(roles.quiet, _pid_of), _by_pid(roles.idle, _pid_of)
        self._in_task, self._by = _by_pid(roles.in_task, _pid_of), _by_pid(roles.by, _pid_of)

    def of(self, pids: Collection[int]) -> Facts:
        """The facts of the processes with these ids."""
        chosen, facts = sorted(set(pids)), self._facts
        threads = {thread: facts.threads[thread] for thread in _of(self._threads, chosen)}
        sums = {thread: facts.sums[thread] for thread in threads if thread in facts.sums}
        beside = Beside(
            accounts=_of(self._accounts, chosen),
            contention=[each for each in _of(self._contention, chosen) if set(chosen).issuperset(each.pids)],
            gil=_of(self._gil, chosen),
            pools=facts.pools,
            neighbours=facts.neighbours,
            runs={thread: facts.runs[thread] for thread in threads if thread in facts.runs},
            ranks={pid: facts.ranks[pid] for pid in chosen if pid in facts.ranks},
        )
        made = Facts(sums, threads, self._roles(chosen), facts.duration, beside)
        made.objects, made.whole = facts.objects, facts
        return made

    def _roles(self, pids: Collection[int]) -> ThreadRoles:
        roles = self._facts.roles
        return ThreadRoles(
            kernel=frozenset(_of(self._kernel, pids)),
            still=frozenset(_of(self._still, pids)),
            quiet={thread: roles.quiet[thread] for thread in _of(self._quiet, pids)},
            idle=frozenset(_of(self._idle, pids)),
            in_task=frozenset(_of(self._in_task, pids)),
            by={thread: roles.by[thread] for thread in _of(self._by, pids)},
        )


def of_processes(facts: Facts, pids: Collection[int]) -> Facts:
    """`Restricted.of` for a single choice of processes."""
    return Restricted(facts).of(pids)


def _pid_of(thread: Thread) -> int:
    return thread[0]


def _by_pid(entries: Iterable[_Entry], pid_of: Callable[[_Entry], int]) -> Mapping[int, list[_Entry]]:
    found: dict[int, list[_Entry]] = defaultdict(list)
    for each in entries:
        found[pid_of(each)].append(each)
    return found


def _of(entries: Mapping[int, list[_Entry]], pids: Iterable[int]) -> list[_Entry]:
    return [each for pid in pids for each in entries.get(pid, ())]
