"""Rows of an engine that get names from another program, and the profile that is made of them."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...converters.base.collection import no_collection
from ...converters.model import Labels, Profile, Sample, Stack, ThreadTimes, ValueType
from ...converters.model.call_ioctls import CallIoctls
from ...converters.model.calls import CallTimes
from ...converters.model.origins import ProcessOrigin
from ...converters.model.processes import LATENCY_BUCKETS, ProcessTimes, latency_bucket
from ...converters.model.remarks import Comment
from ...converters.model.sharing import SharedCall
from ...converters.model.states import BLOCKED
from ..base.conditions import Condition, Conditions
from ..measures.protocol import Measure, columns_of
from .protocol import EngineUnavailable, Request

NO_STACK, NOT_SAMPLED, LOST, OTHER_STACKS = "[no stack]", "[not sampled]", "[lost]", "[other stacks]"
"""Frames that stand for a stack."""
_CREATOR_UNKNOWN = -1


@dataclass
class Account:
    """Times of one thread, in ns; ``began`` and ``ended`` in ns of any clock."""

    pid: int
    tid: int
    began: int
    ended: int = 0
    on_cpu: int = 0
    runnable: int = 0
    blocked: Counter[str] = field(default_factory=Counter)
    """Blocked time by state of `states.BLOCKED`."""
    switches: int = 0
    exited: bool = False
    created: bool = False
    """Whether the thread was created during the trace."""
    latencies: list[int] = field(default_factory=list)
    """Number of its waits for a core, by `latency_bucket`; empty: none, or not known."""

    def waited_for_core(self, ns: int) -> None:
        """Counts a wait for a core, whose time is in ``runnable``."""
        if not self.latencies:
            self.latencies = [0] * LATENCY_BUCKETS
        self.latencies[latency_bucket(ns)] += 1


@dataclass(frozen=True, slots=True)
class Place:
    """Thread whose time it is, and the place where it was spent."""

    pid: int
    tid: int
    state: str
    stack: Stack
    is_open: bool = False
    more: Labels = ()
    """Labels beside those of the fields."""


@dataclass
class NamedRows:
    """All of it. Rows are by name of the measure: their values are those of the measure's columns."""

    began_wall: int
    """Begin of the trace, Unix epoch ns."""
    duration: int
    """ns."""
    rows: Mapping[str, Mapping[Place, Sequence[int]]]
    accounts: Sequence[Account]
    threads: Mapping[int, str]
    """Names by tid."""
    processes: Mapping[int, str]
    """Names by pid."""
    lost: Mapping[str, int] = field(default_factory=dict)
    comments: Sequence[Comment] = ()
    calls: Sequence[CallTimes] = ()
    shared: Sequence[SharedCall] = ()
    call_ioctls: Sequence[CallIoctls] = ()
    conditions: Mapping[int, Condition] = field(default_factory=dict)
    """Conditions by pid; those of other processes are not known. Empty: the engine does not look at them."""

    @no_collection()
    def profile(self, measures: Sequence[Measure], what: str) -> Profile:
        """The profile; ``what``, the measured quantity, begins its title: "Off-CPU time"."""
        columns = columns_of(measures)
        samples = [sample for measure in measures for sample in self._samples(measure, columns)]
        return Profile(
            list(columns),
            samples,
            title=self._title(what),
            host=socket.gethostname(),
            start_ns=self.began_wall,
            duration_ns=self.duration,
            threads=[self._times(account) for account in self.accounts],
            processes=self._processes(),
            origins=self._origins(),
            lost=dict(self.lost),
            comments=list(self.comments),
            calls=list(self.calls),
            shared=list(self.shared),
            call_ioctls=list(self.call_ioctls),
        )

    def _samples(self, measure: Measure, columns: Sequence[ValueType]) -> Iterator[Sample]:
        """Equal labels are one object: those who read them look them up by identity."""
        values_of = _Values(columns, measure.columns)
        known: dict[tuple[object, ...], Labels] = {}
        for place, values in self.rows.get(measure.name, {}).items():
            key = place.pid, place.tid, place.state, place.is_open, place.more
            labels = known.get(key)
            if labels is None:
                labels = known[key] = self._labels(place)
            yield Sample(place.stack, values_of(values), labels)

    def _labels(self, place: Place) -> Labels:
        pairs: list[tuple[str, str | int]] = [
            ("pid", place.pid),
            ("process", self._process(place.pid)),
            ("state", place.state),
            ("thread", self._thread(place.pid, place.tid)),
            ("tid", place.tid),
            *place.more,
            *(self.conditions[place.pid].ranks.items() if place.pid in self.conditions else ()),
        ]
        return tuple(sorted([*pairs, ("open", "yes")] if place.is_open else pairs))

    def _process(self, pid: int) -> str:
        return self.processes.get(pid, "") or self.threads.get(pid, "") or "[unknown]"

    def _thread(self, pid: int, tid: int) -> str:
        return self.threads.get(tid, "") or self._process(pid)

    def _times(self, account: Account) -> ThreadTimes:
        return ThreadTimes(
            account.pid,
            self._process(account.pid),
            account.tid,
            self._thread(account.pid, account.tid),
            account.ended - account.began,
            account.on_cpu,
            account.runnable,
            {state: account.blocked[state] for state in BLOCKED if account.blocked[state]},
            account.switches,
            account.exited,
            _CREATOR_UNKNOWN if account.created else 0,
        )

    def _processes(self) -> list[ProcessTimes]:
        if not self.conditions:
            return []
        latencies: dict[int, tuple[int, ...]] = {}
        for account in self.accounts:
            before, more = latencies.get(account.pid, ()), account.latencies
            both = tuple(map(sum, zip(before, more, strict=True))) if before and more else before or tuple(more)
            latencies[account.pid] = both
        return [self._of_process(pid, counts) for pid, counts in latencies.items()]

    def _of_process(self, pid: int, latencies: tuple[int, ...]) -> ProcessTimes:
        name, found = self._process(pid), self.conditions.get(pid, Condition())
        script = found.script if name.startswith(found.name) else ""
        return ProcessTimes(
            pid, name, latencies, found.cpus, found.limits, found.environment, script, ranks=found.ranks
        )

    def _origins(self) -> list[ProcessOrigin]:
        pids = dict.fromkeys(account.pid for account in self.accounts)
        known = ((pid, self.conditions[pid].origin) for pid in pids if pid in self.conditions)
        return [replace(origin, pid=pid, process=self._process(pid)) for pid, origin in known if origin]

    def _title(self, what: str) -> str:
        names = Counter(self._process(pid) for pid in {account.pid for account in self.accounts})
        if len(names) > 3:
            return f"{what} of {names.total()} processes"
        whom = [f"{count} × {name}" if count > 1 else name for name, count in names.most_common()]
        return f"{what} of {', '.join(whom)}" if whom else what


def all_conditions(
    conditions: Conditions, found: Mapping[int, Condition], accounts: Iterable[Account]
) -> dict[int, Condition]:
    """``found``, as the trace ended, and those of processes of which only later lines told."""
    late: Collection[int] = dict.fromkeys(account.pid for account in accounts if account.pid not in found)
    return {**found, **(conditions.finish(late) if late else {})}


def without_python(engine: str, more: str = "") -> str:
    """A remark: there are Python functions, which the engine does not show. ``more``: another way to see some."""
    return f"there are Python functions, which the engine {engine} does not show{more}: --engine libbpf does, as root"


_WITH_ADDRESSES = ("bcc", "stap")


def refuse(name: str, request: Request) -> None:
    """EngineUnavailable if an option was given that this engine does not honour."""
    given = {
        request.every_option: request.every is not None,
        "--lines": request.lines is not None,
        "--container-pid": request.container_pids,
        "--python-only": request.python_only,
        "--native-python": request.native_python,
        "--kernel-addresses": request.kernel_addresses and name not in _WITH_ADDRESSES,
    }
    if wanted := [option for option, is_given in given.items() if is_given]:
        raise EngineUnavailable(
            f"the engine {name} does not have {wanted[0]}", f"leave out {wanted[0]} or --engine", exit_code=2
        )


class _Values:
    """Puts the values of a measure's ``own`` columns into the places that they have among all ``columns``."""

    def __init__(self, columns: Sequence[ValueType], own: Sequence[ValueType]) -> None:
        self._places = [columns.index(column) for column in own]
        self._size = len(columns)

    def __call__(self, values: Iterable[int]) -> tuple[int, ...]:
        row = [0] * self._size
        for i, value in zip(self._places, values, strict=True):
            row[i] = value
        return tuple(row)


def add_wait(rows: dict[Place, list[int]], place: Place, values: Sequence[int]) -> None:
    """Adds (time, number, shortest, longest) to the row of a place: two stacks may have the same names."""
    known = rows.setdefault(place, [0, 0, values[2], 0])
    known[0] += values[0]
    known[1] += values[1]
    known[2], known[3] = min(known[2], values[2]), max(known[3], values[3])


def shared_out(total: int, parts: Sequence[int]) -> list[int]:
    """``total`` divided in the ratio of ``parts``, which are not all 0, in whole numbers that sum to it."""
    whole, seen, given, shares = sum(parts), 0, 0, []
    for part in parts:
        seen += part
        shares.append(total * seen // whole - given)
        given += shares[-1]
    return shares
