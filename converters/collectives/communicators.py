"""Communicators: which of the processes' addresses are the same one.

A communicator is known by the call that made it: NCCL's ranks all give the same unique id, of which the probes keep the
first two words; a split has its parent, its place in the parent's order and its color. Those that were there before the
trace are known by their processes' addresses only. Of those of Gloo, the rank and the number of ranks may be known, see
`numbered`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..facts import thresholds
from . import mpi_memory
from .apart import Jobs
from .counters import Rank, firsts
from .evidence import placed
from .fitting import Known, fitting
from .meetings import Calls, Member, aligned
from .numbered import Number, one_each, ranks
from .records import NO_WAIT, OPEN, CallTable
from .signatures import COLLECTIVE, ENDS, GLOO, IN_PLACE, MAKES, MPI, POINT_TO_POINT, WAITS, Signature, signature_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..model.origins import ProcessOrigin
    from .records import Array

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
    messages: list[int] = field(default_factory=list)
    """Rows of its messages."""
    splits: int = 0
    """Number of communicators that were made of it."""
    ended: bool = False
    library: str = ""
    number: int = 0
    """See `Member.number`."""
    name: str = ""
    """See `fitting.Known`."""

    @property
    def member(self) -> Member:
        return Member(self.pid, self.address, self.number)


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
    before: Counter[int] = Counter()
    found: list[Endpoint] = []

    def at(address: int) -> Endpoint:
        if address not in current:
            current[address] = Endpoint(pid, address, OPEN, number=before[address])
            found.append(current[address])
        return current[address]

    functions, ended, made = (calls[name].tolist() for name in ("function", "ended", "made"))
    for row in rows:
        is_of = known[functions[row]]
        if not is_of:
            continue
        arguments = calls["arguments"][row].tolist()
        if is_of.kind == MAKES:
            before[made[row]] += 1
            if (new := _made(is_of, arguments, at)) and made[row]:
                number = before[made[row]]
                current[made[row]] = replace(new, pid=pid, address=made[row], made=ended[row], number=number)
                found.append(current[made[row]])
        elif is_of.kind in (COLLECTIVE, POINT_TO_POINT):
            if at(arguments[is_of.comm]).ended:
                del current[arguments[is_of.comm]]  # another one, made by a call that is not known
            used = at(arguments[is_of.comm])
            (used.rows if is_of.kind == COLLECTIVE else used.messages).append(row)
            used.library = is_of.library
        elif is_of.kind == ENDS:
            at(arguments[is_of.comm]).ended = True
            before[arguments[is_of.comm]] += 1
    return found


def _made(of: Signature, arguments: Sequence[int], at: Callable[[int], Endpoint]) -> Endpoint | None:
    """Endpoint that the call makes, without its process and address; None if this rank is to have none."""
    if of.size >= 0:
        identity = ("id", *arguments[of.id : of.id + 2]) if of.id >= 0 else None
        rank, size = (_below_most(arguments[place]) for place in (of.rank, of.size))
        return Endpoint(0, 0, OPEN, rank, size, identity)
    parent = at(arguments[of.comm])
    parent.splits += 1
    color = arguments[of.color] & _INT if of.color >= 0 else 0
    if color == _NO_COLOR:
        return None
    split = ("split", parent.identity, parent.splits, color)
    return Endpoint(0, 0, OPEN, identity=split if parent.identity else None)


def _below_most(number: int) -> int:
    """An int that tells a rank or a number of ranks; -1 if it cannot be one."""
    return found if (found := number & _INT) <= thresholds.MOST_RANKS else -1


@dataclass(frozen=True)
class Communicator:
    """Ranks that meet. ``calls`` has the collectives of each member."""

    members: tuple[Endpoint, ...]
    calls: tuple[Calls, ...]
    is_known: bool
    """Whether its ranks are known, by the calls that made it or by its memory. Else its members are those whose calls
    fit: see `fitting`."""
    is_whole: bool = False
    """Whether the trace has seen how it was made, and so all of its calls."""
    firsts: tuple[int, ...] | None = None
    """Number of calls that each member begins after the one with most calls, by the counters in its memory; None: not
    known."""
    messages: tuple[Calls, ...] = ()
    """Messages of each member, if the ranks of all of them are known; else ()."""
    unsure: int = 0
    """See `Collectives.unsure`."""
    is_compared: bool = True
    """Whether it was compared with others whose ranks are not known; False: there were too many."""


def communicators(table: CallTable, origins: Mapping[int, ProcessOrigin] = MappingProxyType({})) -> list[Communicator]:
    """All communicators, those with most members first. Who fits nobody is alone. ``origins``: by pid."""
    found = endpoints(table)
    _identify(found, table)
    are_apart = Jobs({each.pid for each in found}, origins).are_apart
    _number(found, table, are_apart)
    _name(found, table, are_apart)
    calls_of = _CallsOf(table)
    known: defaultdict[Hashable, list[Endpoint]] = defaultdict(list)
    for each in found:
        if each.identity:
            known[each.identity].append(each)
    groups = [sorted(group, key=lambda each: (each.rank, each.pid)) for group in known.values()]
    made = [_known(group, calls_of, table) for group in groups]
    apart = {each.members[0].identity for each in made if not each.is_whole and not aligned(each.calls, each.firsts)}
    made = [_for_messages(each) if each.members[0].identity in apart else each for each in made]
    made = [each for each in made if each.messages or each.members[0].identity not in apart]
    left = [each for each in found if each.rows and (not each.identity or each.identity in apart)]
    made += _fitting([replace(each, messages=[]) for each in left], calls_of, origins)
    return sorted(made, key=lambda each: (-len(each.members), [member.pid for member in each.members]))


def _known(group: Sequence[Endpoint], calls_of: _CallsOf, table: CallTable) -> Communicator:
    """A communicator of endpoints that are known to be one."""
    have_ranks = len({each.rank for each in group if each.rank >= 0}) == len(group)
    messages = [replace(each, rows=each.messages) for each in group] if have_ranks else []
    calls = tuple(map(calls_of, group))
    is_whole = all(each.made != OPEN for each in group)
    return Communicator(
        tuple(group),
        calls,
        is_known=True,
        is_whole=is_whole,
        firsts=None if is_whole else _firsts(group, calls, table),
        messages=tuple(map(calls_of, messages)) if any(each.rows for each in messages) else (),
    )


def _firsts(group: Sequence[Endpoint], calls: Sequence[Calls], table: CallTable) -> tuple[int, ...] | None:
    counts = [table.counts.get(each.member, ()) for each in group]
    if not all(counts):
        return None
    functions = [table.calls["function"][each.rows] for each in group]
    return firsts([Rank(*each) for each in zip(calls, functions, counts, strict=True)])


def _for_messages(of: Communicator) -> Communicator:
    """The communicator without collectives: nothing tells which of its ranks' calls are the same meetings."""
    members = tuple(replace(each, rows=[]) for each in of.members)
    return replace(of, members=members, calls=tuple(each.without() for each in of.calls))


def _fitting(
    found: Sequence[Endpoint], calls_of: _CallsOf, origins: Mapping[int, ProcessOrigin]
) -> Iterator[Communicator]:
    """Communicators of endpoints of which nothing but the calls is known."""
    calls = list(map(calls_of, found))
    numbers = [_number_of(each) for each in found]
    groups, left_out, unsure = fitting(calls, Jobs({each.pid for each in found}, origins).are_apart, numbers)
    for group in groups:
        members = tuple(found[place] for place in group)
        of = tuple(calls[place] for place in group)
        yield Communicator(
            members, of, is_known=False, is_compared=left_out.isdisjoint(group), unsure=unsure.get(group[0], 0)
        )


def _identify(found: Sequence[Endpoint], table: CallTable) -> None:
    """Gives endpoints whose memory tells it their identity, rank and size."""
    by_member = {each.member: each for each in found if not each.identity}
    memory = {member: words for member, words in table.memory.items() if member in by_member}
    for number, group in enumerate(placed(memory)):
        for each in group:
            endpoint = by_member[each.member]
            endpoint.identity, endpoint.rank, endpoint.size = ("memory", number), each.rank, each.size


def _number(found: Sequence[Endpoint], table: CallTable, are_apart: Callable[[int, int], bool]) -> None:
    """Gives Gloo's endpoints their ranks, by the call that made them or by their memory, and those that cannot be of
    several communicators their identity."""
    mine = {each.member: each for each in found if each.library == GLOO}
    read = ranks({member: numbers for member, numbers in table.numbers.items() if member in mine})
    for member, number in read.items():
        if mine[member].size < 0:
            mine[member].rank, mine[member].size = number
    known = [(member, Number(each.rank, each.size)) for member, each in mine.items() if each.size > 0]
    for group in one_each(known, are_apart):
        for member, number in group:
            mine[member].identity = ("ranks", number.size)


def _name(found: Sequence[Endpoint], table: CallTable, are_apart: Callable[[int, int], bool]) -> None:
    """Gives MPI's endpoints their names and ranks, and those of a job's own communicator their identity."""
    mine = {each.member: each for each in found if each.library == MPI and each.member in table.named}
    read = {member: table.named[member] for member in mine}
    numbers = mpi_memory.ranks(read, are_apart)
    for member, rank in numbers.items():
        mine[member].rank, mine[member].name = rank, read[member].name
    worlds = [member for member in numbers if read[member].name == mpi_memory.WORLD]
    for first, group in mpi_memory.jobs(worlds, are_apart).items():
        for member in group:
            mine[member].identity = ("world", first)


def _number_of(each: Endpoint) -> Known | None:
    """Knowledge of an endpoint, for `fitting`."""
    is_known = each.rank >= 0 and (each.name or (each.size > 0 and each.library == GLOO))
    return Known(each.rank, each.size, each.name) if is_known else None


def operations(table: CallTable) -> NDArray[np.int64]:
    """One number for each row's combination of operation, count, type and root; of a row that stands for a group, for
    the combinations of all of its calls."""
    import numpy as np

    groups = list(table.grouped.items())
    calls = np.concatenate([table.calls, *(each for _, each in groups)])
    _, of_calls = np.unique(_features(calls, table.names, table.types), axis=0, return_inverse=True)
    of_calls = of_calls.reshape(-1)
    numbers: NDArray[np.int64] = of_calls[: len(table.calls)].astype(np.int64)
    known: dict[tuple[int, ...], int] = {}
    begin, many = len(table.calls), len(calls)
    for row, each in groups:
        key = tuple(of_calls[begin : begin + len(each)].tolist())
        numbers[row] = many + known.setdefault(key, len(known))
        begin += len(each)
    return numbers


def _features(calls: Array, names: Sequence[str], types: Mapping[tuple[int, int], int]) -> NDArray[np.int64]:
    """Numbers that tell operations apart, a row for each call."""
    import numpy as np

    found = np.zeros((len(calls), 4), np.int64)
    arguments = calls["arguments"].view(np.int64)
    for number, name in enumerate(names):
        of = signature_of(name)
        rows = calls["function"] == number
        found[rows, 0] = number
        for column, place in enumerate((of.count, of.type, of.peer) if of else (), 1):
            if of and place >= 0:
                values = arguments[rows, place]
                if of.own >= 0 and column < 3:
                    at_root = np.isin(arguments[rows, of.own], IN_PLACE)
                    values = np.where(at_root, arguments[rows, (of.root_count, of.root_type)[column - 1]], values)
                if place == of.type and of.library == MPI:
                    values = _sizes(calls["pid"][rows], values, types)
                if column == 1:
                    found[rows, column] = values.astype(np.int32) if of.has_int_count else values
                else:
                    found[rows, column] = values & _INT
    return found


def _sizes(
    pids: NDArray[np.int32], handles: NDArray[np.int64], types: Mapping[tuple[int, int], int]
) -> NDArray[np.int64]:
    """Handles of types; instead of addresses, which differ by process, the bytes of an element, 0 if not known."""
    import numpy as np

    if not (handles >> 32).any():
        return handles
    pairs, of = np.unique(np.stack([pids.astype(np.int64), handles]), axis=1, return_inverse=True)
    told = [types.get((pid, handle), 0) if handle >> 32 else handle for pid, handle in pairs.T.tolist()]
    return np.array(told, np.int64)[of.reshape(-1)]


class _CallsOf:
    """Calls of endpoints."""

    def __init__(self, table: CallTable) -> None:
        import numpy as np

        self._calls, self._what = table.calls, operations(table)
        self._known = [signature_of(name) for name in table.names]
        self._has_root = np.array([bool(of and of.has_root) for of in self._known], bool)
        waits = [number for number, of in enumerate(self._known) if of and of.kind == WAITS]
        self._waits = np.flatnonzero(np.isin(table.calls["function"], waits))
        self._waits = self._waits[np.argsort(table.calls["pid"][self._waits], kind="stable")]
        self._pids = table.calls["pid"][self._waits]

    def __call__(self, each: Endpoint) -> Calls:
        import numpy as np

        rows = np.array(each.rows, np.intp)
        began, ended = (self._calls[name][rows].astype(np.int64) for name in ("began", "ended"))
        for_all = ~self._has_root[self._calls["function"][rows]]
        told = self._calls["waits"][rows].astype(np.int64)
        waits = np.where(told == 0, began, told) if told.any() else None
        done = np.where(told == NO_WAIT, OPEN, self._done(each, rows))
        return Calls(each.member, began, ended, self._what[rows], done, for_all, waits)

    def _done(self, each: Endpoint, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Times by which collectives of a process were done. Those of MPI are when the call returns, and
        the end of a call of Gloo is that already; NCCL's, when a wait returns that began after it, for its stream or
        for all of the device's."""
        import numpy as np

        calls = self._calls[rows]
        ended = calls["ended"].astype(np.int64)
        done = np.full(len(rows), OPEN, np.int64)
        begin, end = np.searchsorted(self._pids, [each.pid, each.pid + 1])
        waiting = self._calls[self._waits[begin:end]]
        begins, ends = waiting["began"], waiting["ended"]
        streams = [-1 if (of := self._known[number]) is None else of.stream for number in waiting["function"]]
        place = np.array(streams, np.int64)
        of_stream = np.where(place == 0, waiting["arguments"][:, 0], 0)
        for number in np.unique(calls["function"]).tolist():
            mine = np.flatnonzero(calls["function"] == number)
            of = self._known[number]
            if not of:
                continue
            if of.library in (MPI, GLOO):
                done[mine] = ended[mine]
                continue
            for stream in np.unique(calls["arguments"][mine, of.stream]):
                which = mine[(calls["arguments"][mine, of.stream] == stream) & (ended[mine] != OPEN)]
                fit = np.flatnonzero((place < 0) | (of_stream == stream))
                at = np.searchsorted(begins[fit], ended[which])
                found = at < len(fit)
                done[which[found]] = ends[fit][at[found]]
        return done
