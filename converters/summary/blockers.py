"""Who blocks the threads of a profile with wakers: for the tables of a summary, and for its answer."""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.identity import kernel_id
from ..facts.idle_evidence import node_of
from ..facts.wait_sums import Thread
from ..facts.wakers import Wakers
from ..model import Profile, ThreadTimes
from ..model.waits_for import THREAD, Node, waits_for
from .blame import Blame, Told
from .blamed import Blamed
from .blocking import Blocking, blocking_of


class Blockers:
    """Of a profile as it was recorded; ``threads`` have the names under which processes are shown."""

    def __init__(self, profile: Profile, threads: Iterable[ThreadTimes]) -> None:
        self._profile = profile
        self.graph = waits_for(profile, {kernel_id(times.pid): times.process for times in threads})

    def blocking(self, idle: Iterable[Thread]) -> Blocking:
        """Without what these threads wait for."""
        return blocking_of(self.graph, {node_of(thread) for thread in idle})

    def does(self, threads: Iterable[tuple[int, int]]) -> str:
        """What threads, by pid and tid, do that others wait for: the end of a sentence, or ""."""
        ends = {Node(THREAD, *thread) for thread in threads}
        return Blamed(self.graph, self._profile.threads).does(self._profile, ends, [])

    def blamed(self, idle: Iterable[Thread]) -> Told:
        """With whom most of what the other threads wait for ends."""
        blame = Blame(self.graph, {node_of(thread) for thread in idle}, self._profile.threads)
        return blame.blamed(self._profile, Wakers())
