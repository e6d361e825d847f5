"""Profile of a `Capture`: names, shares of time, and what was lost."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....converters.base.collection import no_collection
from ....converters.base.units import plural
from ....converters.model import Labels, Profile, Sample, Stack
from ...base.group_limits import refusals
from ...kernel.records import RUNNING
from ...symbols.lines import LineTool
from ..rows import Row
from ..timed import calls_by_process, parts_by_process
from ..wakers import Wakers, by_rows
from .capture import Capture
from .completing import complete
from .creations import Creations, distinct
from .gil import gil_of
from .locks import locks_of
from .measures.protocol import Recorded
from .names import Names
from .pythonic import PLAIN, Python, python_first
from .remarks import comments, completeness, losses, missed_switches
from .sliced import thread_slices
from .stacks import Stacks

if TYPE_CHECKING:
    from ....converters.collectives.told import Told
    from ....converters.model.collectives import Watched
    from ....converters.model.neighbours import Neighbour
    from ....converters.model.scheduling import Scheduling
    from ....converters.model.steps import Steps


@dataclass(frozen=True)
class Naming:
    """Naming of frames (source lines, from this tool) and of processes (the pid inside their container)."""

    lines: LineTool | None = None
    container_pids: bool = False
    python: Python = PLAIN
    kernel_addresses: bool = False
    """Whether frames of the kernel have absolute addresses."""


@no_collection()
def profile_of(capture: Capture, what: str, naming: Naming = Naming()) -> Profile:
    """The profile; ``what``, the measured quantity, begins its title: "Off-CPU time".

    Labels pid, process, tid, thread, state, open, pid-life, tid-life and waker, as the model lists them.
    """
    recorded = capture.recorded
    given = [*capture.rows, *(recorded.places if recorded else ())], capture.locks.rows() if capture.locks else []
    made = distinct(capture.creations)
    completed = complete([*given[0], *given[1], *made], python_first(capture.stacks), capture.ends)
    rows, places = completed[: len(capture.rows)], completed[len(capture.rows) : len(given[0])]
    of_locks = completed[len(given[0]) : len(given[0]) + len(given[1])]
    every_row = [*completed, *by_rows([*rows, *of_locks], capture.lives)]
    stacks = Stacks(capture, every_row, naming.lines, naming.python, kernel_addresses=naming.kernel_addresses)
    capture.stacks = {}  # They have names now, and the addresses of very many take as much memory.
    names = Names(capture, container_pids=naming.container_pids)
    wakers = Wakers(capture.lives, stacks, names, capture.ours)
    labels: dict[tuple[int, int, int, int, str, bool, Labels], Labels] = {}
    samples = []
    reached: Counter[int] = Counter()
    cut: Counter[str] = Counter()
    late = 0
    for row in rows:
        weight = row.values[0]
        reached[stacks.end_of(row)] += weight
        cut[stacks.cut_in(row)] += weight
        late += weight if stacks.is_late(row) else 0
        chain, waker = wakers.of(row.wakers)
        origin = row.origin
        who = origin.tgid, origin.tid, origin.life, origin.object, row.state, row.is_open, waker
        if who not in labels:
            labels[who] = names.labels(origin, row.state, row.is_open, waker)
        samples.append(Sample(stacks.of(row) + chain, row.values, labels[who]))
    scheduling = _scheduling(recorded, places, stacks, names) if recorded else None
    by_row = dict(zip(map(id, given[1]), of_locks, strict=True))
    locks, gil = locks_of(capture, by_row, stacks, names, wakers), gil_of(capture, by_row, stacks, names)
    creations = Creations(
        capture.creations, dict(zip(map(id, made), completed[len(completed) - len(made) :], strict=True)), stacks
    )
    slices = thread_slices(capture, rows, stacks, names)
    stacks.progress.clear()
    met = _collectives(capture, names, scheduling)
    lost = losses(capture, stacks)
    said = comments(capture, lost, stacks)
    if scheduling:
        lost |= scheduling.lost()
        if missed := missed_switches(capture.counters):
            lost["scheduler events that the kernel did not report"] = missed
    profile = Profile(
        list(capture.columns),
        samples,
        title=names.title(what),
        host=socket.gethostname(),
        start_ns=capture.wall_ns,
        duration_ns=capture.stopped - capture.began,
        threads=[names.times(record, creations.of(record.thread.first)) for record in capture.threads],
        processes=names.processes(capture.conditions),
        origins=names.origins(capture.conditions, capture.launched),
        lost=lost,
        comments=[
            *said,
            *refusals(capture.group_limits),
            *_left_out(met),
            *completeness(reached, cut, "the time" if capture.columns[0].unit == "nanoseconds" else "what was counted"),
            *(capture.tables.notes(late, reached.total()) if capture.tables else ()),
        ],
        scheduling=scheduling,
        calls=calls_by_process(capture.calls, names),
        shared=capture.shared,
        call_ioctls=parts_by_process(capture.call_ioctls, names),
        copies=parts_by_process(capture.copies, names),
        answers=capture.answers,
        locks=locks,
        gil=gil,
        file_locks=capture.file_locks,
        steps=_steps(scheduling),
        collectives=met.communicators if met else [],
        watched=_watched(capture),
        neighbours=_neighbours(capture, wakers),
        objects=capture.objects,
        pressure=capture.pressure,
        interrupts=capture.interrupts,
        group_limits=capture.group_limits,
        slices=slices,
    )
    return _with_core_threads(profile)


def _with_core_threads(profile: Profile) -> Profile:
    """Adds who ran on cores that interrupts take time from, as long as there are events."""
    if profile.scheduling is not None and profile.interrupts:
        from ....converters.facts.core_threads import interrupted_cores, recorded  # not needed by others

        profile.core_threads = recorded(profile, interrupted_cores(profile.interrupts))
    return profile


def _neighbours(capture: Capture, wakers: Wakers) -> list[Neighbour]:
    if not capture.neighbours:
        return []
    traced = {record.thread.key.tgid for record in capture.threads}
    ends = {end.pid: end.process for each in capture.objects for end in each.ends}
    return capture.neighbours.found(traced, capture.stopped - capture.began, wakers.processes(), ends)


def _steps(scheduling: Scheduling | None) -> list[Steps]:
    """Steps of the functions that the user named."""
    if scheduling is None or not any(each.kind == "step" for each in scheduling.call_names):
        return []
    from ....converters.summary.steps import steps_of  # it needs numpy

    return list(steps_of(scheduling))


def _collectives(capture: Capture, names: Names, scheduling: Scheduling | None) -> Told | None:
    """Communicators of the calls that were kept with their arguments."""
    if capture.collectives is None:
        return None
    from ....converters.collectives.told import Trace, told  # it needs numpy

    processes = {record.thread.key.tgid for record in capture.threads}
    ended = processes - {record.thread.key.tgid for record in capture.threads if not record.exited}
    length = capture.stopped - capture.began
    known = ((pid, condition.origin) for pid, condition in capture.conditions.items())
    origins = {pid: origin for pid, origin in known if origin}
    trace = Trace(length, {pid: names.process(pid) for pid in processes}, scheduling, ended, origins)
    return told(capture.collectives, trace)


def _watched(capture: Capture) -> list[Watched]:
    if capture.collectives is None:
        return []
    from ....converters.collectives.watched import watched  # it needs numpy

    return watched(capture.collectives)


def _left_out(met: Told | None) -> Iterator[str]:
    """Collectives that are not told."""
    if met and met.left_out:
        what = plural(met.left_out, "communicator")
        yield f"{what} of processes, of which only calls are known, not compared with others: too many"
    if met and met.alone:
        calls, of = plural(met.alone_calls, "collective"), plural(met.alone, "communicator")
        yield f"{calls} of {of} not joined with others: nothing tells who meets there, or they are not traced"
    if met and met.messages:
        yield f"{plural(met.messages, 'message')} not joined: the ranks of their communicators are not known"
    if met and (met.captured or met.launches):
        captured = f", into which {plural(met.captured, 'collective')} were captured" if met.captured else ""
        launched = f"CUDA graphs{captured}: launched {plural(met.launches, 'time')}"
        yield f"{launched}; what is in a graph makes no calls then, and its meetings are not told"


def _scheduling(recorded: Recorded, places: Sequence[Row], stacks: Stacks, names: Names) -> Scheduling:
    """Adds the names of its threads, of which an id can have had several, and the stacks of its ``places``."""
    found = recorded.scheduling
    numbers: dict[str, int] = {}
    for thread in found.threads:
        record = recorded.lives[thread["name"]]
        key = record.thread.key
        name = os.fsdecode(record.comm) or names.thread(key.tgid, record.thread.first)
        thread["name"] = numbers.setdefault(name, len(numbers))
        thread["process"] = numbers.setdefault(names.process(key.tgid), len(numbers))
    return replace(found, names=list(numbers), stacks=[_frames(row, stacks) for row in places])


def _frames(row: Row, stacks: Stacks) -> Stack:
    """Frames of a wait; or of a call or a sample, whose frames and what is missing of them are told by the measure's
    rows."""
    if row.origin.state != RUNNING:
        return stacks.of(row)
    user, kernel = stacks.parts_of(row)
    return (*user, *kernel) if kernel else user
