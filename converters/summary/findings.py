"""Findings worth a sentence: waits that hold threads up, waits of main threads, and their likely causes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..facts.coordinators import coordinators
from ..facts.standing import Standing, only_waits
from ..facts.thread_names import thread_pattern
from ..facts.wait_causes import Key, effect_cause, held_cause
from ..facts.wait_kinds import (
    CHILD,
    CORE,
    EVENTS,
    HALTED,
    HELD,
    LOCK,
    PEER,
    SLEEP,
    THREAD,
    UNKNOWN,
)
from ..facts.wait_sums import Place, Sum, Sums, Thread
from ..model import ThreadTimes
from .finding import CPU, Finding
from .stragglers import CAUSE, last_of_all, own_kinds

SIGNIFICANT = 0.05
"""Minimum share of its threads' time, and of all active threads' time, for a wait worth a sentence."""
_HELD_UP = (LOCK, HELD, HALTED)
_EFFECTS = (SLEEP, THREAD, PEER, CHILD, EVENTS)
_FEW = 6
"""Up to this many process names, all traced processes are assumed to be related."""
_PER_SECOND = 5
_AT_WORK = 0.005
"""A process is at work from this many switches a second, or this share of one core."""
_SLIGHT = 0.02
"""Share of a core that a process must use to matter on a whole host."""
_HERD, _SHORT, _OFTEN = 8, 20_000, 100
"""A herd: minimum number of similar threads, maximum ns on a core per wake-up, minimum wake-ups a second."""
_TELLING = 10
"""Places below 1/this of a finding's time are not named."""
_NOWHERE: Mapping[Place, Sum] = {}


class Findings:
    """Findings of one profile."""

    def __init__(self, sums: Sums, threads: dict[Thread, ThreadTimes], standing: Standing, duration: int) -> None:
        self._sums, self.threads, self._standing = sums, threads, standing
        self.pids_moving = frozenset(pid for pid, tid in threads if (pid, tid) not in standing.still)
        self.still_pids = frozenset(pid for pid, _ in standing.still) - self.pids_moving
        """Processes in which no thread moved."""
        self._own = [thread for thread in threads if thread not in standing.kernel]
        self._processes = {thread: thread_pattern(times.process, main=False) for thread, times in threads.items()}
        self._names = {self._process(thread) for thread in self._own}
        self._at_work = self._pids_at_work(duration)
        self._duration = duration
        self.active_wall = sum(times.wall for thread, times in threads.items() if not self.is_quiet(thread))
        self._working = {each for each in self._own if each not in standing.idle and self._waits_at_work(each)}
        self._led_by_workers = {pid for pid, _ in coordinators(sums, standing.still, self._working, standing.quiet)}

    def is_quiet(self, thread: Thread) -> bool:
        """Whether it spends nearly all its time in one wait that others end."""
        places = self._standing.quiet.get(thread, ())
        return bool(places) and only_waits(self.threads[thread], self._sums[thread], places)

    def _waits_at_work(self, thread: Thread) -> bool:
        """Whether it mostly waits, but not always in one place."""
        times = self.threads[thread]
        return (times.on_cpu + times.runnable) * 2 < times.wall and not self.is_quiet(thread)

    def _pids_at_work(self, duration: int) -> frozenset[int]:
        on_cpu: dict[int, int] = defaultdict(int)
        switches: dict[int, int] = defaultdict(int)
        for pid, tid in self._own:
            on_cpu[pid] += self.threads[pid, tid].on_cpu
            switches[pid] += sum(total.count for total in self._sums.get((pid, tid), {}).values())
        least = _PER_SECOND * duration / 1e9
        return frozenset(pid for pid in on_cpu if on_cpu[pid] >= _AT_WORK * duration or switches[pid] >= least)

    def _process(self, thread: Thread) -> str:
        return self._processes[thread]

    def _name(self, thread: Thread) -> str:
        return thread_pattern(self.threads[thread].thread, thread[0] == thread[1])

    def _mains(self) -> list[Thread]:
        """Main threads of the processes at work; if there are none, of those that moved; else of all. In place of a
        main thread that only waits for the end of others, the threads of its process that are at work."""
        own = [thread for thread in self._own if thread not in self._standing.idle]
        mains = [thread for thread in own if self.is_main(thread)] or own
        moving = [thread for thread in mains if thread[0] not in self.still_pids]
        return [thread for thread in moving if thread[0] in self._at_work] or moving or mains

    def is_main(self, thread: Thread) -> bool:
        """Whether what holds this thread up holds up its process."""
        if thread[0] in self._led_by_workers:
            return thread in self._working and thread[0] != thread[1]
        return thread[0] == thread[1]

    @property
    def is_whole_host(self) -> bool:
        """Whether threads of the kernel were traced, too."""
        return bool(self._standing.kernel)

    def are_slight(self, threads: Iterable[Thread]) -> bool:
        """Whether the whole host is traced and the processes of these threads hardly use a core: most wait for work."""
        pids = {pid for pid, _ in threads}
        on_cpu = sum(times.on_cpu for (pid, _), times in self.threads.items() if pid in pids)
        return self.is_whole_host and on_cpu < _SLIGHT * self._duration * len(pids)

    def waits_beside_work(self, effect: Finding) -> bool:
        """Whether it is no wait of an event loop, as far as known: not epoll, and its threads also run themselves."""
        on_cpu = sum(self.threads[thread].on_cpu for thread in effect.threads)
        return on_cpu >= SIGNIFICANT * effect.wall > 0 and all(place.wait.few for place in effect.places)

    def are_still(self, threads: Iterable[Thread]) -> bool:
        """Whether none of them moved."""
        return self._standing.still.issuperset(threads)

    def name_of(self, pid: int) -> str:
        """The name of a process."""
        return next(self._process(thread) for thread in self.threads if thread[0] == pid)

    def where_of(self, pid: int) -> str:
        """The name of a process, and where its main thread (or its first one) waits most."""
        thread = min((thread for thread in self.threads if thread[0] == pid), key=lambda each: (each[1] != pid, each))
        places = self._sums.get(thread, {})
        if not places:
            return self._process(thread)
        place = max(places, key=lambda place: (places[place].time, place))
        if place.wait.nowhere:
            return self._process(thread)
        where = "stopped" if place.kind == HALTED else f"in {' → '.join(place.site.frames) or place.site.kernel}"
        return f"{self._process(thread)} ({where})"

    def deadlocks(self) -> list[Finding]:
        """Processes with several still threads, each waiting for a lock of the program."""
        found: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
        for thread in self._standing.still:
            places = [place for place in self._sums[thread] if place.wait.lock]
            if places:
                found[LOCK, thread[0]][thread] = places
        return self._made((LOCK,), {key: members for key, members in found.items() if len(members) > 1})

    def held_up(self) -> list[Finding]:
        """Waits for locks (all waiters together), devices, memory in processes that moved, longest first."""
        own = [thread for thread in self._own if thread[0] not in self.still_pids]
        enough = SIGNIFICANT * self.active_wall
        # By hash, as there may be very many: only what is long enough is looked at.
        times: dict[int, int] = defaultdict(int)
        for thread, place, time in self._held(own):
            times[hash(held_cause(self._process(thread), place))] += time
        found: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
        for thread, place, _ in self._held(own):
            if times[hash(key := held_cause(self._process(thread), place))] >= enough:
                found[key].setdefault(thread, []).append(place)
        made = self._made(_HELD_UP, found)
        return sorted((finding for finding in made if finding.time >= enough), key=_order)

    def _held(self, threads: Iterable[Thread]) -> Iterator[tuple[Thread, Place, int]]:
        for thread in threads:
            for place, total in self._sums.get(thread, _NOWHERE).items():
                if place.kind in _HELD_UP:
                    yield thread, place, total.time

    def effects(self) -> list[Finding]:
        """Main threads' waits that others end, with other threads waiting in the same places; longest first."""
        mains = set(self._mains())
        processes = {self._process(thread) for thread in mains}
        wanted = self._effects_on(mains)
        found: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
        for thread in self._own:
            process = self._process(thread)
            if thread in self._standing.idle or process not in processes:
                continue
            for place in self._sums.get(thread, _NOWHERE):
                if cause := wanted.get((place.kind, process, place.site.frames)):
                    found[cause].setdefault(thread, []).append(place)
        made = self._made(_EFFECTS, found)
        return sorted((finding for finding in made if mains.intersection(finding.threads)), key=_order)

    def _effects_on(self, mains: set[Thread]) -> dict[Key, Key]:
        """By (kind, process, frames): the causes that take enough of the time of one of ``mains``."""
        found: dict[Key, Key] = {}
        for thread in mains - self._standing.idle:
            process, enough = self._process(thread), SIGNIFICANT * self.threads[thread].wall
            times: dict[Key, int] = defaultdict(int)
            causes: dict[Key, Key] = {}
            for place, total in self._sums.get(thread, _NOWHERE).items():
                if place.kind in _EFFECTS:
                    cause = effect_cause(process, place)
                    causes[place.kind, process, place.site.frames] = cause
                    times[cause] += total.time
            found.update((key, cause) for key, cause in causes.items() if times[cause] >= enough)
        return found

    def workers(self) -> Finding | None:
        """The longest wait, ended by others, of threads of one name: no main threads, none that only wait."""
        found: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
        for thread in self._own:
            quiet = self.is_quiet(thread) or thread in self._standing.idle
            if thread[0] == thread[1] or quiet or thread[0] not in self._at_work:
                continue
            for place in self._sums.get(thread, _NOWHERE):
                if place.kind in _EFFECTS:
                    key = *effect_cause(self._process(thread), place), self._name(thread)
                    found[key].setdefault(thread, []).append(place)
        return min(self._made(_EFFECTS, found), key=_order, default=None)

    def _made(self, kinds: Sequence[str], groups: dict[Key, dict[Thread, list[Place]]]) -> list[Finding]:
        """``groups`` by keys that begin with the kind; in the order of ``kinds``."""
        in_order = sorted(groups.items(), key=lambda group: kinds.index(str(group[0][0])))
        return [made for key, members in in_order if (made := self._finding(str(key[0]), members))]

    def longest(self) -> Finding | None:
        """The longest wait of threads that are not idle, for when nothing is significant."""
        groups: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
        for thread in self._own:
            for place in self._sums.get(thread, ()):
                told = place.kind not in (CORE, UNKNOWN) and (place.kind == HALTED or not place.wait.nowhere)
                if told and thread not in self._standing.idle:
                    key = self._process(thread), place.kind, place.site.frames
                    groups[key].setdefault(thread, []).append(place)
        found = [self._finding(str(key[1]), members, least=0) for key, members in groups.items()]
        return min((each for each in found if each), key=_order, default=None)

    def _finding(self, kind: str, members: dict[Thread, list[Place]], least: float = SIGNIFICANT) -> Finding | None:
        """A finding on the threads that lose much time there, or None."""
        if len(members) == 1 and len(places := next(iter(members.values()))) == 1:
            return self._single(kind, next(iter(members)), places[0], least)
        times = {thread: sum(self._sums[thread][place].time for place in places) for thread, places in members.items()}
        told = [thread for thread in times if times[thread] >= least * self.threads[thread].wall]
        if not told:
            return None
        together: dict[Place, int] = defaultdict(int)
        total = Sum()
        for thread in told:
            for place in members[thread]:
                together[place] += self._sums[thread][place].time
                total.add(self._sums[thread][place])
        telling = [place for place in together if together[place] * _TELLING >= total.time]
        places = telling or list(together)
        places.sort(key=lambda place: (-together[place], place))
        threads = tuple(sorted(told, key=lambda thread: (-times[thread], thread)))
        made = Finding(kind, threads, total.time, self._wall(threads), tuple(places), total.count, total.max)
        return replace(made, samples=total.samples, most=times[threads[0]] if len(threads) > 1 else 0)

    def _single(self, kind: str, thread: Thread, place: Place, least: float) -> Finding | None:
        total, wall = self._sums[thread][place], self.threads[thread].wall
        if total.time < least * wall:
            return None
        return Finding(kind, (thread,), total.time, wall, (place,), total.count, total.max, samples=total.samples)

    def places_of(self, threads: Iterable[Thread]) -> dict[Place, int]:
        """The time of these threads' waits, in ns."""
        found: dict[Place, int] = defaultdict(int)
        for thread in threads:
            for place, total in self._sums.get(thread, _NOWHERE).items():
                found[place] += total.time
        return found

    def _wall(self, threads: Iterable[Thread]) -> int:
        walls = [self.threads[thread].wall for thread in threads]
        return sum(walls) if all(walls) else 0

    def busy(self) -> list[Finding]:
        """Running or runnable threads by name, longest first, without kernel threads and threads that only wait."""
        groups: dict[Key, list[Thread]] = defaultdict(list)
        for thread in self._own:
            times = self.threads[thread]
            if not self.is_quiet(thread) and times.on_cpu + times.runnable:
                groups[self._process(thread), self._name(thread)].append(thread)
        return sorted((self._running(members) for members in groups.values()), key=_order)

    def _running(self, members: list[Thread]) -> Finding:
        of = {thread: self.threads[thread].on_cpu + self.threads[thread].runnable for thread in members}
        threads = tuple(sorted(members, key=lambda thread: (-of[thread], thread)))
        runnable = sum(self.threads[thread].runnable for thread in members)
        return Finding(CPU, threads, sum(of.values()), self._wall(threads), runnable=runnable)

    def cause_of(self, effect: Finding) -> Finding | None:
        """What the threads that may end this wait do meanwhile; None if none was found."""
        waiting = set(effect.threads)
        if effect.kind in (THREAD, SLEEP):
            asked = [thread for thread in self._own if thread[0] in effect.pids]
        elif effect.kind in (PEER, CHILD):
            mine = {self._process(thread) for thread in waiting}
            few = len(self._names) <= _FEW
            asked = [thread for thread in self._own if few or self._process(thread) in mine]
            asked = [thread for thread in asked if thread[0] not in effect.pids]
        else:
            return None
        asked = [thread for thread in asked if thread not in waiting]
        causes = self._stragglers(effect) or self._causes(asked, own_kinds(effect.kind))
        # The cause of a wait is occupied for a good part of that time.
        each = effect.time / len(effect.threads)
        causes = [cause for cause in causes if cause.time >= CAUSE * each]
        return max(causes, key=lambda of: (of.time / of.wall * min(1, of.time / each), of.threads), default=None)

    def _stragglers(self, effect: Finding) -> list[Finding]:
        """Threads that those of ``effect`` wait for, by what they do themselves."""
        victim = effect.threads[0]
        alike = [each for each in self._own if each[0] == each[1] and self._process(each) == self._process(victim)]
        late = last_of_all(effect, alike if victim in alike else [], self.threads, self._sums)
        return self._causes(late, own_kinds(PEER))

    def without(self, effect: Finding, others: Finding) -> Finding:
        """``effect`` without the threads of ``others``, if any are left."""
        members = {
            thread: [place for place in effect.places if place in self._sums[thread]]
            for thread in effect.threads
            if thread not in others.threads
        }
        left = self._finding(effect.kind, members, least=0) if members else None
        return left or effect

    def _causes(self, asked: list[Thread], kinds: tuple[str, ...]) -> list[Finding]:
        groups: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
        running: dict[Key, list[Thread]] = defaultdict(list)
        for thread in asked:
            if thread in self._standing.idle or not self.threads[thread].wall:
                continue
            kind, places = self._mostly(thread, kinds)
            key = self._process(thread), self._name(thread), kind
            if kind == CPU:
                running[key].append(thread)
            elif places:
                groups[key][thread] = places
        found = [self._running(members) for members in running.values()]
        found += [made for key, members in groups.items() if (made := self._finding(str(key[2]), members))]
        return [cause for cause in found if cause.wall and cause.time >= CAUSE * cause.wall]

    def _mostly(self, thread: Thread, kinds: tuple[str, ...]) -> tuple[str, list[Place]]:
        """What a thread does most: run, or wait in one of these kinds."""
        times = self.threads[thread]
        of: dict[str, int] = defaultdict(int)
        places: dict[str, list[Place]] = defaultdict(list)
        for place, total in self._sums.get(thread, {}).items():
            if place.kind in kinds:
                of[place.kind] += total.time
                places[place.kind].append(place)
        if CPU in kinds:
            # Waiting for a core counts half as its own work.
            of[CPU] = times.on_cpu + times.runnable // 2
        most = max(of, key=lambda kind: (of[kind], kind), default=CORE)
        return most, places[most]

    def herd(self) -> Finding | None:
        """Threads often woken together, with almost nothing to do each time."""
        found = [finding for finding in self._pools_awake() if self._is_herd(finding)]
        return min(found, key=_order, default=None)

    def _pools_awake(self) -> list[Finding]:
        workers = [thread for thread in self._own if thread[0] != thread[1]]
        sizes = Counter(
            key
            for thread in workers
            for key in dict.fromkeys(self._pool_key(thread, place) for place in self._pauses(thread))
        )
        groups = {key: dict[Thread, list[Place]]() for key, size in sizes.items() if size >= _HERD}
        for thread in workers:
            for place in self._pauses(thread):
                if (of := groups.get(self._pool_key(thread, place))) is not None:
                    of.setdefault(thread, []).append(place)
        return self._made((THREAD,), groups)

    def _pauses(self, thread: Thread) -> Iterable[Place]:
        return [place for place in self._sums.get(thread, _NOWHERE) if place.kind == THREAD]

    def _pool_key(self, thread: Thread, place: Place) -> Key:
        return THREAD, self._process(thread), self._name(thread), place.site.frames

    def _is_herd(self, finding: Finding) -> bool:
        if len(finding.threads) < _HERD or finding.count < _OFTEN * len(finding.threads) * self._duration / 1e9:
            return False
        counts = sorted(
            sum(self._sums[thread][place].count for place in finding.places if place in self._sums[thread])
            for thread in finding.threads
        )
        on_cpu = sum(self.threads[thread].on_cpu for thread in finding.threads)
        return counts[0] * 3 >= counts[-1] * 2 and on_cpu < _SHORT * finding.count


def _order(finding: Finding) -> tuple[int, tuple[Thread, ...]]:
    return -finding.time, finding.threads
