"""Names and times of the threads and processes of a trace."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ....converters.model import Labels, ThreadTimes, wait_objects
from ....converters.model.origins import ProcessOrigin
from ....converters.model.processes import LATENCY_BUCKETS, ProcessTimes, latency_bucket
from ....converters.model.states import RUNNABLE as WAITS_FOR_CORE
from ...base.conditions import Condition
from ...kernel.records import BLOCKED, ON_CPU, RUNNABLE, STATES, Origin, ThreadRecord
from .capture import Capture

BLOCKED_STATES = tuple(state for state in STATES if state not in ("preempted", "new"))


_SUMS = 1 << 24
"""No id has been used so often."""


class Names:
    """Names of threads and processes."""

    def __init__(self, capture: Capture, *, container_pids: bool) -> None:
        self._records = capture.threads
        processes = capture.spaces.processes
        self._processes = {pid: process.comm for pid, process in processes.items()}
        self._inside = {
            pid: process.nspid for pid, process in processes.items() if container_pids and process.nspid != pid
        }
        self._pids = {number: (process.pid, process.life) for number, process in processes.items()}
        self._ranks = {pid: tuple(condition.ranks.items()) for pid, condition in capture.conditions.items()}
        self._lives = capture.lives.threads
        self._threads = {record.thread.first: os.fsdecode(record.comm) for record in capture.threads}
        self._times_used = self._count_ids()
        for record in capture.threads:
            key = record.thread.key
            name = self._threads[record.thread.first]
            if self.pid(key.tgid)[0] == key.tid and name:
                self._processes[key.tgid] = name

    def _count_ids(self) -> dict[int, int]:
        """Number of each thread among those of its process with its id."""
        used: Counter[tuple[int, int]] = Counter()
        found = {}
        for i, record in enumerate(sorted(self._records, key=lambda record: record.thread.start)):
            key = record.thread.key
            if not key.tid:
                # Main threads have their process's number; others any other one.
                found[record.thread.first] = self.pid(key.tgid)[1] if record.main else _SUMS + i
            elif record.thread.first not in found:
                used[key.tgid, key.tid] += 1
                found[record.thread.first] = used[key.tgid, key.tid]
        return found

    def pid(self, number: int) -> tuple[int, int]:
        """The pid of a process, and the so many-th process with this pid that it is during the trace."""
        return self._pids.get(number, (number, 1))

    def process(self, pid: int) -> str:
        name = self._comm(pid)
        return f"{name} ({self._inside[pid]} inside)" if pid in self._inside else name

    def thread(self, pid: int, first: int) -> str:
        """``first``: the thread's first life."""
        return self._threads.get(first, "") or self._comm(pid)

    def _comm(self, pid: int) -> str:
        if not pid:
            return "[lost]"  # what was lost is of no process: see `records.LOST`
        return self._processes.get(pid, "") or "[unknown]"

    def labels(self, origin: Origin, state: str, is_open: bool, wakers: Labels = ()) -> Labels:
        number, first = origin.tgid, self._lives.get(origin.life, -1)
        pid, life = self.pid(number)
        pairs: list[tuple[str, str | int]] = [
            ("process", self.process(number)),
            ("state", state),
            ("thread", self.thread(number, first)),
            *self._ranks.get(number, ()),
            *wakers,
        ]
        is_sum = not origin.tid and first in self._threads
        if pid or not is_sum:
            pairs.append(("pid", pid))
        if not is_sum:
            pairs.append(("tid", origin.tid))
        if on := self.object(origin, state):
            pairs.append((wait_objects.LABEL, on))
        if is_open:
            pairs.append(("open", "yes"))
        if life > 1:
            pairs.append(("pid-life", life))
        if (life := self._times_used.get(first, 1)) > 1:
            pairs.append(("tid-life", life))
        return tuple(sorted(pairs))

    @staticmethod
    def object(origin: Origin, state: str) -> int:
        """Number of the object that a wait is on; 0 if it is not known, or none."""
        return wait_objects.label(origin.object) if origin.object and not state.startswith(WAITS_FOR_CORE) else 0

    def times(self, record: ThreadRecord, made_in: tuple[str, ...] = ()) -> ThreadTimes:
        """The thread's times, with its current phase counted up to the end. ``made_in``: the functions that created
        it. It has a creator if it was created after the account before this one."""
        thread = record.thread
        is_later = thread.start == thread.cut > 0
        runnable = thread.runnable
        blocked = dict(zip(STATES, thread.blocked, strict=True))
        rest = 0 if record.exited else record.end - thread.since
        if thread.phase == BLOCKED:
            blocked[STATES[thread.key.state]] += rest
        elif thread.phase != ON_CPU:
            runnable += rest
        key = thread.key
        pid, life = self.pid(key.tgid)
        return ThreadTimes(
            pid,
            self.process(key.tgid),
            key.tid,
            self.thread(key.tgid, thread.first),
            record.end - thread.start,
            record.on_cpu,
            runnable,
            {state: blocked[state] for state in BLOCKED_STATES if blocked[state]},
            thread.switches,
            record.exited,
            0 if is_later else thread.creator,
            life,
            self._times_used[thread.first],
            record.number,
            made_in,
        )

    def processes(self, conditions: Mapping[int, Condition]) -> list[ProcessTimes]:
        """All processes with threads. A wait for a core that is open at the end counts with its length so far."""
        latencies: dict[int, list[int]] = {}
        for record in self._records:
            thread = record.thread
            counts = latencies.setdefault(thread.key.tgid, [0] * LATENCY_BUCKETS)
            for bucket, waits in enumerate(thread.latencies):
                counts[bucket] += waits
            if thread.phase == RUNNABLE and not record.exited:
                counts[latency_bucket(record.end - thread.since)] += 1
        made = []
        for pid, counts in latencies.items():
            condition = conditions.get(pid, Condition())
            made.append(
                ProcessTimes(
                    self.pid(pid)[0],
                    self.process(pid),
                    tuple(counts),
                    condition.cpus,
                    condition.limits,
                    condition.environment,
                    condition.script if self.process(pid).startswith(condition.name) else "",
                    self.pid(pid)[1],
                    condition.ranks,
                )
            )
        return made

    def origins(self, conditions: Mapping[int, Condition], launched: int = 0) -> list[ProcessOrigin]:
        """Origins of the processes with threads, as far as they are known. ``launched``: pid of the command that the
        trace has started."""
        numbers = dict.fromkeys(record.thread.key.tgid for record in self._records)
        known = ((number, conditions[number].origin) for number in numbers if number in conditions)
        return [
            replace(
                origin,
                pid=self.pid(number)[0],
                process=self.process(number),
                pid_life=self.pid(number)[1],
                launched=self.pid(number) == (launched, 1),
            )
            for number, origin in known
            if origin
        ]

    def title(self, what: str) -> str:
        """``what`` and the processes that were traced: "Off-CPU time of 3 × python3"."""
        processes = Counter(self.process(pid) for pid in {record.thread.key.tgid for record in self._records})
        for record in self._records:
            if record.main:
                processes[self.process(record.thread.key.tgid)] += record.number - 1
        if len(processes) > 3:
            return f"{what} of {processes.total()} processes"
        whom = [f"{count} × {name}" if count > 1 else name for name, count in processes.most_common()]
        return f"{what} of {', '.join(whom)}" if whom else what
