"""Ids of threads and processes that no two of a profile share, though the kernel's ids come back.

Such an id is the kernel's with the so many-th use of it above: the first use has the kernel's own number. A main thread
has the id of its process. Threads that ended and are added up have 0 as the kernel's id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..model import Labels, Profile, Sample, ThreadTimes
from ..model.call_ioctls import CallIoctls
from ..model.calls import CallTimes
from ..model.copies import Copies
from ..model.slices import ThreadSlices

_BITS = 32
_SUMS = 1 << 24
"""More than processes that have names of their own."""
_ORDINALS = {1: "second", 2: "third"}


def with_own_ids(profile: Profile) -> Profile:
    """The profile with such ids in ``pid`` and ``tid``."""
    lives = {key for labels in {sample.labels for sample in profile.samples} for key, _ in labels if "-life" in key}
    calls = [each for call in profile.calls for each in (call, *call.threads)]
    uses = {life for call in calls for life in (call.pid_life, call.tid_life)}
    parts: list[CallIoctls | Copies] = [*profile.call_ioctls, *profile.copies]
    uses |= {part.pid_life for part in parts}
    uses |= {each.pid_life for each in profile.origins}
    uses |= {life for each in profile.slices for life in (each.pid_life, each.tid_life)}
    uses |= {life for times in profile.threads for life in (times.pid_life, times.tid_life)}
    if not lives and uses <= {1}:
        return profile
    ids = _Ids()
    known: dict[Labels, Labels] = {}
    samples = []
    for sample in profile.samples:
        if sample.labels not in known:
            known[sample.labels] = ids.labels(sample.labels)
        samples.append(Sample(sample.stack, sample.values, known[sample.labels]))
    threads = []
    for times in profile.threads:
        pid, tid = ids.of((times.pid, times.pid_life), (times.tid, times.tid_life), times.process, times.thread)
        threads.append(replace(times, pid=pid, tid=tid))
    processes = [
        replace(process, pid=ids.process(process.pid, process.pid_life, process.process), pid_life=1)
        for process in profile.processes
    ]
    origins = [
        replace(each, pid=ids.process(each.pid, each.pid_life, each.process), pid_life=1) for each in profile.origins
    ]
    slices = [ids.slices(each) for each in profile.slices]
    timed = [ids.call(call) for call in profile.calls]
    made = [replace(part, pid=ids.process(part.pid, part.pid_life, part.process), pid_life=1) for part in parts]
    return replace(
        profile,
        samples=samples,
        threads=threads,
        processes=processes,
        origins=origins,
        calls=timed,
        call_ioctls=[part for part in made if isinstance(part, CallIoctls)],
        copies=[part for part in made if isinstance(part, Copies)],
        slices=slices,
    )


class _Ids:
    """Sums are known by their names: the numbers of those of several profiles that were merged mean nothing."""

    def __init__(self) -> None:
        self._processes: dict[str, int] = {}
        self._sums: dict[tuple[int, str], int] = {}

    def process(self, pid: int, life: int, name: str) -> int:
        if not pid and life > 1:
            return self._processes.setdefault(name, len(self._processes) + 1) << _BITS
        return pid | max(life - 1, 0) << _BITS

    def of(self, pid: tuple[int, int], tid: tuple[int, int], process: str, thread: str) -> tuple[int, int]:
        """Own ids of a thread, from the kernel's ids and their lives."""
        own = self.process(*pid, process)
        # A main thread of a process in which another thread executed a program is the second one: told as one.
        if tid[0] == pid[0] and (tid[0] or tid[1] == pid[1]):
            return own, own
        if not tid[0] and tid[1] > 1:
            return own, self._sums.setdefault((own, thread), _SUMS + len(self._sums)) << _BITS
        return own, tid[0] | max(tid[1] - 1, 0) << _BITS

    def call(self, call: CallTimes) -> CallTimes:
        pid, life = call.pid, call.pid_life
        if call.tid or call.tid_life > 1:
            own, tid = self.of((pid, life), (call.tid, call.tid_life), call.process, call.thread)
        else:
            own, tid = self.process(pid, life, call.process), 0
        threads = [self.call(thread) for thread in call.threads]
        return replace(call, pid=own, pid_life=1, tid=tid, tid_life=1, threads=threads)

    def slices(self, of: ThreadSlices) -> ThreadSlices:
        if of.tid or of.tid_life > 1:
            own, tid = self.of((of.pid, of.pid_life), (of.tid, of.tid_life), of.process, of.thread)
        else:
            own, tid = self.process(of.pid, of.pid_life, of.process), 0
        return replace(of, pid=own, pid_life=1, tid=tid, tid_life=1)

    def labels(self, labels: Labels) -> Labels:
        found = dict(labels)
        ids = [found.pop(key, default) for key, default in (("pid", 0), ("pid-life", 1), ("tid", 0), ("tid-life", 1))]
        pid, pid_life, tid, tid_life = (number if isinstance(number, int) else 0 for number in ids)
        names = str(found.get("process", "")), str(found.get("thread", ""))
        found["pid"], found["tid"] = self.of((pid, pid_life), (tid, tid_life), *names)
        return tuple(sorted(found.items()))


def kernel_id(own: int) -> int:
    """The kernel's id; 0 for threads that are added up."""
    return own & (1 << _BITS) - 1


def life_of(own: int) -> int:
    """Number of this use of the kernel's id: 1 for the first one, and for threads that are added up."""
    return 1 if is_sum(own) else (own >> _BITS) + 1


def kernel_ids(own: Iterable[int]) -> list[int]:
    """The kernel's ids, each once, without those of threads that are added up."""
    return sorted({number for each in own if (number := kernel_id(each))})


def shown_id(own: int) -> str:
    """``4711``, or ``4711 (second)`` for the second thread or process that has this id."""
    life = own >> _BITS
    return f"{kernel_id(own)} ({_ORDINALS.get(life, f'{life + 1}th')})" if life else str(own)


def whose(name: str, own: int) -> str:
    """``train (4711)``. Processes and threads that are added up have no id."""
    return name if is_sum(own) or not own else f"{name} ({shown_id(own)})"


def is_sum(own: int) -> bool:
    """Whether it is the id of threads that are added up, or of their processes."""
    return own != 0 and not kernel_id(own)


def number_of(threads: Iterable[ThreadTimes]) -> int:
    """Number of threads that these accounts stand for."""
    return sum(times.count for times in threads)


def processes_of(threads: Iterable[ThreadTimes]) -> int:
    """Number of processes that these threads are of. Where they are added up: as many as main threads; without these,
    at most as many as the largest number of threads of a name. A process that has executed several programs is one, and
    has an account of its main thread for each."""
    most: dict[int, int] = {}
    mains: Counter[int] = Counter()
    for times in threads:
        most[times.pid] = max(most.get(times.pid, 1), times.count if is_sum(times.pid) else 1)
        if times.tid == times.pid and is_sum(times.pid):
            mains[times.pid] += times.count
    return sum(mains[pid] or number for pid, number in most.items())
