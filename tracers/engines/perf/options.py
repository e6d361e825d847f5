"""Request to perf: whom it records, which events, which stacks."""

from __future__ import annotations

from dataclasses import dataclass

from ....converters.base import helpers
from ....converters.model.remarks import Comment, KernelHidden, NotSampled, TooShort, WaitsHidden
from ...base import procfs
from ...base.launch import Launch
from ...base.scope import Scope
from ...measures.offcpu import OffCpu
from ...measures.oncpu import OnCpu
from ...measures.protocol import find
from ..limits import STACK
from ..protocol import EngineUnavailable, Request
from .recording import ANY_SWITCH, SWITCH, Rights

_MOST_TARGETS = 1 << 12
"""Processes in one command line of perf."""
_FEW = 10
"""Fewer expected samples explain by themselves that there are none."""
_FIELDS = "comm,pid,tid,time,event,period,ip,sym,dso"


@dataclass(frozen=True)
class How:
    """The user's choice."""

    user_stacks: bool = True
    kernel_stacks: bool = True
    dwarf: bool = True
    """User stacks by programs' tables: stack is copied for each sample; else by frame pointers."""
    buffer_bytes: int = 8 << 20
    """Bytes of the buffer per core; root's."""
    stack_bytes: int = STACK
    """Bytes of stack that are copied."""


@dataclass(frozen=True)
class Options:
    """Request to perf."""

    how: How

    request: Request
    may: Rights
    targets: Targets

    @property
    def waits(self) -> OffCpu | None:
        return find(self.request.measures, OffCpu)

    @property
    def samples(self) -> OnCpu | None:
        return find(self.request.measures, OnCpu)

    @property
    def switch(self) -> str:
        """The event of a switch."""
        return SWITCH if self.may.tracepoints else f"{ANY_SWITCH}/period=1/"

    def words(self) -> list[str]:
        """Options of perf record."""
        how, may = self.how, self.may
        words = ["-e", self.switch] if self.waits else []
        if self.samples:
            words += ["-e", f"{self.samples.event}/freq={self.samples.frequency}/{'' if may.kernel else 'u'}"]
        words += ["--call-graph", f"dwarf,{how.stack_bytes}" if how.dwarf and how.user_stacks else "fp"]
        if not how.user_stacks:
            words.append("--kernel-callchains")
        if not how.kernel_stacks:
            words.append("--user-callchains")
        if may.all:
            words += ["-m", f"{how.buffer_bytes >> 20}M"]
        return [*words, *self.targets.words]

    def fields(self) -> str:
        """Fields that perf script prints."""
        return f"{_FIELDS},trace" if self.waits and self.switch == SWITCH else _FIELDS

    def remarks(self, on_cpu: int) -> list[Comment]:
        """Remarks for the reader. ``on_cpu``: of all threads, in ns."""
        said: list[Comment] = []
        if self.waits and self.switch != SWITCH:
            why = self.may.no_tracefs or "this user may not read tracepoints"
            said.append(f"whether a wait was interruptible is not known: {why}")
        if self.samples and not self.may.kernel:
            said.append(self._why_not_sampled(self.samples, on_cpu))
            has_other = helpers.find_program("eu-stack")
            said.append(WaitsHidden("trace-wall --engine eu-stack" if has_other else "sudo trace-wall"))
        if self.request.scope.grows:
            said.append("processes that begin later and belong to the scope are not traced: perf cannot follow them")
        return said

    def _why_not_sampled(self, samples: OnCpu, on_cpu: int) -> NotSampled:
        expected = on_cpu * samples.frequency // 1_000_000_000
        if samples.by_clock and expected < _FEW:
            return TooShort(on_cpu, samples.frequency, expected)
        return KernelHidden(self.may.level)


@dataclass(frozen=True)
class Targets:
    """Targets that perf records: processes, or threads."""

    pids: list[int]
    tids: list[int]
    children: bool
    """Whether processes that they fork are recorded, too."""

    @property
    def words(self) -> list[str]:
        """Options of perf record."""
        return ["-p" if self.pids else "-t", ",".join(map(str, self.pids or self.tids))]

    def threads(self) -> list[tuple[int, int]]:
        """(pid, tid) of those that are there now."""
        threads = [(pid, tid) for pid in self.pids for tid in procfs.tids(pid)]
        return threads + [(procfs.tgid_of(tid) or tid, tid) for tid in self.tids]

    @property
    def only(self) -> frozenset[int] | None:
        """The processes that count; None: whatever perf reports."""
        return None if self.children else frozenset(self.pids or [procfs.tgid_of(tid) or tid for tid in self.tids])


def targets_of(scope: Scope, launch: Launch | None) -> Targets:
    """EngineUnavailable for a scope that perf cannot follow."""
    if scope.everything:
        raise EngineUnavailable(
            "the engine perf does not trace whole hosts: it would lose most of the switches",
            "choose processes with -p PID or -n REGEX",
        )
    scope.resolve()
    pids, tids = sorted({launch.pid} if launch else scope.tgids), sorted(scope.tids)
    if tids and pids:
        raise EngineUnavailable("the engine perf traces either processes or threads", "give -p or -t, not both")
    if not pids and not tids:
        raise EngineUnavailable("there is no process to trace yet, and perf cannot wait for one", "start it first")
    if len(pids) > _MOST_TARGETS:
        raise EngineUnavailable(f"{len(pids):,} processes are too many for perf", "choose fewer")
    return Targets(pids, tids, scope.children)
