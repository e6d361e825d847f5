"""Gloo's calls, joined of the entries of several functions. With real ones: tests/live/test_gloo_collectives.py."""

from __future__ import annotations

import numpy as np
from stallscope.converters.collectives.records import OPEN
from stallscope.tracers.engines.ebpf.measures.argument_records import RECORD, table
from stallscope.tracers.engines.ebpf.measures.gloo_calls import joined

NAMES = (
    *("allreduce", "_allgather_base", "allgather", "enqueue", "AsyncWork::finishWorkGloo"),
    *("AsyncWork::finishWorkGlooError", "ProcessGroupGloo"),
)
REDUCE, BASE, GATHER, ENQUEUE, DONE, FAILED, MAKES, NCCL = range(len(NAMES) + 1)
GROUP, OTHER, WORK = 0x5000, 0x6000, 0x7000
PID, MAIN, WORKER = 10, 10, 11
HIGH, LOW, LOWEST = 3000, 2000, 1000
"""Places of return addresses on the stack: inner ones are lower."""


def named(number: int) -> str:
    return f"c10d::ProcessGroupGloo::{NAMES[number]}" if number < NCCL else "ncclAllReduce"


class Seen:
    """Entries of functions, one after the other, 10 ns apart."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int, int, tuple[int, ...]]] = []

    def call(self, function: int, place: int = HIGH, *, group: int = GROUP, tid: int = MAIN) -> Seen:
        return self.add(function, (1, group), place=place, tid=tid)

    def enqueue(self, work: int = WORK, place: int = LOWEST, *, group: int = GROUP, tid: int = MAIN) -> Seen:
        return self.add(ENQUEUE, (group, 99), place=place, made=work, tid=tid)

    def done(self, work: int = WORK, *, function: int = DONE, pid: int = PID) -> Seen:
        return self.add(function, (work,), tid=WORKER, pid=pid)

    def add(
        self, function: int, arguments: tuple[int, ...], *, place: int = 0, made: int = 0, tid: int = 0, pid: int = PID
    ) -> Seen:
        self.rows.append((function, pid, tid, place, made, (*arguments, *[0] * (12 - len(arguments)))))
        return self

    def joined(self) -> list[tuple[int, int, int]]:
        """Function, begin and end of each call, in order."""
        kept = np.zeros(len(self.rows), RECORD)
        for number, (row, (function, pid, tid, place, made, arguments)) in enumerate(zip(kept, self.rows, strict=True)):
            row["function"], row["pid"], row["tid"], row["result"], row["made"] = function, pid, tid, place, made
            row["began"] = row["ended"] = 10 * number
            row["arguments"] = arguments
        found = joined(kept, named)
        found = found[np.argsort(found["began"], kind="stable")]
        return [(int(each["function"]), int(each["began"]), int(each["ended"])) for each in found]


def test_a_call_ends_when_its_work_is_done() -> None:
    assert Seen().call(REDUCE).enqueue().done().joined() == [(REDUCE, 0, 20)]
    assert Seen().call(REDUCE).enqueue().done(function=FAILED).joined() == [(REDUCE, 0, 20)]


def test_addresses_of_work_are_used_again() -> None:
    seen = Seen().call(REDUCE).enqueue().done().call(REDUCE).enqueue().done()
    assert seen.joined() == [(REDUCE, 0, 20), (REDUCE, 30, 50)]


def test_several_are_at_work() -> None:
    seen = Seen().call(REDUCE).enqueue().call(REDUCE).enqueue(WORK + 8).done(WORK + 8).done()
    assert seen.joined() == [(REDUCE, 0, 50), (REDUCE, 20, 40)]


def test_a_call_that_goes_on() -> None:
    assert Seen().call(REDUCE).enqueue().joined() == [(REDUCE, 0, OPEN)]
    assert Seen().call(REDUCE).enqueue().done(pid=PID + 1).joined() == [(REDUCE, 0, OPEN)], "another process's"


def test_what_hands_nothing_over_is_none() -> None:
    assert Seen().call(REDUCE).joined() == []
    seen = Seen().call(REDUCE).call(GATHER).enqueue().done()
    assert seen.joined() == [(GATHER, 10, 30)], "the first one has thrown"


def test_a_function_inside_of_another_one_is_a_part_of_it() -> None:
    assert Seen().call(BASE).call(GATHER, LOW).enqueue().done().joined() == [(BASE, 0, 30)]


def test_several_works_in_one_call() -> None:
    seen = Seen().call(BASE).call(GATHER, LOW).enqueue().call(GATHER, LOW).enqueue(WORK + 8).done().done(WORK + 8)
    assert seen.joined() == [(BASE, 0, 50), (GATHER, 30, 60)]


def test_a_work_of_no_call() -> None:
    assert Seen().enqueue().done().joined() == []
    assert Seen().call(REDUCE).enqueue(group=OTHER).joined() == []
    assert Seen().call(REDUCE).enqueue(place=HIGH).joined() == [], "the function has returned"
    assert Seen().call(REDUCE).enqueue(tid=WORKER).joined() == []


def test_threads_and_groups_are_told_apart() -> None:
    seen = Seen().call(REDUCE).call(GATHER, tid=12, group=OTHER).enqueue(WORK + 8, tid=12, group=OTHER).enqueue()
    assert seen.done().done(WORK + 8).joined() == [(REDUCE, 0, 40), (GATHER, 10, 50)]


def test_a_group_that_is_made_is_known_by_its_address() -> None:
    kept = np.zeros(1, RECORD)
    kept["function"], kept["arguments"][0, :4] = MAKES, (GROUP, 1, 2, 4)
    (row,) = joined(kept, named)
    assert (row["made"], row["ended"]) == (GROUP, 0)


def test_calls_of_others_stay() -> None:
    kept = np.zeros(2, RECORD)
    kept["function"], kept["made"] = NCCL, 5
    assert joined(kept, named) is kept
    kept["function"][1] = REDUCE
    assert joined(kept, named)["function"].tolist() == [NCCL]
    assert len(table([kept], [], named, 0, 0).calls) == 1
