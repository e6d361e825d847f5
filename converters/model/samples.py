"""A sample and its parts: a stack of frames, values, labels. All other modules use these."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["kernel", "native", "python", "jit", "api", "waker", "other"]
Aggregate = Literal["sum", "min", "max"]
Labels = tuple[tuple[str, str | int], ...]
"""Sorted (key, value) pairs; samples with the same labels should share one tuple.

Keys in use: host, pid (int), process, tid (int), thread, state, open ("yes": still waiting when the
trace ended), pid-life (int: of the processes that had this pid one after the other, the so many-th; missing: the first
one), object (int: what a wait is on, see `wait_objects`),
tid-life (the same for the threads of a process), waker (who ended the wait: ``python3-4711``, ``[timer]``),
waker_thread, waker_tid (int), chain_tids (the threads of all links of a chain of wakers, as `wakers.joined_tids` writes
them), chain_thread (the name of the last one), rank and the others of `ranks.LABELS`."""


class Module(NamedTuple):
    """A file that contains code.

    ``path`` as the traced process sees it; ``build_id`` in lower-case hex, "" when unknown;
    ``size`` is the end of its highest executable segment as an ELF virtual address, 0 when unknown.
    """

    path: str
    build_id: str = ""
    size: int = 0


class Frame(NamedTuple):
    """One function on a stack. ``name`` is never empty: an unresolved frame is ``[libfoo.so+0x1a2b]``.

    ``address`` is an ELF virtual address inside ``module`` (absolute for the kernel and for JIT code),
    so that it is equal in every process that maps the file; 0 when unknown. Names are those of the symbol
    table (demangled): hostile input, to be escaped when printed.
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
    """Meaning of a column of values: ("off-cpu", "nanoseconds", "sum"), ("count", "count", "sum"), …

    ``aggregate`` says how the values of equal samples become one. 0 in a column of minima or maxima means that there
    was nothing to compare: on-CPU samples beside waits, for example.
    """

    name: str
    unit: str
    aggregate: Aggregate = "sum"

    def joined(self, one: int, other: int) -> int:
        """The value of two samples that become one."""
        if self.aggregate == "sum":
            return one + other
        return least(one, other) if self.aggregate == "min" else max(one, other)


def least(one: int, other: int) -> int:
    """The smaller of two minima; 0 means no value."""
    return min(one, other) if one and other else one or other


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
