"""Communicators: which of the processes' addresses are the same one.

A communicator is known by the call that made it: NCCL's ranks all give the same unique id, of which the probes keep the
first two words; a split has its parent, its place in the parent's order and its color. Those that were there before the
trace are known by their processes' addresses only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .evidence import placed
from .meetings import Calls, Member, fit
from .records import OPEN, CallTable
from .signatures import COLLECTIVE, ENDS, MAKES, MPI, WAITS, Signature, signature_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NO_COLOR = 0xFFFFFFFF
"""NCCL_SPLIT_NOCOLOR of nccl.h, -1: the rank is in none of the new ones."""
_INT = 0xFFFFFFFF


@dataclass
class Endpoint:
    """A communicator as one process has it."""

    pid: int
    address: int
    made: int
    """Time in ns when the call that made it returned; `OPEN`: before the trace."""
    rank: int = -1
    size: int = -1
    identity: Hashable = None
    """Equal for all ranks of one communicator; None: not known."""
    rows: list[int] = field(default_factory=list)
    """Rows of its collectives in the table, in order."""
    splits: int = 0
    """Number of communicators that were made of it."""
    ended: bool = False
    library: str = ""


def endpoints(table: CallTable) -> list[Endpoint]:
    """All that the table has, in the order in which they were made or first used."""
    import numpy as np

    known = [signature_of(name) for name in table.names]
    calls = table.calls
    found: list[Endpoint] = []
    for pid in np.unique(calls["pid"]).tolist():
        rows = np.flatnonzero(calls["pid"] == pid)
        found += _of_process(pid, rows.tolist(), table, known)
    return found


def _of_process(pid: int, rows: Sequence[int], table: CallTable, known: Sequence[Signature | None]) -> list[Endpoint]:
    """Goes through the calls in the order of their begins; a communicator exists from the return of what made it."""
    calls = table.calls
    current: dict[int, Endpoint] = {}
    found: list[Endpoint] = []

    def at(address: int) -> Endpoint:
        if address not in current:
            current[address] = Endpoint(pid, address, OPEN)
            found.append(current[address])
        return current[address]

    functions, ended, made = (calls[name].tolist() for name in ("function", "ended", "made"))
    for row in rows:
        is_of = known[functions[row]]
        if not is_of:
            continue
        arguments = calls["arguments"][row].tolist()
        if is_of.kind == MAKES:
            if (new := _made(is_of, arguments, at)) and made[row]:
                current[made[row]] = replace(new, pid=pid, address=made[row], made=ended[row])
                found.append(current[made[row]])
        elif is_of.kind == COLLECTIVE:
            used = at(arguments[is_of.comm])
            used.rows.append(row)
            used.library = is_of.library
        elif is_of.kind == ENDS:
            at(arguments[is_of.comm]).ended = True
    return found


def _made(of: Signature, arguments: Sequence[int], at: Callable[[int], Endpoint]) -> Endpoint | None:
    """Endpoint that the call makes, without its process and address; None if this rank is to have none."""
    if of.size >= 0:
        identity = ("id", *arguments[of.id : of.id + 2]) if of.id >= 0 else None
        return Endpoint(0, 0, OPEN, arguments[of.rank] & _INT, arguments[of.size] & _INT, identity)
    parent = at(arguments[of.comm])
    parent.splits += 1
    color = arguments[of.color] & _INT if of.color >= 0 else 0
    if color == _NO_COLOR:
        return None
    split = ("split", parent.identity, parent.splits, color)
    return Endpoint(0, 0, OPEN, identity=split if parent.identity else None)


@dataclass(frozen=True)
class Communicator:
    """Ranks that meet. ``calls`` has the collectives of each member."""

    members: tuple[Endpoint, ...]
    calls: tuple[Calls, ...]
    is_known: bool
    """Whether its ranks are known, by the call that made it or by its memory. Else its members are those whose calls
    fit: see `_fitting`."""
    is_whole: bool = False
    """Whether the trace has seen how it was made, and so all of its calls."""


def communicators(table: CallTable) -> list[Communicator]:
    """All communicators, those with most members first. Who fits nobody is alone."""
    found = endpoints(table)
    _identify(found, table)
    what = operations(table)
    known: defaultdict[Hashable, list[Endpoint]] = defaultdict(list)
    for each in found:
        if each.identity:
            known[each.identity].append(each)
    groups = [(sorted(group, key=lambda each: (each.rank, each.pid)), True) for group in known.values()]
    groups += [(group, False) for group in _fitting([each for each in found if not each.identity], table, what)]
    made = [
        Communicator(
            tuple(group),
            tuple(_calls(each, table, what) for each in group),
            is_known,
            is_known and all(each.made != OPEN for each in group),
        )
        for group, is_known in groups
    ]
    return sorted(made, key=lambda each: (-len(each.members), [member.pid for member in each.members]))


def _identify(found: Sequence[Endpoint], table: CallTable) -> None:
    """Gives endpoints whose memory tells it their identity, rank and size."""
    by_member = {Member(each.pid, each.address): each for each in found if not each.identity}
    for number, group in enumerate(placed(table.memory)):
        for each in group:
            if each.member in by_member:
                endpoint = by_member[each.member]
                endpoint.identity, endpoint.rank, endpoint.size = ("memory", number), each.rank, each.size


def operations(table: CallTable) -> NDArray[np.int64]:
    """One number for each row's combination of operation, count, type and root."""
    import numpy as np

    found = np.zeros((len(table.calls), 4), np.int64)
    arguments = table.calls["arguments"].view(np.int64)
    for number, name in enumerate(table.names):
        of = signature_of(name)
        rows = table.calls["function"] == number
        found[rows, 0] = number
        for column, place in enumerate((of.count, of.type, of.peer) if of else (), 1):
            if of and place >= 0:
                values = arguments[rows, place]
                if place == of.type and of.library == MPI:
                    values = np.where(values >> 32, 0, values)  # it is an address, which differs by process
                found[rows, column] = values if column == 1 else values & _INT
    _, numbers = np.unique(found, axis=0, return_inverse=True)
    return numbers.reshape(-1)


def _calls(each: Endpoint, table: CallTable, what: NDArray[np.int64]) -> Calls:
    import numpy as np

    rows = np.array(each.rows, np.intp)
    began, ended = (table.calls[name][rows].astype(np.int64) for name in ("began", "ended"))
    has_root = [bool(of and of.peer >= 0) for of in map(signature_of, table.names)]
    for_all = ~np.array(has_root, bool)[table.calls["function"][rows]]
    return Calls(Member(each.pid, each.address), began, ended, what[rows], _done(each.pid, rows, table), for_all)


def _done(pid: int, rows: NDArray[np.intp], table: CallTable) -> NDArray[np.int64]:
    """Times by which collectives of a process were done. Those of MPI are when the call returns; NCCL's, when a
    wait returns that began after it, for its stream or for all of the device's."""
    import numpy as np

    known = [signature_of(name) for name in table.names]
    calls = table.calls[rows]
    ended = calls["ended"].astype(np.int64)
    done = np.full(len(rows), OPEN, np.int64)
    waits = [number for number, of in enumerate(known) if of and of.kind == WAITS]
    waiting = table.calls[np.isin(table.calls["function"], waits) & (table.calls["pid"] == pid)]
    begins, ends = waiting["began"], waiting["ended"]
    streams = np.array([-1 if (of := known[number]) is None else of.stream for number in waiting["function"]], np.int64)
    of_stream = np.where(streams == 0, waiting["arguments"][:, 0], 0)
    for number, of in enumerate(known):
        mine = np.flatnonzero(calls["function"] == number)
        if not of or not len(mine):
            continue
        if of.library == MPI:
            done[mine] = ended[mine]
            continue
        for stream in np.unique(calls["arguments"][mine, of.stream]):
            which = mine[(calls["arguments"][mine, of.stream] == stream) & (ended[mine] != OPEN)]
            fit = np.flatnonzero((streams < 0) | (of_stream == stream))
            at = np.searchsorted(begins[fit], ended[which])
            found = at < len(fit)
            done[which[found]] = ends[fit][at[found]]
    return done


def _fitting(found: Sequence[Endpoint], table: CallTable, what: NDArray[np.int64]) -> list[list[Endpoint]]:
    """Puts together what may be one communicator: of different processes, with the same operations in the same order,
    at the same times. If one fits two groups, nothing tells which, and it is alone."""
    groups: list[list[Endpoint]] = []
    alone: list[list[Endpoint]] = []
    for each in found:
        if not each.rows:
            continue
        mine = _calls(each, table, what)
        fits = [
            group
            for group in groups
            if all(member.pid != each.pid for member in group) and fit(_calls(group[0], table, what), mine)
        ]
        if len(fits) == 1:
            fits[0].append(each)
        elif fits:
            alone.append([each])
        else:
            groups.append([each])
    return groups + alone
