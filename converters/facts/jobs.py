"""Jobs: processes that are ranks of one program, by evidence: environment, who started them, what connects them.

A name that a program has chosen is none. What inherits the rank of a process above it is a worker of that rank. Jobs
that share a host are kept apart: no two ranks of a job have one number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..model.origins import ENVIRONMENT, SIZES, Ancestor, ProcessOrigin
from ..model.ranks import GPU, label_of, rank_of
from . import thresholds
from .facts import Facts
from .frame_names import label
from .identity import kernel_id
from .job_identity import differ, identities
from .runtimes import is_in
from .wait_functions import COLLECTIVE, COLLECTIVE_FILES, HELPERS
from .wait_kinds import CHILD
from .wait_sums import Thread
from .wrappers import only_waits_for_child

CREATION = "creation"
"""Source of a rank beside those of `model.origins`: the order in which one process has started the others."""
BY_IDENTITY, BY_PARENT, BY_SOCKETS = "environment", "parent", "sockets"
BY_ANCESTOR, BY_CGROUP, BY_NAME = "ancestor", "cgroup", "name and environment"
"""Evidence that processes are of one job; the last one only where no origins were recorded."""


class Rank(NamedTuple):
    """A process that is a rank. ``gpus`` is hostile."""

    pid: int
    number: int
    source: str
    """Source of the number: `ENVIRONMENT`, `MEMORY` or `CREATION`."""
    gpus: str = ""
    """The minors of the GPUs that it has open, as in ``0,1``."""
    workers: tuple[int, ...] = ()
    """Processes that it has started, and these, if they are no ranks themselves: of its loader of data, for example."""


@dataclass(frozen=True)
class Job:
    """Ranks of one job that were traced, at least two."""

    ranks: tuple[Rank, ...]
    """Ranks in the order of their numbers."""
    size: int = 0
    """Number of all ranks, on other hosts, too; 0 if it is not known."""
    launcher: Ancestor | None = None
    """The nearest process that has started all of them; None if it is not known."""
    evidence: tuple[str, ...] = ()
    """Evidence that they belong together."""

    @property
    def pids(self) -> frozenset[int]:
        """The ranks, without their workers."""
        return frozenset(rank.pid for rank in self.ranks)


def jobs_of(facts: Facts) -> tuple[Job, ...]:
    """All jobs of a profile: those with most ranks first."""
    ranks = _ranks(facts)
    groups = _Groups(facts, ranks)
    origins = facts.origins
    groups.join(BY_IDENTITY, lambda pid: identities(origins.get(pid)))
    groups.join(BY_PARENT, lambda pid: [_parent(facts, pid, ranks)], same_program=True)
    groups.join(BY_SOCKETS, _Connected(facts, ranks).keys, same_program=True)
    groups.join(BY_ANCESTOR, lambda pid: [each.pid for each in _above(origins.get(pid))], same_program=True)
    groups.join(BY_CGROUP, lambda pid: [origins[pid].cgroup] if pid in origins else [], same_program=True)
    groups.join(BY_NAME, lambda pid: [] if pid in origins else [(facts.name_of_pid(pid), _size(facts, pid))])
    workers = _workers(facts, ranks)
    made = [_job(facts, group, ranks, workers, groups.evidence) for group in groups.found() if len(group) > 1]
    return tuple(sorted(made, key=lambda job: (-len(job.ranks), job.ranks[0].pid)))


def _job(
    facts: Facts,
    group: Sequence[int],
    ranks: Mapping[int, tuple[int, str]],
    workers: Mapping[int, Sequence[int]],
    evidence: Mapping[int, set[str]],
) -> Job:
    found = [
        Rank(pid, *ranks[pid], facts.labels.get(pid, {}).get(GPU, ""), tuple(sorted(workers.get(pid, ()))))
        for pid in sorted(group, key=lambda pid: ranks[pid][0])
    ]
    size = max((_size(facts, pid) for pid in group), default=0)
    chains = [[each for each in _above(facts.origins.get(pid)) if each.pid not in ranks] for pid in group]
    common = set.intersection(*({each.pid for each in chain} for chain in chains))
    launcher = next((each for each in chains[0] if each.pid in common), None)
    why = sorted(set().union(*(evidence[pid] for pid in group if pid in evidence)))
    return Job(tuple(found), size, launcher, tuple(why))


def _ranks(facts: Facts) -> dict[int, tuple[int, str]]:
    """Number and source of each process that is a rank: neither a worker of one, nor what has only started them."""
    numbers = {pid: number for pid, labels in facts.labels.items() if (number := rank_of(labels)) is not None}
    below: dict[int, set[int]] = defaultdict(set)
    for pid, number in numbers.items():
        for above in _above(facts.origins.get(pid)):
            below[above.pid].add(number)
    found: dict[int, tuple[int, str]] = {}
    wrappers: set[int] = set()
    while more := {pid for pid in numbers.keys() - wrappers if _only_starts(facts, pid, numbers, below, wrappers)}:
        wrappers |= more  # around which there may be another one
    for pid, number in numbers.items():
        same = (each.pid for each in _above(facts.origins.get(pid)) if each.pid not in wrappers)
        if pid not in wrappers and not any(numbers.get(above) == number for above in same):
            origin = facts.origins.get(pid)
            found[pid] = number, (origin.source if origin else "") or ENVIRONMENT
    return found | _by_creation(facts, numbers)


def _only_starts(
    facts: Facts, pid: int, numbers: Mapping[int, int], below: Mapping[int, set[int]], wrappers: Collection[int]
) -> bool:
    """Whether a process with a rank's variables has several ranks below it, its own number among them: a launcher of a
    batch job; or is another program than the rank, for whose end it waits: a shell, or a wrapper of its only child.
    ``wrappers``: those that are known."""
    beneath = below.get(pid, set())
    if len(beneath) > 1:
        return numbers[pid] in beneath
    if numbers[pid] not in beneath:
        return False
    program = facts.origins[pid].executable if pid in facts.origins else ""
    below_it = (each for each in numbers if pid in (above.pid for above in _above(facts.origins.get(each))))
    is_another = all(facts.origins[each].executable != program for each in below_it if each not in wrappers)
    return is_another and (_waits_for_children((pid, pid), facts) or _wraps(facts, pid, numbers))


def _wraps(facts: Facts, pid: int, numbers: Mapping[int, int]) -> bool:
    """Whether a process does nothing but wait for its only child, which has the same rank."""
    children = [each.pid for each in facts.origins.values() if each.ancestors and each.ancestors[0].pid == pid]
    is_alone = len(children) == 1 and numbers.get(children[0]) == numbers[pid]
    return is_alone and only_waits_for_child(pid, facts.threads, facts.sums)


def _waits_for_children(main: Thread, facts: Facts) -> bool:
    times = facts.threads.get(main)
    waits = sum(total.time for place, total in facts.waits_of(main).items() if place.kind == CHILD)
    return times is not None and waits >= thresholds.DOES_MOSTLY * times.wall > 0


def _by_creation(facts: Facts, numbers: Mapping[int, int]) -> dict[int, tuple[int, str]]:
    """Processes without a rank's variables that one process has started, and of which some meet in collective
    operations: those that do, and those that have a thread of the library for them."""
    groups: dict[tuple[int, str], list[ProcessOrigin]] = defaultdict(list)
    meet = _that_meet(facts) if facts.origins else frozenset()
    for pid, origin in facts.origins.items():
        if pid not in numbers and origin.ancestors and origin.executable:
            groups[origin.ancestors[0].pid, origin.executable].append(origin)
    found: dict[int, tuple[int, str]] = {}
    for alike in groups.values():
        some = any(each.pid in meet for each in alike)
        group = [each for each in alike if some and (each.pid in meet or _has_helper(facts, each.pid))]
        group.sort(key=lambda origin: (origin.began, origin.pid))
        if len(group) > 1:
            found |= {origin.pid: (number, CREATION) for number, origin in enumerate(group)}
    return found


def _that_meet(facts: Facts) -> frozenset[int]:
    """Processes of which a thread waits for other ranks in a collective operation of a library."""
    meet = (pid for (pid, _), places in facts.sums.items() if any(each.wait.job == COLLECTIVE for each in places))
    return frozenset(meet)


def _has_helper(facts: Facts, pid: int) -> bool:
    """Whether a library has started a thread in it that takes part in the operations, which a fork does not copy."""
    mine = (places for thread, places in facts.sums.items() if thread[0] == pid)
    return any(
        is_in(frame, COLLECTIVE_FILES) and HELPERS.fullmatch(label(frame)) is not None
        for places in mine
        for place in places
        for frame in place.stack
    )


def _workers(facts: Facts, ranks: Mapping[int, object]) -> dict[int, list[int]]:
    """Traced processes below each rank, and below no other rank that is nearer."""
    found: dict[int, list[int]] = defaultdict(list)
    for pid, origin in facts.origins.items():
        above = next((each.pid for each in origin.ancestors if each.pid in ranks), None)
        if above is not None and pid not in ranks:
            found[above].append(pid)
    return found


class _Groups:
    """Ranks that are put together, step by step."""

    def __init__(self, facts: Facts, ranks: Mapping[int, tuple[int, str]]) -> None:
        self._facts, self._ranks = facts, ranks
        self._of = {pid: [pid] for pid in ranks}
        self.evidence: dict[int, set[str]] = defaultdict(set)

    def join(self, why: str, keys: Callable[[int], Iterable[Hashable]], *, same_program: bool = False) -> None:
        """Puts those together that have a key in common and may be of one job. Earlier ones first: where several jobs
        have one key, their ranks were started one job after the other."""
        buckets: dict[Hashable, list[int]] = defaultdict(list)
        for pid in sorted(self._of, key=self._order):
            for key in keys(pid):
                if key:
                    buckets[key].append(pid)
        for members in buckets.values():
            kept: list[int] = []
            for pid in members:
                into = next((each for each in kept if self._fit(each, pid, same_program=same_program)), None)
                if into is None:
                    kept.append(pid)
                else:
                    self._merge(into, pid, why)

    def found(self) -> list[list[int]]:
        """The groups."""
        return list({id(group): group for group in self._of.values()}.values())

    def _order(self, pid: int) -> tuple[int, int]:
        origin = self._facts.origins.get(pid)
        return (origin.began if origin else 0), pid

    def _fit(self, one: int, other: int, *, same_program: bool) -> bool:
        first, second = self._of[one], self._of[other]
        if first is second:
            return True
        numbers = {self._ranks[pid][0] for pid in first}
        both = [*first, *second]
        sizes = {size for pid in both if (size := _size(self._facts, pid))}
        programs = {self._facts.origins[pid].executable for pid in both if pid in self._facts.origins}
        return (
            not any(self._ranks[pid][0] in numbers for pid in second)
            and len(sizes) < 2
            and not (same_program and len(programs) > 1)
            and not differ([self._facts.origins[pid] for pid in both if pid in self._facts.origins])
        )

    def _merge(self, one: int, other: int, why: str) -> None:
        first, second = self._of[one], self._of[other]
        self.evidence[one].add(why)
        if first is not second:
            first += second
            self._of.update(dict.fromkeys(second, first))


def _size(facts: Facts, pid: int) -> int:
    """Number of ranks of its job; 0 if it is not known."""
    origin = facts.origins.get(pid)
    told = [facts.labels.get(pid, {}).get(label_of("WORLD_SIZE"), "")]
    told += [origin.variables.get(name, "") for name in SIZES] if origin else []
    return next((int(text) for text in told if text.isascii() and text.isdigit() and len(text) <= _DIGITS), 0)


_DIGITS = 9


def _parent(facts: Facts, pid: int, ranks: Mapping[int, object]) -> Hashable:
    """The process that has started it; rank 0 may have started the others."""
    above = _above(facts.origins.get(pid))
    if any(pid in (each.pid for each in _above(facts.origins.get(other))[:1]) for other in ranks):
        return pid
    return above[0].pid if above else 0


def _above(origin: ProcessOrigin | None) -> Sequence[Ancestor]:
    return origin.ancestors if origin else ()


class _Connected:
    """Ranks that have a socket between them on which one of them waits."""

    def __init__(self, facts: Facts, ranks: Mapping[int, object]) -> None:
        by_kernel_id = {kernel_id(pid): pid for pid in ranks}
        self._pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for (pid, _), places in facts.sums.items():
            if pid not in ranks:
                continue
            numbers = {number for total in places.values() for number in total.objects or ()}
            ends = (end.pid for number in numbers if number in facts.objects for end in facts.objects[number].ends)
            for end in ends:
                other = by_kernel_id.get(end, pid)
                if other != pid:
                    pair = min(pid, other), max(pid, other)
                    self._pairs[pid].add(pair)
                    self._pairs[other].add(pair)

    def keys(self, pid: int) -> Iterable[Hashable]:
        """The pairs in which a rank is."""
        return sorted(self._pairs.get(pid, ()))
