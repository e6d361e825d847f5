"""The frames of assembled profiles, and which of them are missing."""

from __future__ import annotations

import io
import sys

import pytest
from captures import DISK, KERNEL, SLEEP, Table, frames, key, profile, remaining
from stallscope.converters.model import Stack
from stallscope.converters.model.scheduling import Scheduling
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.engines.ebpf import stacks as stacks_module
from stallscope.tracers.engines.ebpf.measures.protocol import Recorded
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import NEW, OTHER, OTHER_STACKS, RUNNING, STACK_SHED, ExecRecord, Origin, WaitSum
from stallscope.tracers.symbols.process import ProcessSpaces
from stallscope.tracers.symbols.symboliser import UNMAPPED

pytestmark = pytest.mark.usefixtures("named_by_a_table")


def test_user_frames_then_kernel_frames() -> None:
    stacks = {5: (3, 2, 1), 6: (KERNEL + 3, KERNEL + 2, KERNEL + 1)}
    made = profile(waits=[(key(user=5, kernel=6), WaitSum(1, 1, 1, 1, 0, 0, 0))], stacks=stacks)
    assert frames(made) == [["main", "work", "read", "entry_SYSCALL_64", "schedule", "__schedule"]]
    assert [frame.kind for frame in made.samples[0].stack] == ["native"] * 3 + ["kernel"] * 3


def test_no_trace_of_the_tracer() -> None:
    one = (key(kernel=6), WaitSum(1, 1, 1, 1, 0, 0, 0))
    below = (KERNEL + 5, KERNEL + 4, KERNEL + 3, KERNEL + 2, KERNEL + 3, KERNEL + 1)
    assert frames(profile(waits=[one], stacks={6: below}))[0][-1] == "__schedule"
    assert len(frames(profile(waits=[one], stacks={6: below}))[0]) == 4
    without = (KERNEL + 6, KERNEL + 5, KERNEL + 4, KERNEL + 7, KERNEL + 1)
    assert frames(profile(waits=[one], stacks={6: without})) == [["entry_SYSCALL_64", "do_work"]]


def test_lost_and_unknown_stacks() -> None:
    once = WaitSum(1, 1, 1, 1, 0, 0, 0)
    waits = [(key(user=5, kernel=6), once), (key(user=7, kernel=6), once), (key(DISK, user=7, kernel=6), once),
             (key(), once), (key(OTHER), once), (key(NEW), WaitSum(1, 0, 0, 0, 1, 1, 1))]  # fmt: skip
    made = profile(waits=waits, stacks={6: (KERNEL + 3,), 5: (1,)})
    assert frames(made) == [
        ["main", "__schedule"],
        ["[stack lost]", "__schedule"],
        ["[stack lost]", "__schedule"],
        ["[no stack]"],
        ["[switch not reported]"],
        ["[not started yet]"],
    ]
    assert made.lost["stacks"] == 1  # distinct ones
    assert made.lost["frames without a name"] == 0
    assert "the ring buffer was full: raise --buffer" in worded(made.comments)


def test_stacks_that_the_budget_left_out_are_not_lost() -> None:
    """Frames of the kernel stay."""
    waits = [(key(user=STACK_SHED, kernel=7), WaitSum(3, 1, 1, 1, 0, 0, 0))]
    made = profile(waits=waits, stacks={7: (KERNEL + 3, KERNEL + 2)})
    assert frames(made) == [["[stack not taken (shed)]", "schedule", "__schedule"]]
    assert (made.lost["stacks"], made.lost["frames without a name"]) == (0, 0)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ((3, 2, 1), ["main", "work", "read"]),
        ((3, 2, 9), ["work", "read"]),
        ((3, 9, 2, 9, 1), ["read"]),
        ((9, 2, 1), ["main", "work", UNMAPPED]),
        ((9, 9), [UNMAPPED]),
        ((9,), [UNMAPPED]),
    ],
)
def test_walk_that_lost_its_way(addresses: tuple[int, ...], expected: list[str]) -> None:
    made = profile(waits=[(key(user=5), WaitSum(1, 1, 1, 1, 0, 0, 0))], stacks={5: addresses})
    assert frames(made) == [expected]


def test_frames_without_a_name_are_counted_by_place() -> None:
    waits = [(key(user=u), WaitSum(1, 1, 1, 1, 0, 0, 0)) for u in (5, 6)]
    made = profile(waits=waits, stacks={5: (10, 10, 1), 6: (11, 1)})
    assert made.lost["frames without a name"] == 3
    assert worded(made.comments) == ["frames without a name: 2 in libx.so, 1 in [anon]"]


def test_naming_very_many_stacks_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    waits = [(key(user=u), WaitSum(1, 1, 1, 1, 0, 0, 0)) for u in (5, 6)]
    profile(waits=waits, stacks={5: (1,), 6: (2,)})
    assert terminal.getvalue() == ""
    monkeypatch.setattr(stacks_module, "MANY", 2)
    shown: list[str] = []
    join = stacks_module.Stacks.of

    def of(stacks: stacks_module.Stacks, row: Row) -> Stack:
        shown.append(terminal.getvalue())
        return join(stacks, row)

    monkeypatch.setattr(stacks_module.Stacks, "of", of)
    profile(waits=waits, stacks={5: (1,), 6: (2,)})
    assert set(shown) == {"\r\x1b[Knaming the functions of 2 stacks"}
    assert terminal.getvalue() == "\r\x1b[Knaming the functions of 2 stacks\r\x1b[K"


def test_a_function_without_a_name_is_still_without_a_name() -> None:
    made = profile(waits=[(key(user=5), WaitSum(1, 1, 1, 1, 0, 0, 0))], stacks={5: (13, 10, 1)})
    assert frames(made) == [["main", "[libx.so+0x1a]", "[libx.so!fn_0x10]"]]
    assert made.lost["frames without a name"] == 2


def test_problems_of_the_symboliser_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Table):
        def __init__(self, *_: object) -> None:
            self.problems = ["debuginfod was asked no more: too slow"]

    monkeypatch.setattr(stacks_module, "Symboliser", Failing)
    assert worded(profile().comments) == ["debuginfod was asked no more: too slow"]


def test_each_program_of_a_process_has_its_own_addresses() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    spaces.fork(1, 7, 50)
    spaces.exec(7, 100)
    execs = [ExecRecord(7, 101, 51, 20, 20)]  # of the life 20; then came 21
    waits = [(key(user=5, life=life), WaitSum(1, 1, 1, 1, 0, 0, 0)) for life in (20, 21, 22)]
    threads = [remaining(key=key(life=21), lived=101, first=20)]
    made = profile(waits=waits, stacks={5: (1,)}, spaces=spaces, execs=execs, threads=threads)
    assert frames(made)[:3] == [["main"], ["main'"], ["main?"]]


def test_rare_stacks_have_a_row_of_each_thread() -> None:
    other = Origin(OTHER_STACKS, 0, 0, 8, 7, 8, SLEEP)
    made = profile(waits=[(other, WaitSum(3, 70, 1, 50, 0, 0, 0))], threads=[remaining()])
    (sample,) = made.samples
    assert [frame.name for frame in sample.stack] == ["[other stacks]"]
    assert (sample.label("thread"), sample.values) == ("worker", (70, 3, 1, 50))
    assert not any(made.lost.values())


SEEN = {
    1: (1,),
    20: (KERNEL + 7, KERNEL + 1),
    21: (KERNEL + 6, KERNEL + 5, KERNEL + 3, KERNEL + 2, KERNEL + 7, KERNEL + 1),
}
"""Stacks of the same wait of a thread that was found asleep, and at a switch."""


def waits_in(stacks: dict[int, tuple[int, ...]]) -> set[tuple[str, ...]]:
    waits = [(key(user=1, kernel=number), WaitSum(1, 5, 5, 5, 0, 0, 0)) for number in stacks if number > 1]
    return {tuple(frame.name for frame in sample.stack) for sample in profile(waits=waits, stacks=stacks).samples}


def test_a_thread_found_asleep_gets_the_frames_of_the_scheduler() -> None:
    assert waits_in(SEEN) == {("main", "entry_SYSCALL_64", "do_work", "schedule", "__schedule")}


def test_not_where_two_ways_lead_there() -> None:
    other = {22: (KERNEL + 3, KERNEL + 7, KERNEL + 1)}
    assert waits_in(SEEN | other) == {
        ("main", "entry_SYSCALL_64", "do_work"),
        ("main", "entry_SYSCALL_64", "do_work", "schedule", "__schedule"),
        ("main", "entry_SYSCALL_64", "do_work", "__schedule"),
    }


def test_not_where_the_wait_was_never_seen() -> None:
    assert waits_in({1: (1,), 20: SEEN[20]}) == {("main", "entry_SYSCALL_64", "do_work")}


def test_frames_that_are_missing_around_a_recorded_call_are_told_by_the_rows_alone() -> None:
    """A call and a wait with the same stack, which was lost."""
    places = [Row(Origin(5, 0, 0, 0, 7, 8, state), "", ()) for state in (RUNNING, 1)]
    made = profile(recorded=Recorded(Scheduling(9), [], places))
    assert made.scheduling
    assert [[frame.name for frame in stack] for stack in made.scheduling.stacks] == [[], ["[stack lost]"]]
    assert made.lost["stacks"] == 1
