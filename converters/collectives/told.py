"""Communicators of a table of calls, as a profile has them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..facts import thresholds
from ..facts.collective_kinds import judged
from ..model.collectives import (
    UNKNOWN,
    CollectiveKind,
    CollectiveRank,
    Collectives,
    Meeting,
    Messages,
    Standing,
)
from .between import Between
from .communicators import Communicator, Endpoint, communicators
from .graphs import without_captured
from .groups import launched
from .meetings import OPEN, Calls, Meetings, lateness, meetings
from .messages import messages
from .operations import Operation, operations_of
from .queued import queued
from .records import CallTable
from .requests import completed
from .signatures import COLLECTIVE, NCCL, POINT_TO_POINT, signature_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..model.origins import ProcessOrigin
    from ..model.scheduling import Scheduling
    from ..model.steps import Spent

    Times = NDArray[np.int64]
    _Spent = tuple[Spent | None, Spent | None, Spent | None]


_NEVER = 1 << 62


class Trace(NamedTuple):
    """Knowledge beside the calls."""

    end: int
    """ns from its beginning to its end."""
    names: Mapping[int, str]
    """Names of processes, by id."""
    scheduling: Scheduling | None = None
    """The scheduler's events, if they were recorded."""
    ended: Collection[int] = ()
    """Processes that have ended, by id."""
    origins: Mapping[int, ProcessOrigin] = MappingProxyType({})
    """Origins of processes, by id, as far as they are known."""


class Told(NamedTuple):
    """Communicators of more than one rank, those with most members first."""

    communicators: list[Collectives]
    left_out: int = 0
    """Communicators of processes that were not compared with others: there were too many."""
    captured: int = 0
    """Collectives and messages that were captured into graphs."""
    launches: int = 0
    """Launches of graphs."""
    alone: int = 0
    """Communicators of which one rank only is known, though there are more, or it is not known how many."""
    alone_calls: int = 0
    """Collectives of these."""
    messages: int = 0
    """Messages that are not joined: the ranks of their communicators are not known."""


def told(table: CallTable, trace: Trace) -> Told:
    """Looks for communicators. With the scheduler's events, what threads do between meetings is told, too."""
    between = Between(trace.scheduling) if trace.scheduling is not None else None
    if table.until is not None:
        trace = trace._replace(end=min(trace.end, table.until))
    captured = without_captured(table)
    table = completed(launched(captured.table))
    found = communicators(table, trace.origins)
    joined = [meetings(each.calls, from_start=each.is_whole, firsts=each.firsts) for each in found]
    behind = queued(table, found, joined)
    pairs = [(each, its) for each, its in zip(found, joined, strict=True) if len(each.members) > 1]
    made = [_told(table, _Joined(each, its, _without(each, its, behind)), trace, between) for each, its in pairs]
    alone = [each.members[0] for each in found if len(each.members) == 1 and each.members[0].size != 1]
    calls = [len(each.rows) for each in alone if each.rows]
    left_out = sum(not each.is_compared for each in found)
    joined_messages = sum(len(rank.messages) for each, _ in pairs if each.messages for rank in each.members)
    messages_left = _messages_of(table) - joined_messages
    return Told(made, left_out, captured.calls, captured.launches, len(calls), sum(calls), messages_left)


def _messages_of(table: CallTable) -> int:
    """Number of the messages of a table."""
    known = [signature_of(name) for name in table.names]
    numbers = [number for number, of in enumerate(known) if of and of.kind == POINT_TO_POINT]
    return int(np.isin(table.calls["function"], numbers).sum())


class _Joined(NamedTuple):
    of: Communicator
    meetings: Meetings
    begun: Meetings
    """Meetings without the arrivals of those that stand in the queue of their stream only, see `queued`."""


def _told(table: CallTable, joined: _Joined, trace: Trace, between: Between | None) -> Collectives:
    of, found, begun = joined
    by_number = operations_of(table, of)
    operations = [by_number[number] for number in found.first().tolist()]
    whole = (found.began != OPEN).all(axis=1)
    spread = found.spread()
    waits = _waits(of, found)
    kinds = tuple(_kinds(operations, found, waits, _begins(of, found)))
    spent = partial(between.of, of_kind=_of_kind(operations, kinds)) if between else None
    return Collectives(
        next((member.library for member in of.members if member.library), ""),
        max(member.size for member in of.members),
        of.is_known,
        int(whole.sum()),
        round(float(np.median(spread[whole]))) if whole.any() else 0,
        round(lateness(found).deviation),
        tuple(_ranks(table, joined, waits, trace, spent)),
        kinds,
        tuple(_worst(operations, spread, found)),
        tuple(_meanwhile(table, of, _standing(by_number, of, begun, trace.end), trace, between)),
        table.lost,
        _messages(table, of, trace, between),
        of.unsure,
    )


def _messages(table: CallTable, of: Communicator, trace: Trace, between: Between | None) -> Messages | None:
    """Messages of the ranks, and what their threads do between them."""
    joined = messages(table, of, trace.end)
    if joined is None:
        return None
    threads = [_thread(table, member.messages) for member in of.members]
    spent = [
        between.calls(thread, (calls, sent)) if between else None
        for thread, calls, sent in zip(threads, of.calls, of.messages, strict=True)
    ]
    return Messages(tuple(joined.pairs), tuple(spent), joined.any_source, joined.unseen)


def _ranks(
    table: CallTable,
    joined: _Joined,
    waits: Times,
    trace: Trace,
    between: Callable[[int, Calls, Meetings, int], _Spent] | None,
) -> Iterator[CollectiveRank]:
    """``between``: see `Between.of`."""
    of, found, _ = joined
    late, waited = lateness(found), waits.sum(axis=0)
    for column, member in enumerate(of.members):
        thread = _thread(table, member.rows or member.messages)
        spent = between(thread, of.calls[column], found, column) if between else (None, None, None)
        yield CollectiveRank(
            member.rank,
            member.pid,
            trace.names.get(member.pid, ""),
            thread,
            len(member.rows),
            int(late.last[column]),
            round(float(late.median[column])),
            int(waited[column]),
            *spent,
        )


def _thread(table: CallTable, rows: Sequence[int]) -> int:
    """The thread that made most of these calls; 0 for none."""
    tids, numbers = np.unique(table.calls["tid"][rows], return_counts=True) if rows else ([0], [0])
    return int(tids[int(np.argmax(numbers))])


def _waits(of: Communicator, found: Meetings) -> Times:
    """ns that each rank waits for the last one, a row for each meeting; 0 in those to which not all came. A wait ends
    with the call, where calls wait themselves, and where the rank comes to the next meeting: it did not wait."""
    whole = (found.began != OPEN).all(axis=1)
    until = np.repeat(found.began.max(axis=1, initial=0)[:, None], len(found.members), axis=1)
    until[:-1] = np.minimum(until[:-1], np.where(found.began[1:] == OPEN, _NEVER, found.began[1:]))
    for column, member in enumerate(of.members):
        if member.library != NCCL:
            ended = found.ended[:, column]
            until[:, column] = np.minimum(until[:, column], np.where(ended == OPEN, _NEVER, ended))
    waits: Times = np.where(whole[:, None], np.maximum(until - _begins(of, found), 0), 0)
    return waits


def _begins(of: Communicator, found: Meetings) -> Times:
    """Times when ranks begin to wait in each meeting, a column for each: when they come, or later, where the call only
    begins the operation and another one waits for it."""
    begins: Times = found.began.copy()
    for column, calls in enumerate(of.calls):
        if calls.waits is not None:
            begin = found.begin(column)
            begins[begin : begin + len(calls.waits), column] = np.where(calls.waits == OPEN, _NEVER, calls.waits)
    return begins


def _caused(found: Meetings, waits: Times) -> Times:
    """ns for which others wait for each rank, as the last one."""
    last, caused = found.last(), waits.sum(axis=1)
    return np.array([int(caused[last == column].sum()) for column in range(len(found.members))], np.int64)


def _alike(waits: Times) -> int:
    """Number of meetings with equal waits among which it is as much left to chance who causes most of them: few, if
    few have most of the time."""
    each = waits.sum(axis=1).astype(np.float64)
    squares = float((each * each).sum())
    return round(float(each.sum()) ** 2 / squares) if squares else 0


def _kinds(operations: Sequence[Operation], found: Meetings, waits: Times, begins: Times) -> Iterator[CollectiveKind]:
    """``begins``: see `_begins`."""
    spread = found.spread()
    rows: dict[Operation, list[int]] = {}
    for row in np.flatnonzero(spread != OPEN).tolist():
        rows.setdefault(operations[row], []).append(row)
    totals = {operation: int(spread[of].sum()) for operation, of in rows.items()}
    for operation in sorted(rows, key=lambda each: (-totals[each], each))[: thresholds.KINDS_KEPT]:
        mine = replace(found, **{name: getattr(found, name)[rows[operation]] for name in _BY_MEETING})
        late, spreads = lateness(mine), mine.spread()
        is_later = bool((begins[rows[operation]] != mine.began).any())  # who waits later does not see when it is done
        yield CollectiveKind(
            *operation,
            late.number,
            round(float(np.median(spreads))),
            int(spreads.max()),
            totals[operation],
            tuple(late.last.tolist()),
            tuple(map(round, late.median.tolist())),
            tuple(waits[rows[operation]].sum(axis=0).tolist()),
            UNKNOWN if is_later else _took(mine),
            tuple(_caused(mine, waits[rows[operation]]).tolist()),
            _alike(waits[rows[operation]]),
        )


def _took(found: Meetings) -> int:
    """ns from the last arrival to the last end, see `CollectiveKind`. A call that waits itself has never ended on a
    rank before all have come."""
    last = found.began.max(axis=1)
    if (found.ended == OPEN).any() or (found.ended < last[:, None]).any():
        return UNKNOWN
    return round(float(np.median(found.ended.max(axis=1) - last)))


_BY_MEETING = ("began", "ended", "what", "differs")
"""Fields of `Meetings` with a row for each."""


def _of_kind(operations: Sequence[Operation], kinds: Sequence[CollectiveKind]) -> NDArray[np.bool_] | None:
    """Whether each meeting is of the operation by which the ranks are judged; None: all of them are."""
    kind = judged(kinds)
    if kind is None or len(kinds) < 2:
        return None
    return np.array([each == (kind.what, kind.bytes) for each in operations], bool)


def _worst(operations: Sequence[Operation], spread: Times, found: Meetings) -> Iterator[Meeting]:
    for row in np.argsort(-spread, kind="stable")[: thresholds.WORST_MEETINGS].tolist():
        if spread[row] != OPEN:
            what, size = operations[row]
            yield Meeting(row + 1, what, size, tuple(found.began[row].tolist()))


def _without(of: Communicator, found: Meetings, behind: Collection[int]) -> Meetings:
    """Meetings without the arrivals of calls with these rows: their ranks are not in them."""
    began = found.began.copy()
    for column, member in enumerate(of.members):
        begin = found.begin(column)
        for place, row in enumerate(member.rows):
            if row in behind:
                began[begin + place, column] = OPEN
    return replace(found, began=began)


def _standing(by_number: Mapping[int, Operation], of: Communicator, found: Meetings, end: int) -> tuple[Standing, ...]:
    """Places of all ranks, if a meeting lacks ranks, or ranks call different operations in it, for much longer than any
    meeting before took."""
    came, fails = found.began != OPEN, found.fails()
    if not fails.any():
        return ()
    row = int(np.flatnonzero(fails)[0])
    firsts = np.where(came, found.began, end).min(axis=1)[: row + 1]
    longest = int(np.diff(firsts).max(initial=0))
    if end - int(firsts[row]) < max(thresholds.STANDS_STILL * longest, thresholds.STANDS_LEAST * 1e9):
        return ()
    if found.began[row + 1 :].size and came[row + 1 :].all(axis=1).any():
        return ()  # they went on
    standing = tuple(_stands(by_number, of, found, column, row) for column in range(len(found.members)))
    return standing if any(each.what for each in standing) else ()


def _stands(by_number: Mapping[int, Operation], of: Communicator, found: Meetings, column: int, row: int) -> Standing:
    """Place of one rank. ``row``: the meeting that fails. Who has called it is in it, unless the call waits itself and
    has ended: then the rank is in the last one that it called, or in none."""
    pid = found.members[column].pid
    came = np.flatnonzero(found.began[:, column] != OPEN)
    is_here = found.began[row, column] != OPEN
    if not is_here:
        came = came[came < row]
    if not len(came):
        return Standing(pid, 0, "", 0, 0)
    last = row if is_here and of.members[column].library == NCCL else int(came[-1])
    if found.ended[last, column] == OPEN or (last == row and of.members[column].library == NCCL):
        what, size = by_number[int(found.what[last, column])]
        return Standing(pid, last + 1, what, size, int(found.began[last, column]))
    return Standing(pid, last + 1, "", 0, int(found.ended[last, column]))


def _meanwhile(
    table: CallTable, of: Communicator, standing: Sequence[Standing], trace: Trace, between: Between | None
) -> Iterator[Standing]:
    """Adds what those do who have not come."""
    for column, each in enumerate(standing):
        calls = of.calls[column]
        elsewhere = "" if each.what else _elsewhere(table, of.members[column])
        if each.what or not each.number:
            yield replace(each, has_ended=each.pid in trace.ended, elsewhere=elsewhere)
            continue
        known = calls.done[calls.done != OPEN]
        since = max(each.since, int(known[-1])) if len(known) else each.since
        thread = _thread(table, of.members[column].rows)
        spent = between.since(thread, since, trace.end) if between and since < trace.end else None
        stopped = between.stopped(thread, since, trace.end) if between and spent else 0
        told_ = replace(each, since=since, has_ended=each.pid in trace.ended, meanwhile=spent, stopped=stopped)
        yield replace(told_, elsewhere=elsewhere)


def _elsewhere(table: CallTable, member: Endpoint) -> str:
    """The call in which the rank's thread, or one of a process whose thread is not known, is when the trace ends."""
    tid = _thread(table, member.rows)
    mine = table.calls["tid"] == tid if tid else table.calls["pid"] == member.pid
    for call in table.calls[mine & (table.calls["ended"] == OPEN)]:
        of = signature_of(table.names[call["function"]])
        if of and of.kind == POINT_TO_POINT:
            return of.name
        if of and of.kind == COLLECTIVE:
            return f"{of.name} of another communicator"
    return ""
