"""Calls of communication libraries one by one, as probes give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .counters import Count
from .meetings import Member
from .mpi_memory import Named
from .numbered import Number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.void]

OPEN = -1
"""End of a call that had not ended."""
ARGUMENTS = 12
"""Number of integer arguments that are kept."""
FIELDS = (
    *(("began", "<i8"), ("ended", "<i8"), ("blocked", "<i8"), ("runnable", "<i8")),
    *(("result", "<i8"), ("made", "<u8"), ("ustack", "<u8"), ("waits", "<i8")),
    *(("pid", "<i4"), ("tid", "<i4"), ("life", "<u4"), ("function", "<i4")),
    ("arguments", "<u8", (ARGUMENTS,)),
)
"""Columns of a table of calls. Times are ns from the beginning of the trace; ``function`` is an index of names;
``made``: the communicator, or the handle of an operation, that the call made, 0 if none; ``ustack``: id of the stack
where it was called; ``waits``: see `requests.completed`."""
NO_WAIT = -1
"""Begin of a wait of which nothing is known."""


@dataclass(frozen=True)
class CallTable:
    """Calls in the order in which they began, with the names of the functions."""

    calls: Array
    """Rows of `FIELDS`."""
    names: Sequence[str]
    lost: int = 0
    """Calls that are missing here."""
    until: int | None = None
    """ns from the beginning of the trace up to which all calls are here; None: to its end."""
    grouped: Mapping[int, Array] = field(default_factory=dict)
    """All collectives of a communicator in one group, by the row that stands for them: see `groups`."""
    memory: Mapping[Member, Array] = field(default_factory=dict)
    """Words of the memory of communicators that were made before: see `evidence.candidates`."""
    numbers: Mapping[Member, Mapping[int, Number]] = field(default_factory=dict)
    """Numbers in the memory of groups of Gloo that were made before: see `numbered.numbers`."""
    counts: Mapping[Member, Sequence[Count]] = field(default_factory=dict)
    """Words of the memory of the same communicators while they were used: see `counters`."""
    named: Mapping[Member, Named] = field(default_factory=dict)
    """Names and numbers in the memory of communicators of MPI."""
    types: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """Bytes of an element of types of MPI, by process and handle."""
    watched: frozenset[int] = frozenset()
    """Processes in which all functions of these names that they have loaded are watched, by pid."""


def empty() -> Array:
    """A table without calls."""
    import numpy as np

    return np.zeros(0, np.dtype(list(FIELDS)))
