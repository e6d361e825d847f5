"""Pools: threads of a process that are alike, with the function that created them and the one that gives them work.

Threads are alike if they run the same function from their start on, have names of one pattern, and were created in the
same place. Of threads that were created before the trace it is not known where: they are told apart by who gives them
work, if each of them gets all of it from one place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..base.text import json_text
from ..model import Stack, ThreadTimes
from ..model.processes import OTHER_NAMES
from . import thresholds
from .facts import Facts
from .feeders import OTHERS, Names, feeders
from .frame_names import bare, label
from .identity import kernel_id
from .plumbing import is_plumbing
from .thread_names import thread_pattern
from .wait_sums import Place, Thread

_STARTS = frozenset(("clone", "clone3", "start_thread"))
"""Functions with which the stack of a thread begins (glibc's; musl's second one is called ``start``)."""
_OF_THREADING = frozenset(("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run"))
"""Functions of Python's threading.py that call the one that a thread was created for; before 3.11 they are known
without their class."""
_PLAIN = frozenset(name.removeprefix("Thread.") for name in _OF_THREADING)


class Pool(NamedTuple):
    """Threads of a process that are alike. Names are hostile, times in ns."""

    pid: int
    process: str
    thread: str
    """Common name of its threads: see `thread_names`."""
    runs: str
    """Function that its threads run from their start on; "" if it is not known."""
    made_in: Names
    """Functions that created them; () if that is not known."""
    fed_in: Names
    """Functions that mostly end their waits for work; () if it is not known, or if several do."""
    threads: int
    tids: frozenset[int]
    """Ids, as in the facts, of those that are known one by one."""
    ended: int
    """Number of threads that had ended when the trace did."""
    wall: int
    on_cpu: int
    runnable: int

    @property
    def wanted(self) -> int:
        """ns on a core, or waiting for one."""
        return self.on_cpu + self.runnable


class _Kind(NamedTuple):
    """Properties that threads of a pool have in common."""

    pid: int
    thread: str
    runs: str
    made_in: Names
    fed_in: Names = ()


def pools_of(facts: Facts) -> tuple[Pool, ...]:
    """Pools of all processes, those first that want cores most."""
    if facts.whole:
        by_pid = facts.whole.once(_by_pid)
        pids = {pid for pid, _ in facts.own}
        return tuple(sorted((pool for pid in pids for pool in by_pid.get(pid, ())), key=_order))
    members: dict[_Kind, list[ThreadTimes]] = defaultdict(list)
    runs: dict[Thread, str] = {}
    firsts: dict[Place, str] = {}
    for times in facts.accounts:
        thread = times.pid, times.tid
        if times.pid == times.tid or thread in facts.roles.kernel or times.thread == OTHER_NAMES or not times.pid:
            continue
        if thread not in runs:
            runs[thread] = _function(facts, thread, firsts)
        members[_Kind(times.pid, thread_pattern(times.thread, main=False), runs[thread], times.made_in)].append(times)
    _join_unknown(members)
    pools = [_pool(facts, kind, found) for kind, found in _fed_apart(facts, members)]
    pools = [pool for pool in pools if pool.threads >= thresholds.TEAM]
    return tuple(sorted(pools, key=_order))


def _by_pid(facts: Facts) -> dict[int, list[Pool]]:
    found: dict[int, list[Pool]] = defaultdict(list)
    for pool in facts.once(pools_of):
        found[pool.pid].append(pool)
    return found


def _join_unknown(members: dict[_Kind, list[ThreadTimes]]) -> None:
    """Puts threads of which something is not known into the only pool that they can be of. One that existed before the
    trace was not created where those were that it has seen."""
    alike: dict[tuple[int, str], list[_Kind]] = defaultdict(list)
    for kind in sorted(members):
        alike[kind.pid, kind.thread].append(kind)
    for kinds in alike.values():
        for kind in list(kinds):
            if kind.runs and kind.made_in:
                continue
            is_new = all(times.creator for times in members[kind])
            others = [other for other in kinds if other != kind and _may_be(kind, other, is_new)]
            if len(others) == 1:
                kinds.remove(kind)
                members[others[0]] += members.pop(kind)


def _may_be(kind: _Kind, other: _Kind, is_new: bool) -> bool:
    """Whether threads of the first kind may be of the other one of the same name, of which no less is known."""
    same_place = kind.made_in == other.made_in or (not kind.made_in and is_new)
    return kind.runs in ("", other.runs) and same_place


def _fed_apart(facts: Facts, members: dict[_Kind, list[ThreadTimes]]) -> Iterable[tuple[_Kind, list[ThreadTimes]]]:
    """The kinds with their threads. Those that were not seen to be created are apart by who gives them work."""
    for kind, found in members.items():
        by_place: dict[Names, list[ThreadTimes]] = defaultdict(list)
        if not kind.made_in:
            tids = _tids(found)
            for times in found:
                by_place[_feeder(feeders(facts, [(times.pid, times.tid)], tids), thresholds.ENDS_ALIKE)].append(times)
        if not by_place or () in by_place:
            yield kind, found
        else:
            yield from ((kind._replace(fed_in=place), fed) for place, fed in by_place.items())


def _feeder(found: Counter[Names], share: float) -> Names:
    """The place with more than this share of all time; () if there is none."""
    place, time = max(found.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
    return place if time > share * found.total() and place != OTHERS else ()


def _tids(found: Iterable[ThreadTimes]) -> frozenset[int]:
    """See `Pool.tids`, as the kernel knows them."""
    return frozenset(number for times in found if (number := kernel_id(times.tid)))


def _pool(facts: Facts, kind: _Kind, found: Sequence[ThreadTimes]) -> Pool:
    fed = feeders(facts, {(times.pid, times.tid) for times in found}, _tids(found))
    del fed[()]
    return Pool(
        kind.pid,
        found[0].process,
        kind.thread,
        kind.runs,
        kind.made_in,
        kind.fed_in or _feeder(fed, thresholds.MOSTLY),
        sum(times.count for times in found),
        frozenset(times.tid for times in found if kernel_id(times.tid)),
        sum(times.count for times in found if times.exited),
        sum(times.wall for times in found),
        sum(times.on_cpu for times in found),
        sum(times.runnable for times in found),
    )


def pools_among(facts: Facts, threads: Iterable[Thread]) -> tuple[Pool, ...]:
    """Pools that these threads are in and that want much of the cores that all of them want, if they are several."""
    chosen = set(threads)
    wanted = sum(facts.threads[thread].on_cpu + facts.threads[thread].runnable for thread in chosen)
    found = [
        pool for pool in facts.once(pools_of) if pool.tids and chosen.issuperset((pool.pid, tid) for tid in pool.tids)
    ]
    pools = alike_pools(pool for pool in found if pool.wanted >= thresholds.CROWD_MEMBER * wanted)
    return pools if len(pools) > 1 else ()


def alike_pools(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """Pools of several processes that are alike, each as one (of the first process); those that want cores most come
    first."""
    found: dict[tuple[object, ...], Pool] = {}
    for pool in pools:
        key = pool.thread, pool.runs, pool.made_in, pool.fed_in
        old = found.get(key)
        found[key] = pool if old is None else _together(old, pool)
    return tuple(sorted(found.values(), key=_order))


def _together(one: Pool, other: Pool) -> Pool:
    return one._replace(
        threads=one.threads + other.threads,
        tids=one.tids | other.tids,
        ended=one.ended + other.ended,
        wall=one.wall + other.wall,
        on_cpu=one.on_cpu + other.on_cpu,
        runnable=one.runnable + other.runnable,
    )


def _order(pool: Pool) -> tuple[Any, ...]:
    return -pool.wanted, -pool.threads, pool.pid, pool.process, pool.thread, pool.runs, pool.made_in, pool.fed_in


def _function(facts: Facts, thread: Thread, firsts: dict[Place, str]) -> str:
    """The function that a thread runs from its start on: of the places where it waits for longest. ``firsts``: those of
    places, as far as they were asked for."""
    times: Counter[str] = Counter()
    for place, total in facts.waits_of(thread).items():
        if place not in firsts:
            firsts[place] = first_function(place.stack)
        if name := firsts[place]:
            times[name] += total.time + 1
    return max(times, key=lambda name: (times[name], name), default="")


def first_function(stack: Stack) -> str:
    """The outermost function that is not the C library's, nor Python's way to it, of a stack that begins with the start
    of a thread; "" if it does not, or if there is none. Names of a script's functions are without lines."""
    if not stack or not _is_start(stack[0].name, stack[0].kind, stack[0].file):
        return ""
    python = [frame for frame in stack if frame.kind == "python" and not _is_start(frame.name, frame.kind, frame.file)]
    if any(frame.kind == "python" for frame in stack):
        return label(python[0]) if python else ""
    return next((label(frame) for frame in stack if frame.kind != "kernel" and not is_plumbing(frame)), "")


def _is_start(name: str, kind: str, file: str) -> bool:
    if kind == "python":
        return file.endswith("/threading.py") and (name in _OF_THREADING or name in _PLAIN)
    return bare(name) in _STARTS


def pools_json(pools: Sequence[Pool]) -> list[dict[str, Any]]:
    """Plain data for ``json.dumps``."""
    return [
        {
            "pid": kernel_id(pool.pid),
            "process": json_text(pool.process),
            "thread": json_text(pool.thread),
            "runs": json_text(pool.runs),
            "made_in": [json_text(frame) for frame in pool.made_in],
            "fed_in": [json_text(frame) for frame in pool.fed_in],
            "threads": pool.threads,
            "ended": pool.ended,
            "tids": sorted(kernel_id(tid) for tid in pool.tids),
            "wall_ns": pool.wall,
            "on_cpu_ns": pool.on_cpu,
            "runnable_ns": pool.runnable,
        }
        for pool in pools
    ]
