"""The critical path of a thread: who and what made up its time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.text import json_text
from ..base.units import duration, share
from ..facts import thresholds
from ..facts.file_locks import CALLS, FileHolder, file_holder
from ..facts.identity import kernel_ids
from ..facts.thread_names import name_pattern, thread_pattern
from ..facts.wait_kinds import CHILD, EVENTS, LOCK, PEER, THREAD
from ..facts.wait_sites import Sites
from ..facts.waits import wait_of
from ..model import Profile
from ..model.critical import NOT_TRACED, CriticalPath, segment_name, thread_name
from ..model.states import RUNNABLE, RUNNING
from ..model.waits_for import Node, WaitGraph
from ..phrases.file_locks import having

if TYPE_CHECKING:
    from ..model.scheduling import Scheduling

_FOR_OTHERS = (LOCK, THREAD, PEER, CHILD, EVENTS)


@dataclass(frozen=True, slots=True)
class Contribution:
    """Part of one thread in the path, in one place. ``time`` in ns."""

    thread: str
    """Name as in `critical_path.thread_name`; hostile."""
    tid: int
    state: str
    frames: tuple[str, ...]
    time: int
    segments: int
    kind: str = ""
    """Name of threads like this one; "" for the thread whose path it is, and for threads of which only the id is known:
    these are not put together with others."""


@dataclass(frozen=True, slots=True)
class Critical:
    """The path of ``thread``. Times in ns."""

    thread: str
    tid: int
    wall: int
    segments: int
    parts: tuple[Contribution, ...]
    """Most time first; they add up to ``wall``."""
    unfinished: Contribution | None = None
    """The thread's own last wait, for somebody else, that had not ended with the path; also in ``parts``."""
    holder: FileHolder | None = None
    """Holder of the lock on a file for which it waits there."""

    def to_json(self) -> dict[str, Any]:
        """Object for JSON with at most 100 of the parts."""
        return {
            "thread": json_text(self.thread),
            "tid": self.tid,
            "wall_ns": self.wall,
            "segments": self.segments,
            "parts": [
                {
                    "thread": json_text(part.thread),
                    "tid": part.tid,
                    "state": part.state,
                    "frames": [json_text(frame) for frame in part.frames],
                    "time_ns": part.time,
                    "share": round(part.time / self.wall, 6) if self.wall else None,
                    "segments": part.segments,
                }
                for part in self.parts[: thresholds.PATH_KEPT]
            ],
        }


def critical_of(profile: Profile, graph: WaitGraph | None = None) -> Critical | None:
    """The figures of a profile's path, if it has one. ``graph``: of who ended waits, by threads, which knows names of
    those that were not traced."""
    path, scheduling = profile.critical, profile.scheduling
    if path is None or scheduling is None:
        return None
    sites = Sites()
    sums: dict[tuple[str, int, str, tuple[str, ...]], list[int]] = {}
    rows: dict[tuple[str, int], int] = {}
    untraced = {each.pid: f"{each.process}-{each.pid}" for each in profile.neighbours}
    untraced |= {node.tid: _untraced_name(graph, node) for node in graph.names if node.tid} if graph else {}
    for segment in path.segments:
        frames: tuple[str, ...] = ()
        if segment.stack >= 0:
            site = sites.of(scheduling.stacks[segment.stack])
            frames = (*site.frames, *([site.kernel] if site.kernel else []))
        name = untraced.get(segment.tid) if segment.thread < 0 else None
        key = name or segment_name(scheduling, segment), segment.tid, segment.state, frames
        total = sums.setdefault(key, [0, 0])
        total[0] += segment.time
        total[1] += 1
        rows[key[:2]] = segment.thread
    kinds = {who: "" if row in (path.thread, -1) else _kind(scheduling, row) for who, row in rows.items()}
    parts = [Contribution(*key, time, segments, kinds[key[:2]]) for key, (time, segments) in sums.items()]
    parts.sort(key=_order)
    tid = int(scheduling.threads["tid"][path.thread])
    name, last = thread_name(scheduling, path.thread), _unfinished(scheduling, path, sites)
    holder = _holder(profile, scheduling, path) if last else None
    return Critical(name, tid, path.wall, len(path.segments), tuple(parts), last, holder)


def _untraced_name(graph: WaitGraph, node: Node) -> str:
    """Name like `model.critical.thread_name`. A thread that was not traced may only have the name of its program."""
    process, thread = graph.names[node]
    own = "" if thread in ("", process, process.split(" ")[0]) else f" ({thread})"
    return f"{process}{own}-{node.tid}"


def untraced_on(critical: Critical, graph: WaitGraph) -> tuple[int, ...]:
    """The process that was not traced, if most of the path goes to one of its threads."""
    times: Counter[int] = Counter()
    for part in critical.parts:
        if part.state == NOT_TRACED:
            times[part.tid] += part.time
    tid, most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=(0, 0))
    pids = {node.pid for node in graph.names if node.tid == tid and node.pid}
    return tuple(pids) if most >= thresholds.DOES_MOSTLY * critical.wall > 0 else ()


def _kind(scheduling: Scheduling, row: int) -> str:
    """``cc1plus`` for main threads, ``train (loader-*)`` for others."""
    thread = scheduling.threads[row]
    process = name_pattern(scheduling.names[thread["process"]])
    if thread["tid"] == thread["tgid"]:
        return process
    return f"{process} ({thread_pattern(scheduling.names[thread['name']], main=False)})"


def with_alike(critical: Critical) -> tuple[Contribution, ...]:
    """The parts; what several threads of one kind did in one place is one part, of ``12 × cc1plus`` with tid 0."""
    members: dict[str, set[int]] = {}
    for part in critical.parts:
        members.setdefault(part.kind, set()).add(part.tid)
    sums: dict[tuple[str, int, str, tuple[str, ...], str], list[int]] = {}
    for part in critical.parts:
        alike = len(members[part.kind]) if part.kind else 1
        who = (f"{alike} × {part.kind}", 0) if alike > 1 else (part.thread, part.tid)
        total = sums.setdefault((*who, part.state, part.frames, part.kind), [0, 0])
        total[0] += part.time
        total[1] += part.segments
    made = [
        Contribution(thread, tid, state, frames, time, segments, kind)
        for (thread, tid, state, frames, kind), (time, segments) in sums.items()
    ]
    return tuple(sorted(made, key=_order))


def _order(part: Contribution) -> tuple[int, str, int, str, tuple[str, ...]]:
    return -part.time, part.thread, part.tid, part.state, part.frames


def _unfinished(scheduling: Scheduling, path: CriticalPath, sites: Sites) -> Contribution | None:
    last = path.segments[-1] if path.segments else None
    if last is None or last.thread != path.thread or last.stack < 0:
        return None
    if wait_of(scheduling.stacks[last.stack], last.state).kind not in _FOR_OTHERS:
        return None
    site = sites.of(scheduling.stacks[last.stack])
    frames = *site.frames, *([site.kernel] if site.kernel else [])
    return Contribution(segment_name(scheduling, last), last.tid, last.state, frames, last.time, 1)


def _holder(profile: Profile, scheduling: Scheduling, path: CriticalPath) -> FileHolder | None:
    """Holder of the lock on a file for which the thread waits at last."""
    last = path.segments[-1]
    if wait_of(scheduling.stacks[last.stack], last.state).call not in CALLS:
        return None
    waiting = int(scheduling.threads["tgid"][path.thread])
    return file_holder(profile.file_locks, (waiting,), kernel_ids(times.pid for times in profile.threads), 1)


def critical_sentence(critical: Critical) -> str:
    """``61.2 % of the 1.82 s of train-7 goes to train (loader)-9: 902 ms waiting for a core, 186 ms running.``

    Threads of one kind count together. "" for an empty path. Names are unescaped (hostile)."""
    threads: Counter[tuple[str, int]] = Counter()
    last = critical.unfinished
    parts = with_alike(critical)
    for part in parts:
        threads[part.thread, part.tid] += part.time
    if last:
        threads[last.thread, last.tid] -= last.time
    if not critical.wall or not threads:
        return ""
    (thread, tid), most = max(threads.items(), key=lambda entry: (entry[1], entry[0]))
    if last and last.time >= most:
        return _unfinished_sentence(critical, last)
    does: Counter[str] = Counter()
    for part in parts:
        if (part.thread, part.tid) == (thread, tid):
            does[_does(part)] += part.time
    if last and (thread, tid) == (last.thread, last.tid):
        does[_does(last)] -= last.time
    named = [
        (what, time) for what, time in does.most_common(thresholds.PATH_NAMED) if time >= thresholds.PATH_PART * most
    ]
    told = [f"{duration(time)} {what}" for what, time in named]
    whose = "is its own" if tid == critical.tid else f"goes to {thread}"
    much = f"{share(most, critical.wall)} of the {duration(critical.wall)} of {critical.thread}"
    return f"{much} {whose}: {', '.join(told)}."


def _unfinished_sentence(critical: Critical, last: Contribution) -> str:
    much = f"{share(last.time, critical.wall)} of the {duration(critical.wall)} of {critical.thread}"
    if critical.holder:
        return f"{much} is its last wait, in {' → '.join(last.frames)}, which had not ended: {having(critical.holder)}."
    return (
        f"{much} is its last wait, in {' → '.join(last.frames)}, which had not ended: nobody knows yet who ends it, so "
        "that the path does not go on; trace for longer (-d), or take the path of another thread."
    )


def _does(part: Contribution) -> str:
    if part.state in (RUNNING, NOT_TRACED):
        return part.state
    if part.state.startswith(RUNNABLE):
        return "waiting for a core"
    return f"blocked in {' → '.join(part.frames)}" if part.frames else "blocked"
