"""Samples processes at a rate, one after the other, until the trace is to end."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Sequence

from ....converters.base.text import printable
from ....converters.base.units import duration, plural
from ....converters.model.losses import time_of
from ....converters.model.remarks import Comment, SamplesLeftOut
from ....converters.model.states import TRACED
from ...base import procfs
from ...base.conditions import Condition, Conditions
from ...base.interrupts import Interrupts
from ...base.launch import Launch
from ...base.progress import Progress
from ...base.scope import Scope
from ...measures.oncpu import OnCpu
from ..ends import Ends
from ..named_rows import OTHER_STACKS, Account, NamedRows, all_conditions, without_python
from ..protocol import EngineUnavailable, Request
from .access import obstacle, unavailable
from .following import Following
from .threads import Threads
from .unseen import Unseen, matters
from .walker import Walker

_LOOK = 0.5
"""Seconds between two looks for new processes."""
_OFTEN, _SELDOM = 0.025, 10
"""Seconds between two looks at the threads' times; at least so many times what a look takes."""
_ENOUGH = 0.8
"""Part of the rate: fewer samples are told."""
_UNSEEN = "ends of threads"
_MOST_TOLD = 5
"""Processes that are named where eu-stack did not answer."""
_GIVEN_UP = 3
"""Looks at a process at which eu-stack did not answer; then there are no more."""
_PYTHON = "_PyEval_EvalFrame"
"""Begin of the names of the functions of CPython's interpreter loop."""


class Sampling:
    """Samples every process of the scope in turn."""

    def __init__(self, request: Request, launch: Launch | None, walker: Walker, interval: float) -> None:
        self._scope: Scope = request.scope
        self._duration = request.duration
        self._launch, self._walker, self._interval = launch, walker, interval
        self._following = Following(self._scope, launch)
        self._pids = self._following.look()
        self._began, self._wall = time.monotonic_ns(), time.time_ns()
        self._threads = Threads(self._began)
        self._next_times = 0.0
        """Time when the threads' times are read next."""
        self._look_at_times(self._began)
        self._unseen = Unseen(self._scope, launch, self._pids)
        self._last: dict[int, int] = {}
        """Time when each process was sampled last, in ns."""
        self._processes: dict[int, str] = {}
        self._rounds, self._walks, self._failed = 0, 0, 0
        self._given_up: Counter[int] = Counter()
        """Number of looks at which eu-stack did not answer, by process."""
        self._walking = 0.0
        self._problem = ""
        self._conditions = Conditions()
        self._found: dict[int, Condition] = {}
        """Conditions at the end, by process."""

    def run(self, interrupts: Interrupts) -> NamedRows:
        """Samples until the trace is to end. StallscopeError when there was no sample at all."""
        ends = Ends(self._scope, self._launch)
        if self._launch:  # it was named like this program until now, and may have ended already
            self._threads.rename(self._launch.pid, self._launch.pid)
        self._conditions.look_soon(self._pids)
        due = time.monotonic()
        next_look = due + _LOOK
        until = due + self._duration if self._duration is not None else None
        self._walker.until = until if until is not None else math.inf
        try:
            with Progress(self._duration) as progress:
                while not interrupts.requested and not ends.reached():
                    now = time.monotonic()
                    if until is not None and now >= until:
                        break
                    if now >= next_look:
                        self._pids = self._following.look()
                        self._unseen.look(self._threads.pids, self._threads.ended_on_cpu)
                        self._conditions.look_soon(self._pids)
                        next_look = now + _LOOK
                    self._meanwhile()
                    self._conditions.poll()
                    if now >= due:
                        self._round()
                        took = time.monotonic() - now
                        due = now + took + pause_after(took, self._interval, random.random())
                    threads, stacks = len(self._threads.names), len(self._threads.stacks)
                    progress.update(threads=threads, stacks=stacks, lost=self._failed)
                    wake = min(due, next_look, self._next_times, until if until is not None else due)
                    if ends.wait(interrupts.wakeup, wake - time.monotonic()):
                        self._look_at_times()  # before the end of a command is taken note of: its times go with it
            self._found = self._conditions.finish(self._processes)
        finally:
            ends.close()
        return self._taken()

    def _meanwhile(self) -> None:
        """Reads the threads' times if it is time to."""
        if time.monotonic() >= self._next_times:
            self._look_at_times()

    def _look_at_times(self, now: int | None = None) -> None:
        """``now``: for all of them, in ns; else when each is read."""
        began = time.monotonic()
        for pid in self._pids | self._threads.pids:
            self._threads.look(pid, time.monotonic_ns() if now is None else now)
        ended = time.monotonic()
        self._next_times = ended + max(_OFTEN, _SELDOM * (ended - began))

    def _round(self) -> None:
        """A sample of every process."""
        self._rounds += 1
        for pid in sorted(self._pids):
            if self._given_up[pid] < _GIVEN_UP and _lives(pid):
                self._sample(pid)

    def _sample(self, pid: int) -> None:
        now = time.monotonic_ns()
        self._threads.look(pid, now)
        self._processes[pid] = procfs.comm(pid) or self._processes.get(pid, "")
        chosen = self._scope.tids.intersection(procfs.tids(pid)) if self._scope.tids else set[int]()
        walk = self._walker.walk(pid, self._meanwhile, chosen.pop() if len(chosen) == 1 else 0)
        self._walking += walk.seconds
        for tid, seconds in walk.stopped.items():
            self._threads.stop(tid, round(seconds * 1e9))
        if walk.given_up:
            self._given_up[pid] += 1
            self._failed += 1
            return
        if walk.problem:
            if not _lives(pid):
                return  # it has ended meanwhile
            self._failed += 1
            self._problem = obstacle(pid) or walk.problem
            return
        self._walks += 1
        weight = now - self._last.get(pid, self._began)
        self._last[pid] = now
        for tid, stack in walk.stacks.items():
            if not self._scope.tids or tid in self._scope.tids:
                self._threads.sample(tid, walk.letters.get(tid, ""), stack, max(weight, 1))

    def _taken(self) -> NamedRows:
        self._unseen.look(self._threads.pids, self._threads.ended_on_cpu)
        used = self._unseen.used(self._threads.pids)  # before the last look: what ends in between is not in it
        self._look_at_times()
        now = time.monotonic_ns()
        if not self._walks and self._problem:
            raise unavailable(f"eu-stack failed: {self._problem}")
        if not self._walks and self._given_up:
            raise EngineUnavailable("; ".join(self._unanswered()), "use another engine")
        accounts, rows = self._threads.finish(now)
        if self._scope.tids:
            accounts = [account for account in accounts if account.tid in self._scope.tids]
            rows = {place: row for place, row in rows.items() if place.tid in self._scope.tids}
        missing = used - self._threads.ended_on_cpu
        unseen = self._threads.unseen_ends
        lost = {
            "samples": self._failed, "threads": self._threads.left_out,
            _UNSEEN: len(unseen), time_of(_UNSEEN): sum(unseen),
        }  # fmt: skip
        return NamedRows(
            self._wall, now - self._began, {OnCpu.name: rows}, accounts, self._threads.names, self._processes, lost,
            [*self._remarks((now - self._began) / 1e9, accounts, missing), *self._scope.remarks(self._processes)],
            conditions=all_conditions(self._conditions, self._found, accounts),
        )  # fmt: skip

    def _remarks(self, seconds: float, accounts: Sequence[Account], missing: int) -> list[Comment]:
        """``missing``: ns that processes had on cores which nobody has seen."""
        said: list[Comment] = []
        if self._walks:
            each = 1000 * self._walking / (self._walks + self._failed)
            wall = sum(account.ended - account.began for account in accounts)
            stopped = sum(account.blocked[TRACED] for account in accounts) / max(wall, 1)
            taken = f"{plural(self._walks, 'sample')} of processes, {self._walks / seconds:.1f} a second"
            said.append(f"{taken}, {each:.0f} ms each; a thread was stopped for {stopped:.1%} of the time, about")
        wanted = seconds / self._interval
        left_out = round(wanted) - self._rounds
        if left_out > 0 and self._rounds < _ENOUGH * wanted:
            said.append(SamplesLeftOut(left_out))
        if unseen := self._threads.unseen_ends:
            whose = f"{plural(len(unseen), 'thread')} ended between two looks"
            upto = f"up to {duration(max(unseen))} of {'each' if len(unseen) > 1 else 'it'}"
            said.append(f"{whose}: {upto} are not in the accounts")
        if matters(missing, sum(account.on_cpu for account in accounts)):
            whose = "processes or threads that began and ended between two looks"
            said.append(f"{whose} used {duration(missing)} on cores: they are not shown")
        if self._problem:
            failed = self._failed - self._given_up.total()
            said.append(f"eu-stack failed {failed:,} times: {self._problem}")
        said += self._unanswered()
        if others := self._threads.put_together:
            said.append(f"{plural(others, 'sample')} of a thread with rare stacks: in {OTHER_STACKS}, to limit memory")
        if any(frame.name.startswith(_PYTHON) for stack in self._threads.stacks for frame in stack):
            said.append(without_python("eu-stack"))
        return said

    def _unanswered(self) -> list[str]:
        """Remarks on processes that gave no answer, those with the most looks first."""
        said = []
        for pid, count in self._given_up.most_common(_MOST_TOLD):
            whose = f"{plural(count, 'look')} at process {pid} ({printable(self._processes[pid])})"
            then = ", and it was not looked at any more" if count >= _GIVEN_UP else ""
            said.append(f"{whose} {'was' if count == 1 else 'were'} given up: eu-stack did not answer{then}")
        if (others := len(self._given_up) - _MOST_TOLD) > 0:
            said.append(f"the same of {plural(others, 'other process')}")
        return said


def pause_after(took: float, interval: float, chance: float) -> float:
    """Seconds until the next sample, after one that took so many: at least as long.

    ``interval``: between the beginnings of two samples, on average. ``chance``, from 0 to 1, varies the length: else a
    program that works in steps of equal length, or that samples hold up, would always be met at the same place.
    """
    rest = interval - took
    return max(rest * (0.5 + chance), took * (1 + chance))


def _lives(pid: int) -> bool:
    """Whether a thread of the process is left."""
    return any(procfs.state(tid) not in ("", "Z", "X") for tid in procfs.tids(pid))
