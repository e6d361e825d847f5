"""Processes that cannot be of one job, by their origins: ranks of different jobs never meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..facts.identity import kernel_id
from ..facts.job_identity import differ, identities
from ..model.origins import ProcessOrigin


class Jobs:
    """Tells which of some processes are of different jobs: by their environments; or, if these do not tell, by
    the process that has started them and others of them. Nothing is known of those without origins."""

    def __init__(self, pids: Collection[int], origins: Mapping[int, ProcessOrigin]) -> None:
        """``pids``: processes that call collectives. ``origins``: by pid, of these and of others."""
        self._origins = {pid: origins[pid] for pid in pids if pid in origins}
        below: dict[int, int] = {}
        for origin in self._origins.values():
            for each in origin.ancestors:
                below[each.pid] = below.get(each.pid, 0) + 1
        for pid in map(kernel_id, self._origins):
            if pid in below:
                below[pid] += 1  # a rank that has started others is one of them
        self._launchers = {pid: _launcher(pid, each, below) for pid, each in self._origins.items()}

    def are_apart(self, one: int, other: int) -> bool:
        """Whether two processes are of different jobs; False: they are of one, or it is not known."""
        first, second = self._origins.get(one), self._origins.get(other)
        if first is None or second is None:
            return False
        if differ((first, second)):
            return True
        if not set(identities(first)).isdisjoint(identities(second)):
            return False
        launchers = self._launchers[one], self._launchers[other]
        return all(launchers) and launchers[0] != launchers[1]


def _launcher(pid: int, origin: ProcessOrigin, below: Mapping[int, int]) -> int:
    """Kernel's id of the nearest process that has started this one and others, which may be itself; 0 if none is
    known."""
    return next((each for each in (kernel_id(pid), *(up.pid for up in origin.ancestors)) if below.get(each, 0) > 1), 0)
