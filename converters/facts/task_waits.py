"""Waits in the middle of a task, for what other threads give back: a connection of an exhausted pool, a free slot.

A worker without a task waits in a queue, too, so that the wait alone does not tell one from the other. Who ends it
does: what is given back, is given back by a thread that is in the same task. A task comes from somebody else, or from
inside another task, of which the worker's own stack has nothing: it waits in its loop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ..model import Frame, Labels, Profile, Stack
from ..model.waits_for import COLUMN
from ..model.wakers import has_waker, links, own_part
from . import thresholds
from .identity import kernel_id
from .ownership import is_own
from .wait_functions import THREAD_STARTS
from .wait_kinds import THREAD
from .wait_sums import Place, Thread
from .waits import Waits
from .wakers import NOBODY, Wakers, waker_pid

_Group = tuple[int, frozenset[Place]]
"""Threads of one process (pid) that wait in the same places."""


def in_tasks(profile: Profile, idle: Mapping[Thread, frozenset[Place]]) -> frozenset[Thread]:
    """Threads among ``idle``, which seem to wait for work in these places, that are in the middle of a task: most of
    their waits that are over, and of those of other threads in the same places, ended with a thread of their process
    that was in the same task. ``profile``: one that has wakers, with own ids."""
    alike: dict[_Group, list[Thread]] = defaultdict(list)
    for (pid, tid), places in idle.items():
        if pid != tid and all(place.kind == THREAD for place in places):
            alike[pid, places].append((pid, tid))
    group_of = {thread: group for group, threads in alike.items() for thread in threads}
    if not group_of:
        return frozenset()
    ended, given_back = _ends(profile, group_of)
    found = (group for group in alike if given_back[group] >= thresholds.MOSTLY * ended[group] > 0)
    return frozenset(thread for group in found for thread in alike[group])


def _ends(profile: Profile, group_of: Mapping[Thread, _Group]) -> tuple[Counter[_Group], Counter[_Group]]:
    """Blocked time of the waits for other threads that are over, and the part that others in the same task ended."""
    column, waits, wakers = profile.index(COLUMN), Waits(), Wakers()
    groups: dict[int, _Group | None] = {}
    ended: Counter[_Group] = Counter()
    given_back: Counter[_Group] = Counter()
    for sample in profile.samples:
        key = id(sample.labels)
        if key not in groups:
            groups[key] = group_of.get(_thread(sample.labels))
        group, time = groups[key], sample.values[column]
        if group is None or not time or not has_waker(sample.stack) or str(sample.label("waker") or "") in NOBODY:
            continue
        if waits.of(wakers.own(sample.stack), str(sample.label("state"))).kind != THREAD:
            continue
        ended[group] += time
        if waker_pid(sample) == kernel_id(group[0]) and _is_same_task(sample.stack):
            given_back[group] += time
    return ended, given_back


def _thread(labels: Labels) -> Thread:
    found = dict(labels)
    pid, tid = (number if isinstance(number := found.get(key), int) else 0 for key in ("pid", "tid"))
    return pid, tid


def _is_same_task(stack: Stack) -> bool:
    """Whether the thread that waited, and the one that ended the wait, were in the same call of Python functions which
    the program itself has, and that is not the outermost one: in that one a worker waits for its tasks."""
    own = [frame for frame in own_part(stack) if frame.kind == "python"]
    waker = [frame for frame in reversed(_first_waker(stack)) if frame.file and frame.module is None]
    same = [frame for frame in _same(own, waker) if not THREAD_STARTS.fullmatch(f"{frame.file}:{frame.name}")]
    return any(map(is_own, same[1:]))


def _first_waker(stack: Stack) -> Stack:
    """Frames, innermost first, of the one that ended the wait; () for an interrupt."""
    found = links(stack)
    return found[0][:-1] if found else ()


def _same(own: Sequence[Frame], waker: Sequence[Frame]) -> list[Frame]:
    """Frames, outermost first, up to the first one in which the two stacks differ; a function's lines may."""
    found = []
    for mine, other in zip(own, waker, strict=False):
        if (mine.file, mine.name) != (other.file, other.name):
            break
        found.append(mine)
    return found
