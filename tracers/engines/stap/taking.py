"""Takes what a script prints, as it comes, and makes at its end what a trace has taken."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ....converters.base.text import printable, some
from ....converters.base.units import plural
from ....converters.model import Frame
from ....converters.model.calls import WITHOUT_PROBE
from ....converters.model.remarks import Comment, ProbesCost
from ....converters.readers.stap.lines import Exec, Fork, Line, Lines, Name, SleepsAt, Wait
from ....converters.readers.stap.stacks import Stacks
from ...base.conditions import Condition, Conditions
from ...measures.calls import Calls as FunctionCalls
from ...measures.ioctl import Ioctl
from ...measures.locks import Locks
from ...measures.offcpu import OffCpu
from ...measures.oncpu import OnCpu
from ...measures.protocol import Measure, find
from ...measures.wakeup import WakeUp
from ...symbols.kallsyms import Kallsyms
from ...unwind.walking import Registers
from ..asleep import Asleep
from ..named_rows import NamedRows, Place, all_conditions, without_python
from ..protocol import Request
from ..timed import calls_by_process, parts_by_process
from . import missing_tables
from .calls import Calls
from .compiling import MOST_FRAMES
from .functions import Function
from .module_file import UNATTACHED, without_probe
from .threads import Filter, Part, Threads
from .user_names import FileNames
from .wakes import Names, Wakes

_SKIPPED = re.compile(r"skipped probes: (\d+)")
_FAILED = re.compile(r"(\d+) transport failures")
_WORTH_A_NOTE, _MUCH = 0.02, 0.1
"""Shares of the cores' time that probes took: the second is told before all else."""
_MATTERS = 0.01
"""Losses matter from this share of the events, or of the time, on."""
_WERE = {True: "was", False: "were"}
_LONGEST = 200
"""Characters of an error that are told."""
_PYTHON = "_PyEval_EvalFrame"
"""Begin of the names of the functions of CPython's interpreter loop."""

LEFT_OUT: Mapping[type[Measure], str] = {
    Locks: "locks and who has them are not told: the engine stap has no script for them"
}
"""Measures that add to others, and are left out; and what is said then."""


class Taking:
    """Takes the lines of one trace."""

    def __init__(
        self,
        lines: Lines,
        measures: Sequence[Measure],
        functions: Mapping[str, Function] = MappingProxyType({}),
        asleep: Asleep | None = None,
        launched: int = 0,
    ) -> None:
        """Takes lines after the first one was read. ``functions``: those whose calls are timed, by name. ``asleep``:
        looks at threads that sleep as the trace begins. What ``launched``, a process, did before it became the command
        does not count."""
        waits = find(measures, OffCpu)
        wanted = Filter(waits.shortest, waits.longest, waits.states) if waits else None
        self._asleep, self._launched = asleep or Asleep(), launched
        self.threads = Threads(lines.began, wanted, self._waited, self._asleep)
        self.conditions = Conditions()
        self._found: dict[int, Condition] | None = None
        """Conditions at the end; None before it."""
        self._lines, self._measures, self._functions = lines, measures, functions
        self._start_over()

    def _start_over(self) -> None:
        """Nothing is known yet of calls and wake-ups."""
        alone = not find(self._measures, FunctionCalls)
        has_calls = not alone or find(self._measures, Ioctl)
        wakes = find(self._measures, WakeUp)
        self.calls = Calls(self._functions, alone=alone) if has_calls else None
        self.wakes = Wakes(wakes) if wakes else None

    def take(self, data: bytes, ended: int = 0) -> None:
        """Takes what was printed. ``ended``: when the trace has ended, CLOCK_MONOTONIC ns; 0: it goes on."""
        if not ended:
            self.conditions.poll()
        elif self._found is None:
            self._found = self.conditions.finish(self.threads.pids())
        for line in self._lines.feed(data):
            self.line(line, ended)

    def line(self, line: Line, ended: int = 0) -> None:
        """The next line."""
        if isinstance(line, SleepsAt):
            self._asleep.look(self.threads.pid_of(line.tid), line.tid, Registers(line.ip, line.sp, line.bp))
            return
        if isinstance(line, Exec) and line.pid == self._launched:
            self._launched = 0
            self._start_over()
            self.threads.restart(line)
        if self.calls:
            self.calls.take(line)
        if self.wakes:
            self.wakes.take(line)
        self.threads.take(line, ended)
        if isinstance(line, (Fork, Name)) and line.tid == line.pid and self._found is None:
            self._began(line.pid)

    def _began(self, pid: int) -> None:
        """A process, or a program in it. Wakers that are not traced have names, too."""
        if self.threads.is_traced(pid, pid):
            self.conditions.look(pid)

    def _waited(self, wait: Wait, parts: Sequence[Part]) -> None:
        for each in (self.calls, self.wakes):
            if each:
                each.waited(wait, parts)

    def taken(self, request: Request, words: str, ended: int) -> NamedRows:
        """All of it. ``words``: what staprun said on standard error."""
        self._lines.finish()
        accounts = self.threads.finish(ended)
        if self.calls:
            self.calls.finish(ended)
        names = Names(self.threads.names)
        stacks = self._lines.stacks(
            _kallsyms(absolute=request.kernel_addresses),
            FileNames({account.pid for account in accounts}, self._lines.wall, self._functions),
        )
        rows = {measure.name: self._rows(measure, stacks, names) for measure in self._measures}
        remarks: list[Comment] = [
            *_remarks(self._lines, rows, words),
            *missing_tables.remarks(rows.values(), stacks.without_tables),
        ]
        if request.scope.grows:
            remarks.append(
                "processes that begin later and belong to the scope are not traced: the engine stap finds only forks"
            )
        remarks += request.scope.remarks({account.pid for account in accounts})
        skipped, missing = self._skipped(words), self._lines.lost["events"]
        if skipped or missing:
            told = [f"{skipped:,} {_WERE[skipped == 1]} skipped"] * bool(skipped)
            told += [f"{plural(missing, 'line')} did not arrive"] * bool(missing)
            share = max((skipped + missing) / (skipped + self._lines.events), self.threads.lost_share())
            advice = ": trace fewer processes" if share >= _MATTERS else ""
            remarks.append(f"SystemTap lost events ({', '.join(told)}){advice}")
        remarks += self._slowed(ended)
        if self.calls:
            remarks += self.calls.remarks()
        remarks += [why for kind, why in LEFT_OUT.items() if find(self._measures, kind)]
        return NamedRows(
            self._lines.wall,
            max(ended - self._lines.began, 0),
            rows,
            accounts,
            self.threads.names,
            {account.pid: self.threads.names.get(account.pid, "") for account in accounts},
            self._lost(skipped, words),
            remarks,
            calls=calls_by_process(self.calls.timed(), names) if self.calls else (),
            shared=self.calls.shared(ended) if self.calls else (),
            call_ioctls=parts_by_process(self.calls.call_ioctls(), names) if self.calls else (),
            conditions=all_conditions(self.conditions, self._found or {}, accounts),
        )

    def _slowed(self, ended: int) -> list[Comment]:
        """Remarks on what the script's own probes took of the cores, if it is much: it is shown as time of the
        threads."""
        cores = os.sysconf("SC_NPROCESSORS_ONLN")
        whole = (ended - self._lines.began) * cores
        if whole <= 0 or self._lines.cost < _WORTH_A_NOTE * whole:
            return []
        return [ProbesCost(min(self._lines.cost, whole), whole, cores, careful=self._lines.cost >= _MUCH * whole)]

    def _rows(self, measure: Measure, stacks: Stacks, names: Names) -> Mapping[Place, Sequence[int]]:
        kind = type(measure)
        if kind is OffCpu:
            return self.threads.waits(stacks)
        if self.calls and kind in (Ioctl, FunctionCalls):
            return self.calls.rows(stacks, of_calls=kind is FunctionCalls)
        if self.wakes and kind is WakeUp:
            return self.wakes.rows(stacks, names, self.threads)
        if kind is OnCpu:
            return self.threads.running(stacks)
        return {}  # what the engine leaves out: see `LEFT_OUT`

    def _skipped(self, words: str) -> int:
        """Events for which no probe ran; where it is not known which lines were printed, also what found no room."""
        patterns = (_SKIPPED,) if self._lines.printed is not None else (_SKIPPED, _FAILED)
        return sum(int(number) for pattern in patterns for number in pattern.findall(words))

    def _lost(self, skipped: int, words: str) -> dict[str, int]:
        lost = Counter(self._lines.lost)
        lost["events"] += skipped
        lost[WITHOUT_PROBE] += len(without_probe(words))
        for each in (self.threads, self.calls, self.wakes):
            more = each.lost if each else {}
            for kind, number in more.items():
                lost[kind] += number
        return dict(lost)


def _remarks(lines: Lines, rows: Mapping[str, Mapping[Place, Sequence[int]]], words: str) -> list[str]:
    remarks = []
    if lines.printed is None:
        said = next(
            (f" (SystemTap: {printable(line)[:_LONGEST]})" for line in words.splitlines() if "ERROR" in line), ""
        )
        remarks.append(f"the script did not come to its end: what it lost is not known{said}")
    if unattached := [line for line in words.splitlines() if UNATTACHED in line]:
        first = printable(unattached[0])[:_LONGEST]
        names = [name for _, name in sorted(without_probe(words))] or [plural(len(unattached), "place")]
        remarks.append(f"no probe could be put on {some(names)}, whose calls are not seen (SystemTap: {first})")
    longest = max((len(_native(place)) for row in rows.values() for place in row), default=0)
    if longest >= MOST_FRAMES:
        remarks.append(f"stacks of more than {MOST_FRAMES} frames are cut: what called the rest is missing")
    if any(_PYTHON in frame.name for row in rows.values() for place in row for frame in place.stack):
        remarks.append(without_python("stap"))
    return remarks


def _native(place: Place) -> list[Frame]:
    return [frame for frame in place.stack if frame.kind == "native"]


def _kallsyms(*, absolute: bool) -> Kallsyms | None:
    try:
        found = Kallsyms.read(absolute=absolute)
    except OSError:
        return None
    return None if found.restricted else found
