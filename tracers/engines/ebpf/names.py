"""Names and times of the threads and processes of a trace."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping

from ....converters.model import Labels, ThreadTimes
from ....converters.model.processes import LATENCY_BUCKETS, ProcessTimes, latency_bucket
from ...base.conditions import Condition
from ...kernel.records import BLOCKED, ON_CPU, RUNNABLE, STATES, ThreadRecord
from .capture import Capture

BLOCKED_STATES = tuple(state for state in STATES if state not in ("preempted", "new"))


class Names:
    """Names of threads and processes."""

    def __init__(self, capture: Capture, *, container_pids: bool) -> None:
        self._records = capture.threads
        processes = capture.spaces.processes
        self._processes = {pid: process.comm for pid, process in processes.items()}
        self._inside = {
            pid: process.nspid for pid, process in processes.items() if container_pids and process.nspid != pid
        }
        self._threads: dict[tuple[int, int], str] = {}
        for record in capture.threads:
            key = record.thread.key
            name = os.fsdecode(record.comm)
            self._threads[key.tgid, key.tid] = name
            if key.tgid == key.tid and name:
                self._processes[key.tgid] = name

    def process(self, pid: int) -> str:
        name = self._comm(pid)
        return f"{name} ({self._inside[pid]} inside)" if pid in self._inside else name

    def thread(self, pid: int, tid: int) -> str:
        return self._threads.get((pid, tid), "") or self._comm(pid)

    def _comm(self, pid: int) -> str:
        if not pid:
            return "[lost]"  # what was lost is of no process: see `records.LOST`
        return self._processes.get(pid, "") or "[unknown]"

    def labels(self, pid: int, tid: int, state: str, is_open: bool, wakers: Labels = ()) -> Labels:
        pairs: list[tuple[str, str | int]] = [
            ("pid", pid),
            ("process", self.process(pid)),
            ("state", state),
            ("thread", self.thread(pid, tid)),
            ("tid", tid),
            *wakers,
        ]
        return tuple([("open", "yes"), *pairs] if is_open else pairs)

    def times(self, record: ThreadRecord) -> ThreadTimes:
        """The thread's times, with its current phase counted up to the end."""
        thread = record.thread
        runnable = thread.runnable
        blocked = dict(zip(STATES, thread.blocked, strict=True))
        rest = 0 if record.exited else record.end - thread.since
        if thread.phase == BLOCKED:
            blocked[STATES[thread.key.state]] += rest
        elif thread.phase != ON_CPU:
            runnable += rest
        key = thread.key
        return ThreadTimes(
            key.tgid,
            self.process(key.tgid),
            key.tid,
            self.thread(key.tgid, key.tid),
            record.end - thread.start,
            record.on_cpu,
            runnable,
            {state: blocked[state] for state in BLOCKED_STATES if blocked[state]},
            thread.switches,
            record.exited,
            thread.creator,
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
                    pid,
                    self.process(pid),
                    tuple(counts),
                    condition.cpus,
                    condition.limits,
                    condition.environment,
                    condition.script if self.process(pid).startswith(condition.name) else "",
                )
            )
        return made

    def title(self, what: str) -> str:
        """``what`` and the processes that were traced: "Off-CPU time of 3 × python3"."""
        processes = Counter(self.process(pid) for pid in {record.thread.key.tgid for record in self._records})
        if len(processes) > 3:
            return f"{what} of {processes.total()} processes"
        whom = [f"{count} × {name}" if count > 1 else name for name, count in processes.most_common()]
        return f"{what} of {', '.join(whom)}" if whom else what
