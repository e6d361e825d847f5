"""A whole trace with ``perf record``, from a command's options to its profile."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....converters.base.errors import StallscopeError
from ...base import procfs
from ...base.interrupts import Interrupts
from ...base.launch import Launch, ending
from ...base.progress import Progress
from ...measures.offcpu import OffCpu
from ...measures.oncpu import CLOCK, OnCpu
from ...measures.protocol import Measure
from ..ends import Ends
from ..protocol import Engine, EngineUnavailable, Outcome, Request
from ..taken import Place, Taken, all_conditions, refuse
from .options import How, Options, targets_of
from .reading import Reading
from .recording import Rights, Tool, find_perf, rights, start
from .threads import Filter, Threads

_PYTHON = "_PyEval_EvalFrame"
"""How the names of the functions of CPython's interpreter loop begin."""


@dataclass(frozen=True)
class Perf(Engine):
    """``perf record`` of the threads of the scope, and of what they fork."""

    how: How = field(default_factory=How)
    name: str = "perf"

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        names = [measure.name for measure in measures if not isinstance(measure, (OffCpu, OnCpu))]
        return {name: f"the engine perf takes only waits and samples, no {name}" for name in names}

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        try:
            _ask(measures)
        except StallscopeError as error:
            return error
        return None

    def trace(self, request: Request) -> Outcome:
        refuse(self.name, request)
        perf, may = _ask(request.measures)
        with Interrupts() as interrupts:
            launch = Launch(list(request.command), quiet=request.quiet) if request.command else None
            try:
                options = Options(self.how, request, may, targets_of(request.scope, launch))
                taken = _run(options, perf, launch, interrupts)
                profile = taken.profile(request.measures, request.what)
                status = None if interrupts.requested or not launch else launch.poll()
                if status:
                    profile.comments.insert(0, ending(status))
                return Outcome(profile, (f"perf: {perf.path}, kernel.perf_event_paranoid {may.level}",), status)
            finally:
                if launch:
                    launch.stop()


def _ask(measures: Sequence[Measure]) -> tuple[Tool, Rights]:
    """EngineUnavailable where there is no perf, or this user may not take these measures with it.

    StallscopeError for an event that this machine does not count: perf would count another one.
    """
    perf, may = find_perf(), rights()
    if not may.kernel and any(isinstance(measure, OffCpu) for measure in measures):
        raise EngineUnavailable(
            f"perf shows waits only to root here: kernel.perf_event_paranoid is {may.level}",
            "sysctl kernel.perf_event_paranoid=1, run it as root, or use trace-wall --engine eu-stack",
        )
    for measure in measures:
        if isinstance(measure, OnCpu):
            measure.check()
    return perf, may


def _run(options: Options, perf: Tool, launch: Launch | None, interrupts: Interrupts) -> Taken:
    request = options.request
    recording = start(perf, options.words(), options.fields())
    ends = Ends(request.scope, launch)
    try:
        before = [(pid, tid, procfs.state(tid), procfs.comm(pid, tid)) for pid, tid in options.targets.threads()]
        began, wall = recording.enable(), time.time_ns()
        threads = Threads(began, launch.pid if launch else 0)
        if options.waits:
            threads.wanted(Filter(options.waits.shortest, options.waits.longest, options.waits.states))
        for pid, tid, letter, name in before:
            if letter:
                threads.known(pid, tid, letter)
                threads.names[tid] = name
        if launch and not interrupts.requested:
            launch.go()
        with Progress(request.duration) as progress:
            reading = Reading(recording, threads, progress, options.targets.only)
            reading.conditions.look_soon(threads.pids())
            reading.follow(ends, interrupts, request.duration)
            ended = threads.ended = recording.stop(is_over=reading.is_over)
            found = reading.conditions.finish(threads.pids())
            reading.drain()
        if error := recording.failure():
            raise error
        if cut := recording.cut():
            ended = _cut(threads, cut, ended)
        taken = _taken(options, reading, wall, ended, cut)
        return replace(taken, conditions=all_conditions(reading.conditions, found, taken.accounts))
    finally:
        ends.close()
        recording.close()


def _cut(threads: Threads, how: str, ended: int) -> int:
    """When a trace ends of which perf record did not put out the rest: with the last event."""
    if not threads.last:
        raise StallscopeError(f"{how} before it had reported anything", "trace again")
    threads.lost["milliseconds at the end"] = max((ended - threads.last) // 1_000_000, 1)
    return threads.last


def _lossy(lost: int, taken: int) -> str:
    """What losses mean, and what to do."""
    help_ = "trace fewer processes, a lower -F, or raise --buffer (as root)"
    if not lost:
        return f"perf lost events: {help_}"
    share = 100 * lost / (lost + taken)
    return f"perf lost {share:.1f} % of the events: a thread that ran in between is shown as waiting; {help_}"


def _taken(options: Options, reading: Reading, wall: int, ended: int, cut: str) -> Taken:
    threads = reading.threads
    accounts = threads.finish(ended)
    rows: dict[str, Mapping[Place, Sequence[int]]] = {}
    if options.waits:
        rows[options.waits.name] = threads.waits()
    if samples := options.samples:
        period = None if options.may.kernel else 1_000_000_000 // samples.frequency
        rows[samples.name] = threads.running(period) if samples.event == CLOCK else threads.counted()
    on_cpu = sum(account.on_cpu for account in accounts)
    remarks = [*options.remarks(on_cpu), *options.request.scope.remarks({account.pid for account in accounts})]
    if cut:
        remarks.insert(0, f"{cut}: what came after {(ended - threads.began) / 1e9:.1f} s is not known")
    if any(frame.name.startswith(_PYTHON) for each in rows.values() for place in each for frame in place.stack):
        remarks.append("there are Python functions, which the engine perf does not show")
    lost = {**threads.lost, "stacks": threads.lost["stacks"] + reading.records.left_out}
    if lost["events"] or threads.lost["stacks"]:
        remarks.append(_lossy(lost["events"], threads.taken))
    processes = {pid: threads.names.get(pid, "") for pid in {account.pid for account in accounts}}
    return Taken(wall, ended - threads.began, rows, accounts, threads.names, processes, lost, remarks)
