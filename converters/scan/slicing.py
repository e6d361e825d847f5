"""Makes the slices of threads from the times of their waits: by what a wait is for, and where, not by stack."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import NamedTuple

from ..facts import thresholds
from ..facts.stacks import Stacks
from ..facts.wait_kinds import UNKNOWN, WORK
from ..facts.wait_sites import site_of
from ..facts.waits import Waits
from ..model import Stack, ThreadTimes
from ..model.sites import Site
from ..model.slices import SliceSpent, ThreadSlices
from ..model.states import RUNNABLE
from ..rules.finding import CPU
from ..rules.place_kinds import kind_of_wait
from ..rules.verdict import CORES, IDLE, UNCLEAR

_NOWHERE = Site((), "")
_KINDS = {WORK: IDLE, UNKNOWN: UNCLEAR}
"""Kinds of waits that verdicts have other words for."""


class Waited(NamedTuple):
    """Waits of a thread with one stack. The stack has to live as long as what is made of it."""

    state: str
    """Blocked or runnable, see `model.states`."""
    stack: Stack
    object: int
    """Id of the `WaitObject`; 0 if it is not known."""
    times: Sequence[int]
    """ns in each slice of the trace."""


@dataclass
class Lived:
    """A thread of the trace, and what it did."""

    account: ThreadTimes
    times: Sequence[int]
    """ns in each slice of the trace for which it lived."""
    waits: list[Waited] = field(default_factory=list)


_Key = tuple[str, Site]
"""Kind and place."""


class _Keys:
    """Kinds and places of waits. Found out once for each stack, by its identity: many threads have the same."""

    def __init__(self) -> None:
        self._stacks, self._waits = Stacks(), Waits()
        self._known: dict[tuple[int, str], _Key] = {}
        self._keys: dict[_Key, _Key] = {}

    def of(self, wait: Waited) -> _Key:
        if wait.state.startswith(RUNNABLE):
            return CORES, _NOWHERE
        where = id(wait.stack), wait.state
        if where not in self._known:
            parts = self._stacks.of(wait.stack)
            kind = kind_of_wait(self._waits.at(parts, wait.state), wait.state)
            key = _KINDS.get(kind, kind), site_of(parts)
            self._known[where] = self._keys.setdefault(key, key)
        return self._known[where]


class _Parts:
    """Times of one thread, or of several: by kind and place, in slices."""

    def __init__(self) -> None:
        self.times: dict[_Key, list[int]] = {}
        self.objects: defaultdict[_Key, Counter[int]] = defaultdict(Counter)

    def add(self, key: _Key, times: Iterable[int], objects: Mapping[int, int]) -> None:
        known = self.times.get(key)
        self.times[key] = list(times) if known is None else list(map(add, known, times))
        if objects:
            self.objects[key].update(objects)

    def join(self, other: _Parts) -> None:
        for key, times in other.times.items():
            self.add(key, times, other.objects.get(key, {}))

    def spent(self, first: int, last: int) -> list[SliceSpent]:
        """Most time first, of these slices."""
        in_order = sorted(self.times.items(), key=lambda entry: (-sum(entry[1]), entry[0]))
        made = []
        for (kind, site), times in in_order:
            if total := sum(times):
                ((number, most),) = self.objects[kind, site].most_common(1) or ((0, 0),)
                on = number if most >= thresholds.ON_ONE * total else 0
                made.append(SliceSpent(kind, tuple(times[first : last + 1]), site.frames, site.kernel, on))
        return made


def slices_of(threads: Sequence[Lived], length: int) -> list[ThreadSlices]:
    """The slices of these threads, each of ``length`` ns. What a thread did when it did not wait is running, as far as
    its account says so: the rest, which was lost, is unclear."""
    keys = _Keys()
    by_process: defaultdict[tuple[int, int, str], list[Lived]] = defaultdict(list)
    for each in threads:
        by_process[each.account.pid, each.account.pid_life, each.account.process].append(each)
    apart = _told_apart(threads)
    found = []
    for lived in by_process.values():  # one process at a time: a host has many threads
        members = [(each, _parts(each, keys)) for each in lived]
        _forget_places([of for _, of in members])
        together: list[tuple[Lived, _Parts]] = []
        for each, of in members:
            if id(each) in apart:
                found += _made(each.account, of, each.times, length)
            else:
                together.append((each, of))
        found += _of_others(together, length)
    return found


def _parts(each: Lived, keys: _Keys) -> _Parts:
    made = _Parts()
    for wait in each.waits:
        made.add(keys.of(wait), wait.times, {wait.object: sum(wait.times)} if wait.object else {})
    waited = map(sum, zip(*made.times.values(), strict=True)) if made.times else [0] * len(each.times)
    rest = [max(lived - time, 0) for lived, time in zip(each.times, waited, strict=True)]
    left = sum(rest)
    ran = min(each.account.on_cpu, left)
    running = [time * ran // left if left else 0 for time in rest]
    if left - ran <= len(rest):  # a ns of each: rounded
        running = rest
    made.add((CPU, _NOWHERE), running, {})
    made.add((UNCLEAR, _NOWHERE), (time - part for time, part in zip(rest, running, strict=True)), {})
    return made


def _told_apart(threads: Sequence[Lived]) -> set[int]:
    """Identities of the threads that have slices of their own: if there are too many, those that did most."""
    in_order = sorted(threads, key=lambda each: -each.account.on_cpu - each.account.runnable - each.account.switches)
    return {id(each) for each in in_order[: thresholds.SLICE_THREADS]}


def _forget_places(members: Sequence[_Parts]) -> None:
    """Leaves the places in which the threads of a process wait longest."""
    times: Counter[_Key] = Counter()
    for of in members:
        for key, each in of.times.items():
            if key[1] != _NOWHERE:
                times[key] += sum(each)
    kept = {key for key, _ in times.most_common(thresholds.SLICE_PLACES)}
    for of in members:
        for key in [key for key in of.times if key[1] != _NOWHERE and key not in kept]:
            of.add((key[0], _NOWHERE), of.times.pop(key), {})
            of.objects.pop(key, None)


def _of_others(members: Sequence[tuple[Lived, _Parts]], length: int) -> list[ThreadSlices]:
    """The threads of a process that are not told apart, as one."""
    if not members:
        return []
    whole = _Parts()
    for _, of in members:
        whole.join(of)
    account = members[0][0].account
    times = [sum(each) for each in zip(*(each.times for each, _ in members), strict=True)]
    one = ThreadTimes(account.pid, account.process, 0, "", 0, 0, 0, {}, pid_life=account.pid_life)
    return _made(one, whole, times, length)


def _made(account: ThreadTimes, of: _Parts, lived: Sequence[int], length: int) -> list[ThreadSlices]:
    """The slices of a thread; none if it did not live in any."""
    in_which = [i for i, time in enumerate(lived) if time]
    if not in_which:
        return []
    first, last = in_which[0], in_which[-1]
    ids = account.pid, account.tid
    lives = {"pid_life": account.pid_life, "tid_life": account.tid_life}
    return [ThreadSlices(account.process, account.thread, *ids, length, first, of.spent(first, last), **lives)]
