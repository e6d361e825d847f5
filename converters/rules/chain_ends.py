"""The end of a chain of waits: who has to end the wait of a thread, what that one does, and for whom it waits in turn.

Known by who has the lock, by the other end of a pipe or socket, by the only process that a thread has started or the
only thread that can end the wait. Nothing is said where several may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ..facts import file_locks, thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..facts.wait_kinds import CHILD, CORE, LOCK, PEER, THREAD
from ..facts.wait_sums import Place, Thread
from ..facts.who_can_end import nobody, others_of
from ..model.locks import WAKER
from .verdict import kind_of_wait

HAS_LOCK, OTHER_END, ENDS, ONLY = "has-lock", "other-end", "ends", "only"
"""Evidence for a link: it has the lock; it has the other end; its end is waited for; no other thread can end it."""
RUNNING, RUNNABLE = "running", "runnable"


class Link(NamedTuple):
    """A process or thread that has to end a wait, and what it does most. Names are unescaped (hostile)."""

    why: str
    """Evidence, as above."""
    process: str
    pid: int
    """The kernel's id."""
    thread: str = ""
    """Name of the thread, and its id, of the process that waits itself; "" for another process."""
    tid: int = 0
    kind: str = ""
    """`RUNNING`, `RUNNABLE`, or the kind of a verdict on its waits; "" if it was not traced."""
    share: float = 0.0
    """Share of its time."""
    frames: tuple[str, ...] = ()
    cores: float | None = None
    """Cores that it uses, if it was not traced; None: not known."""


class Chain(NamedTuple):
    """Links in their order."""

    links: tuple[Link, ...] = ()
    nobody: str = ""
    """`who_can_end.ALONE` or `NO_PYTHON`: nobody can end the wait of the last one, or of the thread itself."""
    is_circle: bool = False
    """Whether the last one waits for one before it."""


class Doing(NamedTuple):
    """The longest state of a thread."""

    kind: str
    share: float
    place: Place | None
    """Place with most of it; None if it runs."""
    frames: tuple[str, ...]


class _Next(NamedTuple):
    link: Link
    thread: Thread | None
    """The thread that stands for it; None: it was not traced."""


def chain_of(facts: Facts, thread: Thread, place: Place | None = None) -> Chain:
    """The chain from a wait of a thread on, the longest one if none is given; empty if nothing is known."""
    links: list[Link] = []
    seen = {thread}
    at = place or doing(facts, thread).place
    while at and len(links) < thresholds.LINKS_TOLD:
        found = _next(facts, thread, at)
        if found is None:
            return Chain(tuple(links), nobody(facts, thread, at))
        links.append(found.link)
        if found.thread is None:
            break
        if found.thread in seen:
            return Chain(tuple(links), is_circle=True)
        thread = found.thread
        seen.add(thread)
        at = doing(facts, thread).place
    return Chain(tuple(links))


def doing(facts: Facts, thread: Thread) -> Doing:
    """The longest state of a thread."""
    times = facts.threads[thread]
    kinds = Counter({RUNNING: times.on_cpu, RUNNABLE: times.runnable})
    places = {place: total.time for place, total in facts.waits_of(thread).items() if place.kind != CORE}
    for each, time in places.items():
        kinds[kind_of_wait(each)] += time
    kind = max(kinds, key=lambda name: (kinds[name], name))
    of_kind = [place for place in places if kind_of_wait(place) == kind]
    place = max(of_kind, key=lambda place: (places[place], place), default=None)
    frames = place.site.frames if place else _runs_in(facts, thread) if kind == RUNNING else ()
    return Doing(kind, min(kinds[kind] / times.wall, 1.0) if times.wall else 0.0, place, frames)


def _runs_in(facts: Facts, thread: Thread) -> tuple[str, ...]:
    runs = facts.runs.get(thread, {})
    most = max(runs, key=lambda run: (runs[run].samples, run), default=None)
    return most.site.frames if most else ()


def _next(facts: Facts, thread: Thread, place: Place) -> _Next | None:
    find = _BY_KIND.get(place.kind)
    return find(facts, thread, place) if find else None


def _of_lock(facts: Facts, thread: Thread, place: Place) -> _Next | None:
    if file_locks.is_for_file(place.wait):
        return _of_file(facts, thread, place)
    if facts.recorded:
        for lock in facts.recorded.profile.locks:
            if (kernel_id(thread[0]), kernel_id(thread[1])) in {(each.pid, each.tid) for each in lock.waiters}:
                holders = [each for each in lock.holders if each.source != WAKER]
                found = _thread_of(facts, holders[0].pid, holders[0].tid) if len(holders) == 1 else None
                return _to(facts, HAS_LOCK, thread, found) if found else None
    return _of_thread(facts, thread, place)


def _of_file(facts: Facts, thread: Thread, place: Place) -> _Next | None:
    traced = {kernel_id(pid) for pid, _ in facts.threads}
    waits = facts.waits_of(thread)[place].count
    holder = file_locks.file_holder(facts.file_locks, {kernel_id(thread[0])}, traced, waits)
    return _process(facts, HAS_LOCK, holder.process, holder.pid) if holder and holder.process else None


def _of_peer(facts: Facts, thread: Thread, place: Place) -> _Next | None:
    on = facts.on(facts.waits_of(thread)[place], PEER, (thread[0],))
    ends = [end for end in on.ends if end.pid != kernel_id(thread[0])] if on and not on.what.more_ends else []
    return _process(facts, OTHER_END, ends[0].process, ends[0].pid) if len(ends) == 1 else None


def _of_child(facts: Facts, thread: Thread, _: Place) -> _Next | None:
    """The only child of a process: of several, it may wait for any."""
    parent = kernel_id(thread[0])
    children = [each for each in facts.origins.values() if each.ancestors and each.ancestors[0].pid == parent]
    alive = [each for each in children if not facts.threads[each.pid, each.pid].exited] if children else []
    return _process(facts, ENDS, alive[0].process, kernel_id(alive[0].pid)) if len(alive) == 1 else None


def _of_thread(facts: Facts, thread: Thread, place: Place) -> _Next | None:
    """The only other thread that may end it; of several in Python, the only one that waits for another process."""
    others = others_of(facts, thread, place)
    why = ENDS if place.wait.join else ONLY
    if len(others) > 1:
        others = [each for each in others if _waits_for_process(facts, each)]
        why = OTHER_END
    return _to(facts, why, thread, others[0]) if len(others) == 1 else None


def _waits_for_process(facts: Facts, thread: Thread) -> bool:
    place = doing(facts, thread).place
    return place is not None and place.kind == PEER and _of_peer(facts, thread, place) is not None


def _thread_of(facts: Facts, pid: int, tid: int) -> Thread | None:
    found = (each for each in facts.threads if (kernel_id(each[0]), kernel_id(each[1])) == (pid, tid))
    return next(found, None)


def _process(facts: Facts, why: str, name: str, pid: int) -> _Next:
    """Another process, for which its main thread stands."""
    thread = _thread_of(facts, pid, pid)
    if thread:
        does = doing(facts, thread)
        return _Next(Link(why, name, pid, "", 0, does.kind, does.share, does.frames), thread)
    used = (each.on_cpu / facts.duration for each in facts.neighbours if each.pid == pid and facts.duration)
    return _Next(Link(why, name, pid, cores=next(used, None)), None)


def _to(facts: Facts, why: str, waiter: Thread, thread: Thread) -> _Next:
    """Another thread, of the same process or not."""
    does, times = doing(facts, thread), facts.threads[thread]
    name = times.thread if thread[0] == waiter[0] else ""
    link = Link(
        why,
        times.process,
        kernel_id(thread[0]),
        name,
        kernel_id(thread[1]) if name else 0,
        does.kind,
        does.share,
        does.frames,
    )
    return _Next(link, thread)


_BY_KIND: dict[str, Callable[[Facts, Thread, Place], _Next | None]] = {
    LOCK: _of_lock,
    PEER: _of_peer,
    CHILD: _of_child,
    THREAD: _of_thread,
}
