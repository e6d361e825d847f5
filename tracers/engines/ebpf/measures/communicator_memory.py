"""Memory of communicators that were there before the trace: see `converters.collectives.evidence`, `counters`,
`numbered`, and `mpi_memory`, which is of types, too.

It is read when the first call of one is seen: when the trace ends, its process may have ended. Its address may be that
of another one later, which is read by itself. A small part is read again now and then: its words may count calls."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from .....converters.collectives import mpi_memory, numbered
from .....converters.collectives.communicators import endpoints
from .....converters.collectives.counters import Count, windows, words
from .....converters.collectives.evidence import candidates
from .....converters.collectives.meetings import Member
from .....converters.collectives.numbered import numbers
from .....converters.collectives.records import CallTable
from .....converters.collectives.signatures import (
    COLLECTIVE,
    ENDS,
    GLOO,
    MAKES,
    MPI,
    NCCL,
    POINT_TO_POINT,
    signature_of,
)
from ....outside.reads import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .....converters.collectives.evidence import Candidates
    from .....converters.collectives.mpi_memory import Named
    from .....converters.collectives.numbered import Number
    from .....converters.collectives.signatures import Signature

BYTES = 2 << 20
"""Bytes that are read of each. What is looked for stands behind the channels: in version 2.32, 1,181,408 bytes from
the begin."""
_MOST = 256
"""Communicators whose memory is read."""
_COUNTED = 64
"""Communicators of which it is read again."""
_COUNTS, _BETWEEN = 12, 50_000_000
"""Number of times that words are read again that may count calls, and ns from one to the next."""
_MOST_TYPES = 4096
"""Types of MPI whose memory is read."""
_HANDLE_BITS = 32
"""Bits of a handle that is no address."""


class CommunicatorMemory:
    """Memory of NCCL's communicators whose making tells no id, of Gloo's groups, of MPI's communicators and types."""

    def __init__(self) -> None:
        self._found: dict[Member, Candidates] = {}
        self._windows: dict[Member, list[tuple[int, int]]] = {}
        self._counts: defaultdict[Member, list[Count]] = defaultdict(list)
        self._counted = 0
        """CLOCK_MONOTONIC ns of the last time."""
        self._numbers: dict[Member, dict[int, Number]] = {}
        self._named: dict[Member, Named] = {}
        self._types: dict[tuple[int, int], int] = {}
        self._seen: set[Member] = set()
        """Communicators that were read, or that were made with an id."""
        self._before: Counter[tuple[int, int]] = Counter()
        """See `Member.number`, by process and address."""

    def look(self, rows: NDArray[np.void], named: Callable[[int], str]) -> None:
        """Reads the communicators of calls that have returned. ``rows``: of `argument_records.RECORD`; ``named``: the
        function of a number."""
        import numpy as np

        known = {number: signature_of(named(number)) for number in np.unique(rows["function"]).tolist()}
        changes = [number for number, of in known.items() if of and of.kind in (MAKES, ENDS)]
        for row in rows[np.isin(rows["function"], changes)]:
            if of := known[int(row["function"])]:
                self._change(of, row)
        for number, of in known.items():
            if of and of.kind in (COLLECTIVE, POINT_TO_POINT):
                mine = rows[rows["function"] == number]
                self._look(of, mine)
        if time.monotonic_ns() - self._counted > _BETWEEN:
            self._count()

    def _look(self, of: Signature, mine: NDArray[np.void]) -> None:
        """Reads what these calls of one function lead to."""
        pids = mine["pid"].tolist()
        found = map(self._member, pids, mine["arguments"][:, of.comm].tolist())
        if of.library == NCCL:
            self._read(found)
        elif of.library == GLOO:
            self._read_groups(found)
        elif of.library == MPI:
            self._read_named(set(found))
            for place in filter(lambda each: each >= 0, (of.type, of.root_type)):
                self._read_types(set(zip(pids, mine["arguments"][:, place].tolist(), strict=True)))

    def _change(self, of: Signature, row: np.void) -> None:
        """Another communicator is at the address from now on, or none."""
        # Those of Gloo are made at an address that is given.
        made = row["arguments"][of.made] if of.library == GLOO else row["made"]
        at = int(row["pid"]), int(made if of.kind == MAKES else row["arguments"][of.comm])
        self._before[at] += 1
        if of.kind == MAKES and of.id >= 0:
            self._seen.add(self._member(*at))

    def _member(self, pid: int, address: int) -> Member:
        return Member(pid, address, self._before[pid, address])

    def of(self, table: CallTable, began: int = 0) -> CallTable:
        """The table with all that was read; those are read now that have only calls that go on. ``began``: when the
        trace did, CLOCK_MONOTONIC ns."""
        self._count()
        unknown = [each for each in endpoints(table) if not each.identity and not each.ended]
        unknown = [each for each in unknown if each.member == self._member(each.pid, each.address)]
        self._read(each.member for each in unknown if each.library == NCCL)
        self._read_named(each.member for each in unknown if each.library == MPI)
        counts = {
            member: [each._replace(before=each.before - began, after=each.after - began) for each in of]
            for member, of in self._counts.items()
        }
        found = replace(table, memory=self._found, numbers=self._numbers, counts=counts)
        return replace(found, named=self._named, types=self._types)

    def _read(self, members: Iterable[Member]) -> None:
        for each in members:
            if each in self._seen or len(self._found) >= _MOST:
                continue
            self._seen.add(each)
            if data := _first_bytes(each.pid, each.comm, BYTES):
                self._found[each] = candidates(data)
                if (parts := windows(self._found[each])) and len(self._windows) < _COUNTED:
                    self._windows[each] = parts

    def _count(self) -> None:
        """Reads what may be a counter, of communicators that are still at their addresses."""
        import numpy as np

        for each, parts in self._windows.items():
            if len(self._counts[each]) >= _COUNTS or each != self._member(each.pid, each.comm):
                continue
            before = time.monotonic_ns()
            data = _bytes_at(each.pid, [(each.comm + place, size) for place, size in parts])
            after = time.monotonic_ns()
            if data:
                found = [words(place, part) for (place, _), part in zip(parts, data, strict=True)]
                self._counts[each].append(Count(before, after, np.concatenate(found)))
        self._counted = time.monotonic_ns()

    def _read_groups(self, members: Iterable[Member]) -> None:
        for each in members:
            if each not in self._numbers and len(self._numbers) < _MOST:
                self._numbers[each] = numbers(_first_bytes(each.pid, each.comm, numbered.BYTES))

    def _read_named(self, members: Iterable[Member]) -> None:
        for each in members:
            if each not in self._seen and each.comm >> _HANDLE_BITS and len(self._named) < _MOST:
                self._seen.add(each)
                if found := mpi_memory.named(_first_bytes(each.pid, each.comm, mpi_memory.BYTES)):
                    self._named[each] = found

    def _read_types(self, types: Iterable[tuple[int, int]]) -> None:
        """``types``: processes and handles."""
        for each in types:
            if each not in self._types and each[1] >> _HANDLE_BITS and len(self._types) < _MOST_TYPES:
                self._types[each] = mpi_memory.type_size(_first_bytes(*each, mpi_memory.BYTES))


def _first_bytes(pid: int, address: int, size: int) -> bytes:
    """The first bytes, up to the first page that is not there; none if the process has ended."""
    return b"".join(_bytes_at(pid, [(address, size)]))


def _bytes_at(pid: int, parts: list[tuple[int, int]]) -> list[bytes]:
    """Bytes of each part, up to the first page that is not there; none if the process has ended."""
    memory = Memory(pid)
    try:
        return memory.read_some(parts)
    except OSError:
        return []
    finally:
        memory.close()
