"""Several threads of a process did not move at all, and each waits for a lock of the program.

Or processes wait for each other's locks on files. Databases find deadlocks among their own locks: who waits for one of
them waits for somebody who has it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ..facts.facts import Facts
from ..facts.file_locks import CALLS, InCycle, cycle_of
from ..facts.identity import kernel_id
from ..facts.wait_functions import OF_DATABASES
from ..facts.wait_kinds import LOCK
from ..facts.wait_sums import Place, Thread
from .finding import Key, findings, waiting
from .verdict import DEADLOCK, Verdict

RULE = "deadlock"


def find(facts: Facts) -> list[Verdict]:
    """One for each process, and one for processes that wait for each other."""
    groups: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
    for thread in facts.roles.still:
        if places := [place for place in facts.sums[thread] if place.wait.lock and place.wait.lock not in OF_DATABASES]:
            groups[LOCK, thread[0]][thread] = places
    several = {key: members for key, members in groups.items() if len(members) > 1}
    found = [
        Verdict(RULE, DEADLOCK, finding.time, 1, finding.pids, finding) for finding in findings(facts, (LOCK,), several)
    ]
    return [*found, *_of_files(facts)]


class FileCycle(NamedTuple):
    """The detail of a verdict on processes that wait for each other's locks on files."""

    processes: tuple[InCycle, ...]


def _of_files(facts: Facts) -> list[Verdict]:
    cycle = cycle_of(facts.file_locks)
    pids = {each.pid for each in cycle}
    members: dict[Thread, list[Place]] = {}
    for thread in facts.roles.still:
        places = [place for place in facts.sums[thread] if place.kind == LOCK and place.wait.call in CALLS]
        if places and kernel_id(thread[0]) in pids:
            members[thread] = places
    finding = waiting(facts, LOCK, members) if members else None
    if finding is None:
        return []
    return [Verdict(RULE, DEADLOCK, finding.time, 1, finding.pids, finding, detail=FileCycle(cycle))]
