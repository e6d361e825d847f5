"""Several threads of a process did not move at all, and each waits for a lock of the program.

Databases find deadlocks among their own locks: who waits for one of them waits for somebody who has it.
"""

from __future__ import annotations

from collections import defaultdict

from ..facts.facts import Facts
from ..facts.wait_functions import OF_DATABASES
from ..facts.wait_kinds import LOCK
from ..facts.wait_sums import Place, Thread
from .finding import Key, findings
from .verdict import DEADLOCK, Verdict

RULE = "deadlock"


def find(facts: Facts) -> list[Verdict]:
    """One for each process."""
    groups: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
    for thread in facts.roles.still:
        if places := [place for place in facts.sums[thread] if place.wait.lock and place.wait.lock not in OF_DATABASES]:
            groups[LOCK, thread[0]][thread] = places
    several = {key: members for key, members in groups.items() if len(members) > 1}
    return [
        Verdict(RULE, DEADLOCK, finding.time, 1, finding.pids, finding) for finding in findings(facts, (LOCK,), several)
    ]
