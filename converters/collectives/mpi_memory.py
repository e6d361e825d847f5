"""Communicators and types of MPI, by what their memory tells.

Handles of Open MPI are addresses of its structs, whose layouts change with its version. Both have a name as text,
behind it, the struct of a communicator has the rank (``ompi_communicator_t``, ompi/communicator/communicator.h; names:
MPI 4.1, 7.8). No offset is assumed: of communicators, one is believed if it tells all processes apart, and no other
one does. Handles of MPICH are numbers, and those of its own types tell their sizes (mpi.h: ``MPI_FLOAT``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.collective_thresholds import MOST_RANKS
from .meetings import Member

BYTES = 512
"""Bytes from the begin of a struct that are looked at."""
WORLD = "MPI_COMM_WORLD"
_NAME = re.compile(rb"MPI[_A-Z0-9]+(?=\0)|MPI COMMUNICATOR \d+ [A-Z_]+ FROM \d+(?=\0)")
"""Names that MPI itself gives."""
_ROOM = 64
"""Bytes of a name: MPI_MAX_OBJECT_NAME of Open MPI's mpi.h."""
_NUMBERS = 16
"""Numbers behind the name that are looked at."""
_INTEGERS = {"INT8_T": 1, "INT16_T": 2, "INT32_T": 4, "INT64_T": 8}
_SIZES: Mapping[str, int] = {
    **dict.fromkeys(("BYTE", "CHAR", "SIGNED_CHAR", "UNSIGNED_CHAR", "C_BOOL", "CXX_BOOL", "PACKED"), 1),
    **dict.fromkeys(("SHORT", "UNSIGNED_SHORT"), 2),
    **dict.fromkeys(("INT", "UNSIGNED", "FLOAT", "WCHAR"), 4),
    **dict.fromkeys(("LONG", "UNSIGNED_LONG", "LONG_LONG_INT", "LONG_LONG", "UNSIGNED_LONG_LONG", "DOUBLE"), 8),
    **dict.fromkeys(("AINT", "COUNT", "OFFSET", "C_FLOAT_COMPLEX", "C_COMPLEX", "2INT", "FLOAT_INT"), 8),
    **dict.fromkeys(("LONG_DOUBLE", "C_DOUBLE_COMPLEX"), 16),
    **dict.fromkeys(("DOUBLE_INT", "LONG_INT"), 12),
    **_INTEGERS,
    **{f"U{name}": size for name, size in _INTEGERS.items()},
}
"""Bytes of the types of C (MPI 4.1, 3.2.2) by their names, with the sizes of the ABI of x86-64."""
_MPICH_TYPE = 0x4C00
"""Upper half of handles of MPICH's own types; the lower one has the size in its upper byte."""


class Named(NamedTuple):
    """A communicator's name, and numbers behind it that can be its rank, by their offsets."""

    name: str
    numbers: Mapping[int, int]


def named(data: bytes) -> Named | None:
    """Reads what the memory of a communicator tells; None for other memory."""
    found = _found(data)
    if found is None:
        return None
    name, begin = found
    behind = data[begin + _ROOM : begin + _ROOM + 4 * _NUMBERS]
    words = [int.from_bytes(behind[at : at + 4], "little") for at in range(0, len(behind) // 8 * 8, 4)]
    pairs = list(zip(words[::2], words[1::2], strict=True))
    # A half of an address is no number.
    small = [(8 * at, pair) for at, pair in enumerate(pairs) if max(pair) < MOST_RANKS]
    return Named(name, {at + 4 * half: number for at, pair in small for half, number in enumerate(pair)})


def type_size(data: bytes) -> int:
    """Bytes of an element of a type whose memory is given; 0 if it is none of MPI's own."""
    found = _found(data)
    return _SIZES.get(found[0].removeprefix("MPI_"), 0) if found else 0


def handle_size(handle: int) -> int:
    """Bytes of an element of one of MPICH's own types; 0 for other handles."""
    return handle >> 8 & 0xFF if handle >> 16 == _MPICH_TYPE else 0


def _found(data: bytes) -> tuple[str, int] | None:
    """The only name in the memory, and where it begins."""
    found = [each for each in _NAME.finditer(data) if each.start() % 8 == 0]
    return (found[0][0].decode("ascii"), found[0].start()) if len(found) == 1 else None


def ranks(memory: Mapping[Member, Named], are_apart: Callable[[int, int], bool]) -> dict[Member, int]:
    """The rank of each communicator, by the place where those of all jobs' own communicators tell their processes
    apart. Empty if there is none, or if there are several."""
    worlds = list(jobs([member for member, each in memory.items() if each.name == WORLD], are_apart).values())
    places = [place for place in range(0, 4 * _NUMBERS, 4) if all(_tells(memory, group, place) for group in worlds)]
    if len(places) != 1 or max(map(len, worlds), default=0) < thresholds.PROCESSES_FIT:
        return {}
    return {member: each.numbers[places[0]] for member, each in memory.items() if places[0] in each.numbers}


def jobs(members: Sequence[Member], are_apart: Callable[[int, int], bool]) -> dict[int, list[Member]]:
    """Members by the first process of their job."""
    found: defaultdict[int, list[Member]] = defaultdict(list)
    for member in sorted(members):
        first = next((pid for pid in found if not are_apart(pid, member.pid)), member.pid)
        found[first].append(member)
    return found


def _tells(memory: Mapping[Member, Named], group: Sequence[Member], place: int) -> bool:
    """Whether each of them has another number there."""
    numbers = {memory[member].numbers.get(place) for member in group}
    return None not in numbers and len(numbers) == len(group)
