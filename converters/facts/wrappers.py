"""Wrappers: processes that only wait for the end of a child, as timeout(1) and many a shell do.

They have the variables and the open files that they hand on to the child, and use neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..model import ThreadTimes
from ..model.neighbours import Neighbour
from ..model.origins import ProcessOrigin
from ..model.wait_objects import WaitObject
from . import thresholds
from .identity import kernel_id
from .thread_roles import time_unknown
from .wait_functions import FOR_SIGNALS, STARTED
from .wait_kinds import CHILD
from .wait_objects import Objects
from .wait_sums import Place, Sum, Sums, Thread

Threads = Mapping[Thread, ThreadTimes]


def only_waits_for_child(pid: int, threads: Threads, sums: Sums) -> bool:
    """Whether all threads of a traced process spend nearly all their time, but for waits for a core, in waits for the
    end of a child, or for a signal: that of a child that ends is one."""
    own = [thread for thread in threads if thread[0] == pid]
    return bool(own) and all(_only_waits(threads[thread], sums.get(thread, {})) for thread in own)


def _only_waits(times: ThreadTimes, places: Mapping[Place, Sum]) -> bool:
    waits = sum(total.time for place, total in places.items() if _is_for_child(place))
    return 0 < (times.wall - times.runnable - time_unknown(places)) * thresholds.QUIET <= waits


def _is_for_child(place: Place) -> bool:
    is_for_end = place.kind == CHILD and place.wait.job != STARTED  # which may wait for anything
    return is_for_end or place.wait.kernel in FOR_SIGNALS


class Wrappers:
    """Wrappers among the processes that have an end of a pipe or a socket open. Pids are the kernel's."""

    def __init__(
        self,
        threads: Threads,
        sums: Sums,
        origins: Iterable[ProcessOrigin],
        neighbours: Iterable[Neighbour],
        woke: Collection[int] = (),
    ) -> None:
        """``woke``: processes that have ended waits."""
        self._threads, self._sums = threads, sums
        self._pids: dict[int, list[int]] = {}
        for pid in dict.fromkeys(pid for pid, _ in threads):
            self._pids.setdefault(kernel_id(pid), []).append(pid)
        self._running = {kernel_id(pid) for (pid, _), times in threads.items() if times.on_cpu}
        self._above = {kernel_id(each.pid): [kernel_id(of.pid) for of in each.ancestors] for each in origins}
        self._still = {each.pid for each in neighbours if not each.on_cpu}.difference(woke)
        self._known: dict[int, bool] = {}

    def without(self, objects: Objects) -> Objects:
        """The objects, of whose ends those are left out that only wait for a child with the same end."""
        return {number: self._of(what) if len(what.ends) > 1 else what for number, what in objects.items()}

    def _of(self, what: WaitObject) -> WaitObject:
        pids = {end.pid for end in what.ends}
        left_out = {above for pid in pids for above in self._around(pid, pids)}
        return replace(what, ends=[end for end in what.ends if end.pid not in left_out]) if left_out else what

    def _around(self, pid: int, pids: Collection[int]) -> list[int]:
        """The wrappers of a process at work, from its parent on."""
        found: list[int] = []
        if pid not in self._running:
            return found
        for above in self._above.get(pid, ()):
            if above not in pids or not self._is_wrapper(above):
                break
            found.append(above)
        return found

    def _is_wrapper(self, pid: int) -> bool:
        """Whether it only waits for a child; of one that was not traced, whether it has not run."""
        if pid not in self._known:
            of: Sequence[int] = self._pids.get(pid, ())
            waits = all(only_waits_for_child(each, self._threads, self._sums) for each in of)
            self._known[pid] = waits if of else pid in self._still
        return self._known[pid]
