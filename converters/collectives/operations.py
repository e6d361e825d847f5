"""Operations of calls, and their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..model.collectives import UNKNOWN
from .mpi_memory import handle_size
from .records import CallTable
from .signatures import BARRIER, GROUPED, IN_PLACE, MPI, NCCL, NCCL_TYPES, Signature, signature_of

if TYPE_CHECKING:
    import numpy as np

    from .communicators import Communicator

_INT = 0xFFFFFFFF
_MOST_BYTES = 1 << 63
"""No memory has as many: whoever gave such a count has no size."""


class Operation(NamedTuple):
    """An operation of a size."""

    what: str
    bytes: int


def operations_of(table: CallTable, of: Communicator) -> Mapping[int, Operation]:
    """The operations of a communicator by their numbers, see `Calls.what`."""
    import numpy as np

    by_number: dict[int, Operation] = {}
    for member, calls in zip(of.members, of.calls, strict=True):
        numbers, first = np.unique(calls.what, return_index=True)
        for number, place in zip(numbers.tolist(), first.tolist(), strict=True):
            by_number.setdefault(number, _operation(table, member.rows[place]))
    return by_number


def _operation(table: CallTable, row: int) -> Operation:
    """The operation of a row; those of a group are one, with the bytes of all."""
    if row not in table.grouped:
        return _of_call(table, table.calls[row])
    parts = [_of_call(table, call) for call in table.grouped[row]]
    (what, *others) = sorted({each.what for each in parts})
    whole = sum(each.bytes for each in parts)
    is_known = all(each.bytes != UNKNOWN for each in parts) and whole < _MOST_BYTES
    return Operation(GROUPED if others else what, whole if is_known else UNKNOWN)


def _of_call(table: CallTable, call: np.void) -> Operation:
    of = signature_of(table.names[call["function"]])
    assert of
    return Operation(of.what, bytes_of(table, call, of))


def bytes_of(table: CallTable, call: np.void, of: Signature) -> int:
    """Bytes of a rank in a call, or of a message; `UNKNOWN` if they are not known."""
    if of.count < 0:
        return 0 if of.what == BARRIER else UNKNOWN
    count, kind = of.count, of.type
    if of.own >= 0 and int(call["arguments"][of.own].view("i8")) in IN_PLACE:
        count, kind = of.root_count, of.root_type
    number, handle = int(call["arguments"][count]), int(call["arguments"][kind])
    if of.library == NCCL:
        size = NCCL_TYPES.get(handle & _INT, ("", 0))[1]
    else:
        size = size_of_type(table.types, int(call["pid"]), handle) if of.library == MPI else 0
    whole = (number & _INT if of.has_int_count else number) * size
    return whole if size and whole < _MOST_BYTES else UNKNOWN


def size_of_type(types: Mapping[tuple[int, int], int], pid: int, handle: int) -> int:
    """Bytes of an element of a type of MPI; 0 if they are not known. ``types``: see `CallTable.types`."""
    return types.get((pid, handle), 0) if handle >> 32 else handle_size(handle & _INT)
