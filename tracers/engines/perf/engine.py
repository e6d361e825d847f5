"""A whole trace with ``perf record``, from a command's options to its profile."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....converters.base.collection import no_collection
from ....converters.base.errors import StallscopeError
from ....converters.base.units import plural
from ....converters.model.remarks import Comment, EventsLost
from ...base import capabilities, procfs
from ...base.interrupts import Interrupts
from ...base.launch import Launch, ending
from ...base.progress import Progress
from ...kernel import sampled_events
from ...measures.offcpu import OffCpu
from ...measures.oncpu import OnCpu
from ...measures.protocol import Measure, find
from ..asleep import Asleep
from ..ends import Ends
from ..limits import STACK
from ..named_rows import NamedRows, Place, all_conditions, refuse, without_python
from ..protocol import Engine, EngineUnavailable, Outcome, Request
from . import whole_stacks
from .options import How, Options, targets_of
from .reading import Reading
from .recording import LOWER, Rights, Tool, find_perf, rights, start
from .threads import Filter, Threads

_MUCH = 0.1
"""Share of lost events that is told before all else."""
_PYTHON = "_PyEval_EvalFrame"
"""Begin of the names of the functions of CPython's interpreter loop."""


@dataclass(frozen=True)
class Perf(Engine):
    """``perf record`` of the threads of the scope, and of what they fork."""

    how: How = field(default_factory=How)
    name: str = "perf"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Perf:
        """Makes the engine from the values of a command's options."""
        mode, _, stack = (given["call_graph"] or "dwarf").partition(",")
        size = int(given["buffer_mb"]) << 20
        return cls(How(not given["kernel_only"], not given["user_only"], mode == "dwarf", size, int(stack or STACK)))

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        names = [measure.name for measure in measures if type(measure) not in (OffCpu, OnCpu)]
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
    if not may.kernel and find(measures, OffCpu):
        raise EngineUnavailable(
            f"perf shows waits only to root here: kernel.perf_event_paranoid is {may.level}",
            f"{LOWER}, run it as root, or use trace-wall --engine eu-stack",
            needs=LOWER,
        )
    if samples := find(measures, OnCpu):
        sampled_events.check(samples.event, samples.frequency)
    return perf, may


def _run(options: Options, perf: Tool, launch: Launch | None, interrupts: Interrupts) -> NamedRows:
    request = options.request
    recording = start(perf, options.words(), options.fields(), interrupts)
    if request.gives_up:
        capabilities.give_up_all_but(capabilities.AFTERWARDS)
    ends = Ends(request.scope, launch)
    asleep = Asleep(options.how.user_stacks, options.how.kernel_stacks)
    try:
        before = [(pid, tid, procfs.state(tid), procfs.comm(pid, tid)) for pid, tid in options.targets.threads()]
        began, wall = recording.enable(interrupts), time.time_ns()
        threads = Threads(began, launch.pid if launch else 0, asleep)
        if options.waits:
            threads.wanted(Filter(options.waits.shortest, options.waits.longest, options.waits.states))
        for pid, tid, letter, name in before:
            if letter:
                threads.known(pid, tid, letter)
                if letter != "R" and options.waits:
                    asleep.look(pid, tid)
                threads.names[tid] = name
        with Progress(request.duration) as progress:
            reading = Reading(recording, threads, progress, options.targets.only)
            reading.look()
            if launch and not interrupts.requested:
                launch.go()
            reading.conditions.look_soon(threads.pids())
            reading.follow(ends, interrupts, request.duration)
            ended = threads.ended = recording.stop(is_over=reading.is_over)
            reading.look(ended)
            found = reading.conditions.finish(threads.pids())
            given_up = reading.drain(interrupts)
        if cut := recording.ended_early(given_up):
            ended = _cut(threads, cut, ended)
        taken = _taken(options, reading, wall, ended, cut)
        return replace(taken, conditions=all_conditions(reading.conditions, found, taken.accounts))
    finally:
        ends.close()
        recording.close()
        asleep.close()


def _cut(threads: Threads, how: str, ended: int) -> int:
    """Time when a trace ends of which perf record did not put out the rest: with the last event."""
    if not threads.last:
        raise StallscopeError(f"{how} before it had reported anything", "trace again")
    threads.lost["milliseconds at the end"] = max((ended - threads.last) // 1_000_000, 1)
    return threads.last


def _lossy(lost: int, taken: int, options: Options) -> EventsLost:
    is_much = lost > 0 and lost >= _MUCH * (lost + taken)
    return EventsLost(lost, taken, options.samples is not None, is_much)


def _of_delays(options: Options, threads: Threads) -> list[str]:
    """Remarks on how well it is known what threads waited for a core after waits."""
    if not options.waits:
        return []
    if unknown := threads.without_delays():
        whose = f"of {plural(unknown, 'thread')}"
        return [f"waits {whose} include what came after they were woken, until they got a core: it could not be read"]
    return ["how long threads waited for a core after they were woken is exact for each, and divided among its waits"]


def _of_stacks(options: Options, rows: Mapping[str, Mapping[Place, Sequence[int]]]) -> list[str]:
    """Remarks on how complete stacks are."""
    if options.waits and options.samples and not options.samples.by_clock:
        rows = {options.waits.name: rows[options.waits.name]}  # events are no time
    of = "the time" if options.waits or not options.samples or options.samples.by_clock else "the events"
    return whole_stacks.remarks(rows.values(), options.how, of)


def _of_python(has_names: bool) -> str:
    """The code that python3 -X perf makes for each function has no unwind tables: stacks end there."""
    if has_names:
        return "of Python functions only the innermost of each stack is shown: --engine libbpf shows all, as root"
    return without_python("perf", "; of those that run with python3 -X perf (3.12 and newer) it shows the innermost")


@no_collection()
def _taken(options: Options, reading: Reading, wall: int, ended: int, cut: str) -> NamedRows:
    threads = reading.threads
    accounts = threads.finish(ended)
    rows: dict[str, Mapping[Place, Sequence[int]]] = {}
    if options.waits:
        rows[options.waits.name] = threads.waits()
    if samples := options.samples:
        period = None if options.may.kernel else 1_000_000_000 // samples.frequency
        rows[samples.name] = threads.running(period) if samples.by_clock else threads.counted()
    scope = options.request.scope
    remarks: list[Comment] = [
        *_of_delays(options, threads),
        *options.remarks(sum(account.on_cpu for account in accounts)),
        *_of_stacks(options, rows),
        *scope.remarks({account.pid for account in accounts}),
    ]
    if cut:
        remarks.insert(0, f"{cut}: what came after {(ended - threads.began) / 1e9:.1f} s is not known")
    frames = {frame for each in rows.values() for place in each for frame in place.stack}
    if any(frame.name.startswith(_PYTHON) for frame in frames):
        remarks.append(_of_python(any(frame.kind == "python" for frame in frames)))
    lost = {**threads.lost, **reading.jit.lost, "stacks": threads.lost["stacks"] + reading.records.left_out}
    if lost["events"] or threads.lost["stacks"]:
        remarks.append(_lossy(lost["events"], threads.taken, options))
    processes = {pid: threads.names.get(pid, "") for pid in {account.pid for account in accounts}}
    return NamedRows(wall, ended - threads.began, rows, accounts, threads.names, processes, lost, remarks)
