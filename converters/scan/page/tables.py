"""The tables of a page as plain data: who waits for whom, locks, calls, calls that are shared, cores, threads, losses.

Texts are printable. Times are in ns, null is what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.text import printable
from ...facts.identity import is_sum, kernel_id, kernel_ids, shown_id
from ...facts.locks import is_convoy, ranked
from ...model import Profile, ThreadTimes
from ...model.calls import CallTimes
from ...model.locks import LockThread, LockTimes
from ...model.losses import divided, time_of
from ...model.waits_for import PROCESS, THREAD
from ...phrases.locks import title
from ...summary.calls import Calls
from ...summary.figures import Summary
from ...summary.sharing import Shared
from ...summary.waits_for import Blocking, Named

NODES = 63
"""Rows and columns of the matrix; the others are put together in one more."""
ROWS = 500
"""Rows of the other tables, except those of threads."""
THREADS = 20_000
MEMBERS = 8
"""Threads that are named for a lock."""


def matrix(blocking: Blocking | None, names: Mapping[int, str]) -> dict[str, Any] | None:
    """Waiting by who waited (rows) and who ended it (columns); None if it was not recorded. ``names``: those of
    processes, by pid."""
    if blocking is None or not blocking.ends:
        return None
    nodes = blocking.nodes
    place = {i: min(i, NODES) for i in range(len(nodes))}
    cells: dict[tuple[int, int], int] = {}
    for (victim, end), time in blocking.ends.items():
        key = place[victim], place[end]
        cells[key] = cells.get(key, 0) + time
    told = [_node(node, blocking.by, names) for node in nodes[:NODES]]
    rest = len(nodes) - NODES
    return {
        "by": blocking.by,
        "names": [*told, *([f"{rest:,} others"] if rest > 0 else [])],
        "cells": [[victim, end, time] for (victim, end), time in sorted(cells.items())],
        "total": blocking.total,
        "idle": blocking.idle,
    }


def _node(node: Named, by: str, names: Mapping[int, str]) -> str:
    if node.kind not in (THREAD, PROCESS):
        return printable(node.process)
    process = names.get(node.pid, node.process)
    name = process if by == PROCESS or not node.thread else f"{process} / {node.thread}"
    number = node.pid if by == PROCESS else node.tid
    return printable(f"{name} ({number})" if number else name)


def locks(found: Sequence[LockTimes]) -> list[dict[str, Any]]:
    """A row for each lock, contended ones first."""
    return [
        {
            "name": printable(title(lock)),
            "contention": lock.is_contention,
            "time": lock.time,
            "waits": lock.waits,
            "max": lock.max,
            "mean": lock.time // lock.waits if lock.waits else 0,
            "threads": len(lock.waiters) + lock.more_waiters,
            "waiters": _members(lock.waiters),
            "holders": _members(lock.holders),
            "place": " → ".join(map(printable, lock.places[0].frames)) if lock.places else "",
            "queue": lock.queue if is_convoy(lock) else 0,
        }
        for lock in ranked(found)[:ROWS]
    ]


def _members(threads: Sequence[LockThread]) -> list[list[Any]]:
    return [[printable(f"{each.process} / {each.thread} ({each.tid})"), each.time] for each in threads[:MEMBERS]]


def calls(found: Sequence[Calls]) -> list[dict[str, Any]]:
    """A row for each call on each device or of each library, in the words of profilers of frameworks."""
    return [
        {
            "name": printable(each.total.name),
            "where": printable(each.total.where),
            "locks": printable(each.total.locks),
            "processes": each.number,
            "blocked_in": printable(each.blocked_in),
            **_figures(each.total),
            "each": [[printable(f"{call.process} ({_pid(call.pid)})"), _figures(call)] for call in each.each[:MEMBERS]],
        }
        for each in found[:ROWS]
    ]


def _pid(pid: int) -> str:
    return "ended" if is_sum(pid) else shown_id(pid)


def _figures(call: CallTimes) -> dict[str, Any]:
    return {
        "calls": call.count,
        "total": call.whole,
        "own": call.whole_own,
        "cpu": call.on_cpu,
        "blocked": call.blocked,
        "runnable": call.runnable,
        "min": call.min,
        "max": call.max,
        "ave": call.mean,
        "errors": sum(call.errors.values()),
        "open": call.open_count,
    }


def shared(found: Sequence[Shared]) -> list[dict[str, Any]]:
    """A row for each call in which several processes were at the same time."""
    return [
        {
            "name": printable(each.call.name),
            "device": printable(each.call.device),
            "factor": each.factor,
            "alone": each.known_alone,
            "calls": each.call.count,
            "shared": each.call.shared / each.call.busy if each.call.busy else None,
            "inside": each.call.mean_inside,
            "turns": sorted(([printable(each.who(pid)), ns] for pid, ns in each.call.turns.items()), key=_second)[
                :MEMBERS
            ],
        }
        for each in found[:ROWS]
    ]


def _second(pair: list[Any]) -> int:
    return -int(pair[1])


def cores(summary: Summary) -> list[dict[str, Any]]:
    """A row for each process, or several: what they use, want and may use."""
    return [
        {
            "name": printable(each.process),
            "pids": kernel_ids(each.pids)[:MEMBERS],
            "processes": each.processes,
            "threads": each.threads,
            "created": each.created,
            "used": each.used,
            "wanted": each.wanted,
            "allowed": each.allowed,
            "runnable": each.runnable,
            "switches": each.switches,
            "quotas": [
                printable(
                    f"{limit.cores:.2f} cores ({limit.cgroup}), stopped in {limit.throttled_periods} of "
                    f"{limit.periods} periods"
                )
                for limit in each.limits
            ],
        }
        for each in sorted(summary.contention, key=lambda each: (-each.on_cpu - each.runnable, each.pids))[:ROWS]
    ]


def threads(profile: Profile, names: Mapping[int, str]) -> dict[str, Any]:
    """Columns of the threads, those that ran most first."""
    order = sorted(profile.threads, key=lambda each: (-each.on_cpu - each.runnable, -each.switches, each.tid))
    return {
        "number": len(order),
        "rows": [_thread(each, names) for each in order[:THREADS]],
    }


def _thread(each: ThreadTimes, names: Mapping[int, str]) -> list[Any]:
    pid = kernel_id(each.pid)
    process = printable(f"{names.get(pid, each.process)} ({pid})" if pid else each.process)
    blocked = sum(each.blocked.values())
    return [
        printable(each.thread),
        process,
        kernel_id(each.tid),
        each.wall,
        each.on_cpu,
        each.runnable,
        blocked,
        each.switches,
    ]


def losses(lost: dict[str, int]) -> list[list[Any]]:
    """Kind, number, ns, and whether time is missing: for what was lost, time first."""
    missing, incomplete = divided(lost)
    gone = [[printable(kind), number, lost.get(time_of(kind)), True] for kind, number in missing.items()]
    return gone + [[printable(kind), number, None, False] for kind, number in incomplete.items()]
