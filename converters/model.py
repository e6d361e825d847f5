"""The narrow waist: what every reader and tracer produces and every transform and writer takes.

A `Profile` is a list of `Sample`: a stack, one value per `ValueType`, and labels. It says what it
lost. It is saved as pprof (see `converters.pprof`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .timeline import Timeline

Kind = Literal["kernel", "native", "python", "jit", "api", "other"]
Aggregate = Literal["sum", "min", "max"]
Labels = tuple[tuple[str, str | int], ...]
"""Sorted (key, value) pairs; share one tuple between the samples that have the same labels.

Keys in use: host, pid (int), process, tid (int), thread, state, open ("yes": still waiting when the
trace ended)."""


class Module(NamedTuple):
    """A file that code comes from.

    ``path`` as the traced process sees it; ``build_id`` in lower-case hex, "" when unknown;
    ``size`` is the end of its highest executable segment as an ELF virtual address, 0 when unknown.
    """

    path: str
    build_id: str = ""
    size: int = 0


class Frame(NamedTuple):
    """One function on a stack. ``name`` is never empty: an unresolved frame is ``[libfoo.so+0x1a2b]``.

    ``address`` is an ELF virtual address inside ``module`` (absolute for the kernel and for JIT code),
    so that it is equal in every process that maps the file; 0 when unknown. Names are as the symbol
    table has them (demangled): hostile input, to be escaped by whoever prints them.
    """

    name: str
    kind: Kind = "native"
    module: Module | None = None
    address: int = 0
    file: str = ""
    line: int = 0


Stack = tuple[Frame, ...]
"""Outermost frame (thread start) first, innermost (kernel leaf) last."""


class ValueType(NamedTuple):
    """What a column of values means: ("off-cpu", "nanoseconds", "sum"), ("count", "count", "sum"), …"""

    name: str
    unit: str
    aggregate: Aggregate = "sum"


class Sample(NamedTuple):
    """``values[i]`` belongs to ``Profile.value_types[i]``."""

    stack: Stack
    values: tuple[int, ...]
    labels: Labels = ()

    def label(self, key: str) -> str | int | None:
        """The label's value, or None."""
        for name, value in self.labels:
            if name == key:
                return value
        return None


@dataclass(slots=True)
class ThreadTimes:
    """Scheduler accounting of one thread, in ns: on_cpu + runnable + sum(blocked) = wall (end - start)."""

    pid: int
    process: str
    tid: int
    thread: str
    wall: int
    on_cpu: int
    runnable: int
    blocked: dict[str, int]
    """By state: interruptible, uninterruptible, stopped, traced, idle, other."""
    switches: int = 0
    """How often it was switched out."""
    exited: bool = False


@dataclass(slots=True)
class Profile:
    """A set of samples with what is known about how they were taken."""

    value_types: list[ValueType]
    samples: list[Sample] = field(default_factory=list)
    title: str = ""
    """What was measured, of whom: ``off-CPU time of 8 processes``."""
    host: str = ""
    start_ns: int = 0
    """Wall-clock time (Unix epoch) of the start; 0 when unknown."""
    duration_ns: int = 0
    threads: list[ThreadTimes] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    """What is missing, by kind, zeros included: ``{"lost events": 0, "stacks cut short": 3}``."""
    comments: list[str] = field(default_factory=list)
    timeline: Timeline | None = None
    """When it happened, where the source knows; what changes the samples drops it."""

    def index(self, name: str) -> int:
        """Position of the value type called ``name``; KeyError when there is none."""
        for i, value_type in enumerate(self.value_types):
            if value_type.name == name:
                return i
        raise KeyError(name)

    def total(self, name: str) -> int:
        """Sum of one column."""
        i = self.index(name)
        return sum(sample.values[i] for sample in self.samples)
