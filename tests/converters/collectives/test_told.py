"""Communicators in profiles."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from collective_calls import (
    ALL_GATHER_V,
    BARRIER,
    BROADCAST,
    COMM,
    INIT,
    MPI,
    MPI_BROADCAST,
    MS,
    REDUCE,
    SEND,
    STREAM,
    SYNC,
    Table,
    told,
)
from scheduling_traces import rows
from stallscope.converters.collectives.told import Trace
from stallscope.converters.collectives.told import told as told_of
from stallscope.converters.facts import thresholds
from stallscope.converters.model.collectives import UNKNOWN, CollectiveKind, Standing
from stallscope.converters.model.origins import ProcessOrigin
from stallscope.converters.model.scheduling import BLOCKED, OPEN, SWITCH, THREAD, Scheduling
from stallscope.converters.pprof.collectives import decoded
from step_traces import BATCH

NAMES = {10: "python", 11: "python\x1b[2J"}


def ranks(*late: int, of: int = 8) -> Table:
    table = Table()
    for number, each in enumerate(late):
        table.steps(10 + number, each, of=of)
    return table


def test_who_comes_late_and_how_long_others_wait() -> None:
    (found,) = told(ranks(0, 4 * MS, MS).made(lost=3), Trace(80 * MS, NAMES))
    assert (found.library, found.size, found.is_known, found.meetings, found.lost) == ("NCCL", UNKNOWN, False, 8, 3)
    assert (found.spread, found.deviation) == (4 * MS, MS)
    assert [(each.rank, each.pid, each.process, each.tid) for each in found.ranks] == [
        (UNKNOWN, 10, "python", 10),
        (UNKNOWN, 11, "python\x1b[2J", 11),
        (UNKNOWN, 12, "", 12),
    ]
    assert [(each.calls, each.last, each.late, each.waited) for each in found.ranks] == [
        (8, 0, -MS, 32 * MS),
        (8, 8, 3 * MS, 0),
        (8, 0, 0, 24 * MS),
    ]
    assert [(each.between, each.between_late) for each in found.ranks] == [(None, None)] * 3
    by_rank = (0, 8, 0), (-MS, 3 * MS, 0), (32 * MS, 0, 24 * MS)
    assert found.kinds == (
        CollectiveKind("all-reduce", 4096, 8, 4 * MS, 4 * MS, 32 * MS, *by_rank, UNKNOWN, (0, 56 * MS, 0), 8),
    )
    assert [(each.number, each.bytes) for each in found.worst] == [(number, 4096) for number in range(1, 9)]
    assert found.worst[0].arrivals == (0, 4 * MS, MS)
    assert found.standing == ()


@pytest.mark.parametrize(("ended", "took"), [(9 * MS, 5 * MS), (4 * MS, 0), (4 * MS - 1, UNKNOWN), (-1, UNKNOWN)])
def test_how_long_calls_take_that_wait_for_all(ended: int, took: int) -> None:
    """Rank 1 comes 4 ms late; rank 0 returns then, or before it has come."""
    table = Table()
    for pid, late in ((10, 0), (11, 4 * MS)):
        table.init(pid, pid - 10)
        for step in range(1, 8):
            at = step * 10 * MS
            end = at + (ended if pid == 10 else 4 * MS) if ended >= 0 or step < 7 else -1
            table.add(pid, at + late, REDUCE, 1, 2, 1024, 7, 0, COMM, STREAM, ended=end)
    (kind,) = told(table.made(), Trace(80 * MS, {}))[0].kinds
    assert kind.took == took
    assert kind.bandwidth == (4096 * 200 if took > 0 else UNKNOWN)


def of_two(*calls: tuple[int, int, int], function: int = REDUCE) -> Table:
    """Ranks 0 and 1, and calls: their rank, begin and end in ms; -1: it goes on."""
    table = Table()
    for pid, rank in ((10, 0), (11, 1)):
        table.init(pid, rank)
    for rank, began, ended in calls:
        end = ended * MS if ended >= 0 else -1
        table.add(10 + rank, began * MS, function, 1, 2, 1024, 7, 0, COMM, STREAM, ended=end)
    return table


def test_a_rank_that_goes_on_does_not_wait() -> None:
    """Rank 0 puts three in a row and goes on; rank 1 comes 8 ms later."""
    calls = [(0, at, at) for at in (10, 11, 12)] + [(1, at, at) for at in (20, 21, 22)]
    (found,) = told(of_two(*calls).made(), Trace(40 * MS, {}))
    assert [each.waited for each in found.ranks] == [12 * MS, 0]  # 1, 1, and 10 until the last one
    assert found.kinds[0].caused == (0, 12 * MS)


def mpi(*calls: tuple[int, int, int, int]) -> Table:
    """Two ranks of MPI that meet six times in all-reduces; then these calls: rank, function, begin and end in ms."""
    table = Table()
    for rank in (0, 1):
        for step in range(6):
            table.add(10 + rank, (10 * step + rank) * MS, MPI, 1, 2, 7, 3, 0, COMM, ended=(10 * step + 2) * MS)
    for rank, function, began, ended in calls:
        arguments = (1, 7, 3, 0, COMM) if function == MPI_BROADCAST else (1, 2, 7, 3, 0, COMM)
        end = ended * MS if ended >= 0 else -1
        table.add(10 + rank, began * MS, function, *arguments, ended=end)
    return table


def stand(*calls: tuple[int, int, int, int]) -> list[tuple[int, str]]:
    """Numbers and operations of both ranks, if they stand still."""
    (found,) = told(mpi(*calls).made(), Trace(9_000 * MS, {}))
    return [(each.number, each.what) for each in found.standing]


def test_a_call_that_waits_itself_does_not_wait_after_its_end() -> None:
    """A root that has sent what the other one asks for later."""
    calls = [(rank, MPI_BROADCAST, 60 + 9 * rank, 61 + 9 * rank) for rank in (0, 1)]
    (found,) = told(mpi(*calls).made(), Trace(80 * MS, {}))
    assert [each.waited for each in found.ranks] == [6 * MS + MS, 0]


def test_ranks_that_have_left_a_collective_are_not_in_it() -> None:
    assert stand((0, MPI, 60, -1)) == [(7, "all-reduce"), (6, "")]
    # Rank 0 has gone on to the next one.
    assert stand((0, MPI, 60, 61), (0, MPI, 62, -1), (1, MPI_BROADCAST, 60, -1)) == [
        (8, "all-reduce"),
        (7, "broadcast"),
    ]
    # It came out, as an exception or a timeout does, and nobody is in any.
    assert stand((0, MPI, 60, 61)) == []


@pytest.mark.parametrize(
    ("function", "comm", "told_as"),
    [(SEND, 0x77, "ncclSend"), (MPI, 0x99, "MPI_Allreduce of another communicator"), (SYNC, 0, "")],
)
def test_where_ranks_are_that_have_not_come(function: int, comm: int, told_as: str) -> None:
    table = mpi((0, MPI, 60, -1))
    table.add(11, 61 * MS, function, 1, 2, 7, 3, 0, comm, ended=-1)
    (found,) = told(table.made(), Trace(9_000 * MS, {}))
    assert [each.elsewhere for each in found.standing] == ["", told_as]


def test_ranks_of_which_one_only_is_known_are_counted() -> None:
    told_ = told_of(ranks(0).made(), Trace(80 * MS, {}))
    assert (told_.alone, told_.alone_calls) == (1, 8)
    table = Table()
    table.add(10, 0, INIT, 1, 1, 0, 0, 0, 0, 7, 9, made=COMM)
    table.reduce(10, MS)
    assert told_of(table.made(), Trace(MS, {})).alone == 0, "there is only one"


def test_ranks_are_those_of_the_call_that_made_the_communicator() -> None:
    table = Table()
    for pid, rank in ((10, 1), (11, 0)):
        table.init(pid, rank, size=16)
        table.reduce(pid, 5 * MS)
    (found,) = told(table.made(), Trace(6 * MS, {}))
    assert (found.is_known, found.size) == (True, 16)
    assert [(each.rank, each.pid) for each in found.ranks] == [(0, 11), (1, 10)]


def test_one_rank_alone_meets_nobody() -> None:
    assert told(ranks(0).made(), Trace(80 * MS, {})) == []
    table = Table()
    table.add(10, 0, INIT, 1, 1, 0, 0, 0, 0, 7, 9, made=COMM)
    assert told(table.made(), Trace(MS, {})) == []


def test_kinds_of_most_time_first() -> None:
    table = ranks(0, MS)
    for number, pid in enumerate((10, 11)):
        table.add(pid, 81 * MS + 4 * number * MS, BROADCAST, 1, 2, 512, 9, 0, COMM, STREAM)
    (found,) = told(table.made(), Trace(90 * MS, {}))
    assert [(each.what, each.bytes, each.meetings, each.total) for each in found.kinds] == [
        ("all-reduce", 4096, 8, 8 * MS),
        ("broadcast", 1024, 1, 4 * MS),
    ]
    assert found.worst[0].what == "broadcast"
    assert [(each.last, each.lateness, each.waited) for each in found.kinds] == [
        ((0, 8), (-MS // 2, MS // 2), (8 * MS, 0)),
        ((0, 1), (-2 * MS, 2 * MS), (4 * MS, 0)),
    ]


def test_times_before_the_operation_that_is_judged() -> None:
    """Rank 1 is blocked for 4 ms before each all-reduce, and not before the broadcast that follows."""
    table, end = Table(), 200 * MS
    for pid, late in ((10, 0), (11, 4 * MS)):
        for step in range(12):
            at = step * 10 * MS
            table.reduce(pid, at + late)
            table.add(pid, at + late + 2000, SYNC, STREAM, ended=at + 5 * MS)
            table.add(pid, at + 6 * MS, BROADCAST, 1, 2, 512, 9, 0, COMM, STREAM)
            table.add(pid, at + 6 * MS + 2000, SYNC, STREAM, ended=at + 9 * MS)
    scheduling = Scheduling(end, 0, threads=rows(THREAD, tid=[10, 11], tgid=[10, 11]), names=["train"], stacks=[BATCH])
    (found,) = told(table.made(), Trace(end, {}, scheduling))
    assert [(kind.what, kind.meetings) for kind in found.kinds] == [("all-reduce", 12), ("broadcast", 12)]
    for each, count, mean in zip(found.ranks, (0, 11), (MS, 5 * MS), strict=True):
        assert each.between and each.before and each.between_late
        assert (each.between.count, each.before.count, each.between_late.count) == (23, 11, count)
        assert each.before.mean == mean
    assert all(each.before is None for each in told(ranks(0, MS).made(), Trace(80 * MS, {}, scheduling))[0].ranks)


@pytest.mark.parametrize(
    ("count", "size"), [((1 << 61) - 1, (1 << 63) - 4), (1 << 61, UNKNOWN), ((1 << 64) - 1, UNKNOWN)]
)
def test_a_count_beyond_all_memory_has_no_size(count: int, size: int) -> None:
    """A capture has numbers of 63 bits."""
    table = Table()
    for pid in (10, 11):
        table.steps(pid, MS, count=count)
    (found,) = told(table.made(), Trace(80 * MS, {}))
    assert [each.bytes for each in found.kinds] == [size]
    assert [each.bytes for each in decoded(asdict(found)).kinds] == [size]


def test_operations_of_least_time_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "KINDS_KEPT", 2)
    table = Table()
    for pid in (10, 11):
        for number in range(4):
            table.reduce(pid, number * 10 * MS + (pid - 10) * (number + 1) * MS, count=number + 1)
    (found,) = told(table.made(), Trace(80 * MS, {}))
    assert [(each.bytes, each.total) for each in found.kinds] == [(16, 4 * MS), (12, 3 * MS)]


def test_communicators_that_were_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_of(ranks(0, MS).made(), Trace(80 * MS, {})).left_out == 0
    monkeypatch.setattr(thresholds, "PAIRS_FIT", 0)
    assert told_of(ranks(0, MS).made(), Trace(80 * MS, {})) == ([], 1, 0, 0, 2, 16, 0)


def test_ranks_of_different_jobs_do_not_meet() -> None:
    origins = {pid: ProcessOrigin(pid, "train", variables={"PMIX_NAMESPACE": str(pid)}) for pid in (10, 11)}
    assert told(ranks(0, MS).made(), Trace(80 * MS, {}, origins=origins)) == []
    origins[11].variables = origins[10].variables
    assert len(told(ranks(0, MS).made(), Trace(80 * MS, {}, origins=origins))) == 1


def test_operations_with_sizes_that_differ_by_rank() -> None:
    table = Table()
    for pid in (10, 11):
        for step in range(6):
            table.add(pid, step * 10 * MS, ALL_GATHER_V, 1, 4, 8, 2, 3, 4, 8, COMM, ended=step * 10 * MS + 5 * MS)
            table.add(pid, step * 10 * MS + 6 * MS, BARRIER, COMM, ended=step * 10 * MS + 9 * MS)
    (found,) = told(table.made(), Trace(60 * MS, {}))
    assert {each.what: each.bytes for each in found.kinds} == {"all-gather": UNKNOWN, "barrier": 0}


def test_the_size_of_types_of_mpi_is_not_known() -> None:
    table = Table()
    for pid in (10, 11):
        for step in range(4):
            table.add(pid, step * MS, MPI, 1, 2, 8, 3, 0, COMM, ended=step * MS + MS // 2)
    (found,) = told(table.made(), Trace(5 * MS, {}))
    assert (found.library, found.kinds[0].bytes) == ("MPI", UNKNOWN)


def standing(missing: int, end: int) -> tuple[Standing, ...]:
    """The second rank makes fewer calls."""
    table = ranks(0)
    table.steps(11, MS, of=8 - missing)
    (found,) = told(table.made(), Trace(end, {}))
    return found.standing


def test_a_rank_that_does_not_come() -> None:
    assert standing(1, 2_000 * MS) == (
        Standing(10, 8, "all-reduce", 4096, 70 * MS),
        Standing(11, 7, "", 0, 69 * MS),  # when its last one was done
    )
    assert standing(0, 2_000 * MS) == ()


def test_what_a_rank_does_that_does_not_come() -> None:
    """A wait for its next batch, from 100 ms on."""
    table, end = ranks(0), 2_000 * MS
    table.steps(11, MS, of=7)
    scheduling = Scheduling(
        end,
        0,
        switches=rows(SWITCH, time=[MS, 100 * MS], prev_tid=[0, 11], next_tid=[11, 0]),
        threads=rows(THREAD, tid=[10, 11], tgid=[10, 11]),
        blocked=rows(BLOCKED, begin=[100 * MS], end=[OPEN], tid=[11], stack=[0], state=[1]),
        names=["train"],
        stacks=[BATCH],
    )
    (found,) = told(table.made(), Trace(end, {}, scheduling, ended={10}))
    assert [each.has_ended for each in found.standing] == [True, False]
    spent = found.standing[1].meanwhile
    assert spent and found.standing[0].meanwhile is None
    assert (spent.count, spent.wall, spent.blocked, spent.on_cpu) == (1, 1931 * MS, 1900 * MS, 31 * MS)
    assert [(wait.site.frames, wait.time) for wait in spent.waits] == [(("main", "next_batch", "read"), 1900 * MS)]


def test_a_rank_that_is_stopped() -> None:
    """Stops for 1.5 s from 100 ms on, and for 0.3 s to the end; asleep for 50 ms meanwhile."""
    table, end = ranks(0), 2_000 * MS
    table.steps(11, MS, of=7)
    begins, ends = [10 * MS, 100 * MS, 1_650 * MS, 1_700 * MS], [20 * MS, 1_600 * MS, 1_700 * MS, OPEN]
    scheduling = Scheduling(
        end,
        0,
        threads=rows(THREAD, tid=[10, 11], tgid=[10, 11]),
        blocked=rows(BLOCKED, begin=begins, end=ends, tid=[11] * 4, stack=[0] * 4, state=[4, 4, 1, 8]),
        names=["train"],
        stacks=[BATCH],
    )
    (found,) = told(table.made(), Trace(end, {}, scheduling))
    assert [each.stopped for each in found.standing] == [0, 1_800 * MS]


def test_a_rank_that_is_not_seen_any_more_may_have_come() -> None:
    table = ranks(0)
    table.steps(11, MS, of=7)
    made = table.made()
    (found,) = told(replace(made, until=75 * MS), Trace(2_000 * MS, {}))
    assert found.standing == ()
    (found,) = told(replace(made, until=1_000 * MS), Trace(2_000 * MS, {}))
    assert found.standing


@pytest.mark.parametrize(("end", "stands"), [(569, False), (571, True)])
def test_a_rank_may_be_late_for_a_while(end: int, stands: bool) -> None:
    """The first one has been there since 70 ms."""
    assert bool(standing(1, end * MS)) == stands


@pytest.mark.parametrize(("end", "stands"), [(2_999, False), (3_001, True)])
def test_a_rank_may_be_late_for_as_long_as_steps_take(end: int, stands: bool) -> None:
    """The longest step takes 400 ms; the first one has been there since 1 s."""
    table = Table()
    for pid, starts in ((10, [0, 200, 600, 800, 1000]), (11, [0, 200, 600, 800])):
        for start in starts:
            table.reduce(pid, start * MS)
            table.add(pid, start * MS + MS, SYNC, STREAM, ended=(start + 100) * MS)
    (found,) = told(table.made(), Trace(end * MS, {}))
    assert bool(found.standing) == stands


def test_ranks_that_call_different_operations() -> None:
    table = ranks(0, MS)
    table.reduce(10, 81 * MS)
    table.reduce(11, 82 * MS, count=512)
    (found,) = told(table.made(), Trace(2_000 * MS, {}))
    assert [(each.number, each.what, each.bytes) for each in found.standing] == [
        (9, "all-reduce", 4096),
        (9, "all-reduce", 2048),
    ]


def test_ranks_that_went_on_do_not_stand() -> None:
    """The first call of one was before the trace."""
    table = Table()
    table.steps(10, 0)
    table.steps(11, MS)
    table.rows = [row for row in table.rows if row[2] == 10 or row[0] > 10 * MS]
    (found,) = told(table.made(), Trace(75 * MS, {}))
    assert (found.meetings, found.standing) == (7, ())
