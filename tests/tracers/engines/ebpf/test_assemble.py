"""Profiles of hand-made captures; names come from a table instead of files."""

from __future__ import annotations

import io
import socket
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, Stack, ThreadTimes
from stallscope.converters.model.processes import CpuLimit, ProcessTimes
from stallscope.converters.model.scheduling import Scheduling
from stallscope.tracers.base.conditions import Condition
from stallscope.tracers.engines.ebpf import stacks as stacks_module
from stallscope.tracers.engines.ebpf.assemble import Naming, profile_of
from stallscope.tracers.engines.ebpf.capture import Capture
from stallscope.tracers.engines.ebpf.lives import Lives
from stallscope.tracers.engines.ebpf.remarks import details
from stallscope.tracers.kernel.records import (
    BLOCKED,
    COUNTERS,
    LOST,
    NEW,
    ON_CPU,
    OTHER,
    OTHER_STACKS,
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    STATES,
    ExecRecord,
    Origin,
    Thread,
    ThreadRecord,
    WaitSum,
)
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.protocol import Ended, Recorded, Row, rows_of
from stallscope.tracers.symbols.process import Process, ProcessSpaces
from stallscope.tracers.symbols.symboliser import UNMAPPED
from stallscope.tracers.unwind.loader import Counts

SLEEP, DISK, STOPPED = (STATES.index(state) for state in ("interruptible", "uninterruptible", "stopped"))
KERNEL = 1 << 63
NAMES = {
    1: "main", 2: "work", 3: "read", 12: "__clone", 9: UNMAPPED, 10: "[libx.so+0x1a]", 11: "[anon]",
    13: "[libx.so!fn_0x10]",
    KERNEL + 1: "entry_SYSCALL_64", KERNEL + 2: "schedule", KERNEL + 3: "__schedule", KERNEL + 4: "__traceiter_sched",
    KERNEL + 5: "bpf_prog_1", KERNEL + 6: "__bpf_get_stack", KERNEL + 7: "do_work",
}  # fmt: skip
NO_SUM = WaitSum(0, 0, 0, 0, 0, 0, 0)
END = 10_000


class Table:
    """Stands for the symboliser: frames by address, those of epoch 1 with a mark."""

    def __init__(self, *_: object) -> None:
        self.problems: list[str] = []

    def kernel_stacks(self, stacks: Sequence[tuple[int, ...]]) -> list[tuple[Frame, ...]]:
        return [tuple(Frame(NAMES[a], "kernel") for a in reversed(stack)) for stack in stacks]

    def user_stacks(self, requests: Sequence[tuple[int, int, tuple[int, ...]]]) -> list[tuple[Frame, ...]]:
        marks = {0: "", 1: "'", -1: "?"}
        module = Module("/usr/lib/libx.so")
        return [
            tuple(
                Frame(NAMES[a] + (marks[epoch] if a < 9 else ""), module=module if a == 10 else None)
                for a in reversed(stack)
            )
            for _, epoch, stack in requests
        ]


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks_module, "Symboliser", Table)
    monkeypatch.setattr(stacks_module.Kallsyms, "read", lambda: None)


def key(state: int = SLEEP, *, user: int = 0, kernel: int = 0, tid: int = 8, tgid: int = 7, life: int = 0) -> Origin:
    return Origin(user, kernel, 0, tid, tgid, life or tid, state)


def thread(tid: int = 8, **given: Any) -> Thread:
    fields: dict[str, Any] = dict.fromkeys(("start", "since", "out", "woken", "on_cpu", "runnable", "switches"), 0)
    fields |= {"latencies": (0,) * 24, "creator": 0}
    fields |= {"blocked": (0,) * 8, "key": key(tid=tid), "sum_key": key(tid=tid), "sum": NO_SUM, "phase": ON_CPU}
    fields |= given
    return Thread(**{"first": fields["key"].life} | fields)


def remaining(comm: bytes = b"worker", **given: Any) -> ThreadRecord:
    return ThreadRecord(END, comm, thread(**given), exited=False)


def capture(measure: OffCpu | None = None, **given: Any) -> Capture:
    measure = measure or OffCpu()
    measure._waits = dict(given.pop("waits", []))
    counters = dict.fromkeys(COUNTERS, 0) | given.pop("counters", {})
    fields: dict[str, Any] = {
        "began": 1000, "stopped": END, "wall_ns": 5, "threads": [], "stacks": {}, "lost_process_events": 0,
        "spaces": ProcessSpaces(fd_budget=0),
    }  # fmt: skip
    execs = given.pop("execs", None)
    if execs is None:  # every thread that has rows is known, as a rule
        execs = [ExecRecord(w.tgid, 0, 0, w.life, w.life) for w in measure._waits if not given.get("threads")]
    fields |= given
    lives = fields["lives"] = Lives(fields["threads"], execs, fields["spaces"])
    fields["threads"] = lives.records(fields["threads"])
    rows = lives.rows(rows_of([measure], Ended(1000, END, fields["threads"], lives.threads)))
    return Capture(**fields, columns=measure.columns, rows=rows, losses=dict(measure.losses()), counters=counters)


def profile(measure: OffCpu | None = None, **given: Any) -> Profile:
    return profile_of(capture(measure, **given), "Off-CPU time")


def labels(state: str, *, tid: int = 8, **more: str) -> Labels:
    shared: dict[str, str | int] = {
        "pid": 7, "process": "[unknown]", "state": state, "thread": "[unknown]", "tid": tid
    }  # fmt: skip
    return tuple(sorted((shared | more).items()))


def states(made: Profile) -> list[tuple[str, tuple[int, ...], bool]]:
    """(state, values, whether open) of each sample."""
    return [(str(s.label("state")), s.values, s.label("open") == "yes") for s in made.samples]


def frames(made: Profile) -> list[list[str]]:
    return [[frame.name for frame in sample.stack] for sample in made.samples]


# Waits.


def test_blocked_and_runnable_part() -> None:
    made = profile(waits=[(key(user=5), WaitSum(4, 100, 10, 40, 8, 1, 3))], stacks={5: (2, 1)})
    stack = (Frame("main"), Frame("work"))
    assert made.samples == [
        Sample(stack, (100, 4, 10, 40), labels("interruptible")),
        Sample(stack, (8, 4, 1, 3), labels("runnable-woken")),
    ]
    assert made.total("off-cpu") == 108
    assert [value.name for value in made.value_types] == ["off-cpu", "count", "min", "max"]


def test_wait_that_ran_at_once_has_no_runnable_part() -> None:
    made = profile(waits=[(key(DISK), WaitSum(1, 100, 100, 100, 0, 0, 0))])
    assert states(made) == [("uninterruptible", (100, 1, 100, 100), False)]


@pytest.mark.parametrize(("state", "label"), [(PREEMPTED, "runnable-preempted"), (NEW, "runnable-woken")])
def test_what_was_never_blocked(state: int, label: str) -> None:
    made = profile(waits=[(key(state), WaitSum(3, 0, 0, 0, 60, 10, 30))])
    assert states(made) == [(label, (60, 3, 10, 30), False)]


def test_sum_that_the_thread_still_held() -> None:
    held = WaitSum(2, 20, 5, 15, 4, 1, 3)
    waits = [(key(user=5), WaitSum(1, 10, 10, 10, 2, 2, 2))]
    there = remaining(sum_key=key(user=5), sum=held)
    made = profile(waits=waits, threads=[there], stacks={5: (1,)})
    assert [s.values for s in made.samples] == [(30, 3, 5, 15), (6, 3, 1, 3)]
    other = remaining(sum_key=key(user=6), sum=held)
    assert len(profile(waits=waits, threads=[other], stacks={5: (1,), 6: (2,)}).samples) == 4
    left = ThreadRecord(END, b"x", thread(sum_key=key(user=5), sum=held), exited=True)  # it wrote its sum on leaving
    assert [s.values[0] for s in profile(waits=waits, threads=[left]).samples] == [10, 2]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"phase": BLOCKED, "key": key(SLEEP), "out": 4000}, [("interruptible", (6000, 1, 6000, 6000), True)]),
        ({"phase": BLOCKED, "key": key(STOPPED), "out": 4000}, [("stopped", (6000, 1, 6000, 6000), True)]),
        ({"phase": RUNNABLE, "key": key(SLEEP), "out": 4000, "woken": 9000},
         [("interruptible", (5000, 1, 5000, 5000), True), ("runnable-woken", (1000, 1, 1000, 1000), True)]),
        ({"phase": RUNNABLE, "key": key(PREEMPTED), "out": 4000, "woken": 1},
         [("runnable-preempted", (6000, 1, 6000, 6000), True)]),
        ({"phase": RUNNABLE, "key": key(NEW), "out": 9999}, [("runnable-woken", (1, 1, 1, 1), True)]),
        ({"phase": ON_CPU, "key": key(SLEEP), "out": 4000}, []),
        ({"phase": BLOCKED, "key": key(SLEEP), "out": 0}, []),
        ({"phase": BLOCKED, "key": key(SLEEP), "out": END + 5}, []),  # a switch that raced with the end
    ],
)  # fmt: skip
def test_open_interval(given: dict[str, Any], expected: list[Any]) -> None:
    assert states(profile(threads=[remaining(**given)])) == expected
    gone = ThreadRecord(END, b"x", thread(**given), exited=True)
    assert states(profile(threads=[gone])) == []


@pytest.mark.parametrize(
    ("chosen", "count"),
    [(OffCpu(6000, 6000), 1), (OffCpu(shortest=6001), 0), (OffCpu(longest=5999), 0), (OffCpu(1, 9999), 1)],
)
def test_open_interval_must_have_the_wanted_length(chosen: OffCpu, count: int) -> None:
    there = remaining(phase=BLOCKED, key=key(SLEEP), out=4000)
    assert len(profile(chosen, threads=[there]).samples) == count


def test_only_the_chosen_states() -> None:
    waits = [
        (key(SLEEP), WaitSum(1, 100, 100, 100, 8, 8, 8)),
        (key(DISK), WaitSum(1, 200, 200, 200, 9, 9, 9)),
        (key(PREEMPTED), WaitSum(1, 0, 0, 0, 7, 7, 7)),
    ]
    there = remaining(phase=BLOCKED, key=key(DISK), out=9000)

    def total(*wanted: str) -> int:
        return profile(OffCpu(states=frozenset(wanted)), waits=waits, threads=[there]).total("off-cpu")

    assert total("uninterruptible") == 1200
    assert total("runnable-woken") == 17
    assert total("runnable-preempted", "interruptible") == 107
    assert total("idle") == 0


# Stacks.


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
    assert "the ring buffer was full: raise --buffer" in made.comments


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


def test_deep_stacks_are_counted() -> None:
    waits = [(key(user=u), WaitSum(1, 1, 1, 1, 0, 0, 0)) for u in (5, 6)]
    made = profile(waits=waits, stacks={5: (2,) * 127, 6: (2,) * 127}, ends={5: 1})
    assert made.lost["stacks cut at 127 frames"] == 1


def test_stacks_that_are_not_complete_are_counted_by_reason_and_by_time() -> None:
    waits = [(key(user=u), WaitSum(1, ns, ns, ns, 0, 0, 0)) for u, ns in ((5, 900), (6, 75), (7, 25), (0, 10_000))]
    made = profile(waits=waits, stacks={5: (1,), 6: (2,), 7: (3,)}, ends={6: 2, 7: 4})
    assert made.lost["stacks not complete: no unwind table"] == 1
    assert made.lost["stacks not complete: memory not readable"] == 1
    others = "no unwind table 7.50%, memory not readable 2.50%"
    assert made.comments == [f"90.00% of the time in user code is in complete stacks; others: {others}"]


def test_time_that_a_late_table_cost_is_told_apart() -> None:
    """Stack 6 and 7 end in libx.so, 8 for want of another table; and 7 for another reason."""
    waits = [(key(user=u), WaitSum(1, ns, ns, ns, 0, 0, 0)) for u, ns in ((5, 800), (6, 90), (7, 100), (8, 10))]
    stacks = {5: (10, 1), 6: (10, 2), 7: (10, 3), 8: (2,)}
    given = {"waits": waits, "stacks": stacks, "ends": {6: 2, 7: 4, 8: 2}}
    late = (
        "9.0 % of the time in user code is in stacks cut short: unwind tables were still being compiled; run it again"
    )
    made = profile(**given, tables=Counts(late=frozenset({"/usr/lib/libx.so", "/other"}), compiled=2))
    assert [comment for comment in made.comments if "cut short" in comment] == [late]
    for tables in (Counts(late=frozenset({"/other"}), compiled=1), Counts(compiled=1), None):
        made = profile(**given, tables=tables)
        assert not any("cut short" in comment for comment in made.comments)
        assert any(comment.startswith("80.00% of the time") for comment in made.comments)


def test_the_modules_where_stacks_are_cut_are_named() -> None:
    waits = [(key(user=u), WaitSum(1, ns, ns, ns, 0, 0, 0)) for u, ns in ((5, 60), (6, 30), (7, 10))]
    made = profile(waits=waits, stacks={5: (1,), 6: (2, 10), 7: (10,)}, ends={6: 2, 7: 3})
    said = (
        "60.00% of the time in user code is in complete stacks; others: no unwind table 30.00%, no unwind rule 10.00%"
    )
    assert made.comments[-1] == f"{said}; they end in libx.so 40.00%"


def test_code_without_rules_where_threads_start_is_the_end() -> None:
    waits = [(key(user=u), WaitSum(1, 10, 10, 10, 0, 0, 0)) for u in (5, 6)]
    made = profile(waits=waits, stacks={5: (2, 12), 6: (2, 1)}, ends={5: 3, 6: 3})
    assert made.lost["stacks not complete: no unwind rule"] == 1
    assert made.comments == ["50.00% of the time in user code is in complete stacks; others: no unwind rule 50.00%"]


def test_details() -> None:
    counters = {"user_memo_hits": 1234, "user_memo_checks": 5, "user_memo_wrong": 1, "late_stacks": 7}
    tables = Counts(bytes=3 << 20, files=2, refused={"damaged": 1}, evicted=4, no_room=5, problem="no memory")
    tables.compiled = 1
    assert details(capture(counters=counters, tables=tables)) == [
        "user stacks recognised without unwinding: 1,234; checked: 5, of these wrong: 1",
        "kernel stacks recognised without unwinding: 0; checked: 0, of these wrong: 0",
        "user stacks walked again while their threads waited: 7",
        "unwind tables: 3 MB for 2 files; compiled now: 1",
        "files without a table: 1 (damaged)",
        "tables that left for want of room: 4; that found none: 5",
        "no more memory for tables: no memory",
    ]
    assert len(details(capture())) == 3
    made = profile(counters=counters, tables=tables)
    assert made.comments == [
        "1 of 5 user stacks that were recognised, and checked, were others",
        "the unwind tables did not fit: raise --unwind-memory, or trace fewer processes",
    ]


def test_frames_without_a_name_are_counted_by_place() -> None:
    waits = [(key(user=u), WaitSum(1, 1, 1, 1, 0, 0, 0)) for u in (5, 6)]
    made = profile(waits=waits, stacks={5: (10, 10, 1), 6: (11, 1)})
    assert made.lost["frames without a name"] == 3
    assert made.comments == ["frames without a name: 2 in libx.so, 1 in [anon]"]


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
    assert profile().comments == ["debuginfod was asked no more: too slow"]


def test_each_program_of_a_process_has_its_own_addresses() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    spaces.fork(1, 7, 50)
    spaces.exec(7, 100)
    execs = [ExecRecord(7, 101, 51, 20, 20)]  # of the life 20; then came 21
    waits = [(key(user=5, life=life), WaitSum(1, 1, 1, 1, 0, 0, 0)) for life in (20, 21, 22)]
    threads = [remaining(key=key(life=21), lived=101, first=20)]
    made = profile(waits=waits, stacks={5: (1,)}, spaces=spaces, execs=execs, threads=threads)
    assert frames(made)[:3] == [["main"], ["main'"], ["main?"]]


def test_ids_that_came_back_are_told_apart() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    for when in (50, 100, 150):
        spaces.fork(1, 7, when)
    once = WaitSum(1, 1, 1, 1, 0, 0, 0)
    lives = {20: 60, 21: 110, 22: 120}
    threads = [
        remaining(b"t%d" % life, key=key(tid=7, life=life), lived=when, start=when) for life, when in lives.items()
    ]
    threads.append(remaining(b"now", key=key(tid=7, life=23), lived=160))
    made = profile(waits=[(key(tid=7, life=life), once) for life in (*lives, 23)], threads=threads, spaces=spaces)
    found = [dict(sample.labels) for sample in made.samples][:4]
    assert [(of["thread"], of["pid"], of.get("pid-life"), of["tid"], of.get("tid-life")) for of in found] == [
        ("t20", 7, None, 7, None),
        ("t21", 7, 2, 7, None),
        ("t22", 7, 2, 7, 2),
        ("now", 7, 3, 7, None),
    ]
    assert [(times.thread, times.pid, times.pid_life, times.tid_life) for times in made.threads] == [
        ("t20", 7, 1, 1),
        ("t21", 7, 2, 1),
        ("t22", 7, 2, 2),
        ("now", 7, 3, 1),
    ]
    assert [(process.pid, process.pid_life, process.process) for process in made.processes] == [
        (7, 1, "t20"),
        (7, 2, "t22"),
        (7, 3, "now"),
    ]


# Names and times.


def test_names_of_threads_and_processes() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    spaces.processes = {7: Process(7, 7, comm="old name"), 20: Process(20, 20, comm="exited", exited=True)}
    once = WaitSum(1, 1, 1, 1, 0, 0, 0)
    waits = [
        (key(tid=7), once),
        (key(tid=8), once),
        (key(tid=9), once),
        (key(tid=20, tgid=20), once),
        (key(tid=31, tgid=30), once),
    ]
    threads = [
        remaining(b"ma\xffin", tid=7, key=key(tid=7)),
        remaining(b"<script>;x\n", tid=8),
        remaining(b"", tid=9, key=key(tid=9)),
    ]
    made = profile(waits=waits, threads=threads, spaces=spaces)
    assert [(s.label("process"), s.label("thread"), s.label("pid"), s.label("tid")) for s in made.samples] == [
        ("ma\udcffin", "ma\udcffin", 7, 7),
        ("ma\udcffin", "<script>;x\n", 7, 8),
        ("ma\udcffin", "ma\udcffin", 7, 9),
        ("exited", "exited", 20, 20),
        ("[unknown]", "[unknown]", 30, 31),
    ]
    assert all(list(s.labels) == sorted(s.labels) for s in made.samples)
    assert {(t.process, t.thread) for t in made.threads} >= {("ma\udcffin", "<script>;x\n")}


def test_pids_of_containers() -> None:
    """Where they are another number, and with --container-pid only."""
    spaces = ProcessSpaces(fd_budget=0)
    spaces.processes = {7: Process(7, 1, comm="worker"), 20: Process(20, 20, comm="outside")}
    once = WaitSum(1, 1, 1, 1, 0, 0, 0)
    given = {
        "waits": [(key(tid=7), once), (key(tid=20, tgid=20), once), (key(tid=31, tgid=30), once)],
        "threads": [remaining(b"", tid=8)],
        "spaces": spaces,
    }
    inside = profile_of(capture(**given), "Off-CPU time", Naming(container_pids=True))
    named = [(s.label("pid"), s.label("process"), s.label("thread")) for s in inside.samples]
    assert named == [
        (7, "worker (1 inside)", "worker"),
        (20, "outside", "outside"),
        (30, "[unknown]", "[unknown]"),
    ]
    assert [(t.process, t.thread) for t in inside.threads] == [("worker (1 inside)", "worker")]
    assert [s.label("process") for s in profile(**given).samples] == ["worker", "outside", "[unknown]"]


@pytest.mark.parametrize(
    ("given", "exited", "expected"),
    [
        ({"phase": ON_CPU}, False, (3000 + 5, 6, {"interruptible": 10, "uninterruptible": 20})),
        ({"phase": BLOCKED, "key": key(DISK)}, False, (5, 6, {"interruptible": 10, "uninterruptible": 3020})),
        ({"phase": BLOCKED, "key": key(STOPPED)}, False,
         (5, 6, {"interruptible": 10, "uninterruptible": 20, "stopped": 3000})),
        ({"phase": RUNNABLE, "key": key(SLEEP)}, False, (5, 3006, {"interruptible": 10, "uninterruptible": 20})),
        ({"phase": ON_CPU}, True, (5, 6, {"interruptible": 10, "uninterruptible": 20})),
    ],
)  # fmt: skip
def test_times_of_a_thread(given: dict[str, Any], exited: bool, expected: tuple[int, int, dict[str, int]]) -> None:
    blocked = (0, 10, 20, 0, 0, 0, 0, 0)
    counted = thread(start=2000, since=7000, on_cpu=5, runnable=6, blocked=blocked, switches=4, **given)
    made = profile(threads=[ThreadRecord(END, b"w", counted, exited=exited)])
    assert made.threads == [ThreadTimes(7, "[unknown]", 8, "w", END - 2000, *expected, 4, exited)]


def test_processes_and_what_their_threads_waited_for_a_core() -> None:
    waits = tuple(range(24))
    still = {"phase": RUNNABLE, "since": END - 3000}
    gone = thread(tid=1, latencies=waits, creator=9, **still)  # what it was in at its end is over
    threads = [
        ThreadRecord(END, b"a", gone, exited=True),
        remaining(b"b", tid=2, latencies=waits, **still),
        remaining(b"c", tid=3, phase=BLOCKED, since=END - 3000),
        remaining(b"d", tid=30, key=key(tid=30, tgid=30)),
    ]
    condition = Condition("0-3", (CpuLimit("/x", 1, 2),), {"OMP_NUM_THREADS": "4"}, ranks={"rank": "3"})
    made = profile(threads=threads, conditions={7: condition})
    counts = [2 * each for each in waits]
    counts[2] += 1  # 2,048 to 4,095 ns
    assert made.processes == [
        ProcessTimes(
            7, "[unknown]", tuple(counts), "0-3", condition.limits, condition.environment, ranks=condition.ranks
        ),
        ProcessTimes(30, "d", (0,) * 24),
    ]
    assert [times.creator for times in made.threads] == [9, 0, 0, 0]


def test_ranks_are_labels_of_every_sample() -> None:
    waits = [(key(user=5), WaitSum(4, 100, 10, 40, 8, 1, 3))]
    made = profile(waits=waits, stacks={5: (2, 1)}, conditions={7: Condition("0", ranks={"rank": "3", "gpu": "1"})})
    assert len(made.samples) == 2
    assert {(sample.label("rank"), sample.label("gpu")) for sample in made.samples} == {("3", "1")}
    assert all(list(sample.labels) == sorted(sample.labels) for sample in made.samples)


@pytest.mark.parametrize(("name", "script"), [("d", "q.py"), ("python3", "")])
def test_a_script_is_that_of_the_program_that_was_asked(name: str, script: str) -> None:
    """A process that python3 has forked has its command line until it executes another program."""
    threads = [remaining(b"d", tid=30, key=key(tid=30, tgid=30))]
    made = profile(threads=threads, conditions={30: Condition("0-3", script="q.py", name=name)})
    assert [process.script for process in made.processes] == [script]


def test_exited_and_remaining_threads_are_listed() -> None:
    threads = [ThreadRecord(END, b"a", thread(tid=1), exited=True), remaining(b"b", tid=2)]
    assert [(t.thread, t.exited) for t in profile(threads=threads).threads] == [("a", True), ("b", False)]


@pytest.mark.parametrize(
    ("mains", "title"),
    [
        ({}, "Off-CPU time"),
        ({7: b"demo"}, "Off-CPU time of demo"),
        ({7: b"demo", 8: b"demo", 9: b"sh"}, "Off-CPU time of 2 × demo, sh"),
        ({7: b"a", 8: b"b", 9: b"c", 10: b"d"}, "Off-CPU time of 4 processes"),
    ],
)
def test_title(mains: dict[int, bytes], title: str) -> None:
    threads = [remaining(comm, tid=pid, key=key(tid=pid, tgid=pid)) for pid, comm in mains.items()]
    assert profile(threads=threads).title == title


def test_when_and_where() -> None:
    made = profile(wall_ns=1_700_000_000_000_000_000)
    assert (made.start_ns, made.duration_ns, made.host) == (1_700_000_000_000_000_000, 9000, socket.gethostname())


# What was lost.


def test_nothing_lost_is_said_too() -> None:
    made = profile()
    assert made.lost == {
        "intervals": 0,
        "ns of intervals": 0,
        "stacks": 0,
        "threads": 0,
        "exit and exec records": 0,
        "address space records": 0,
        "stacks cut at 127 frames": 0,
        "user stacks that could not be read": 0,
        "stacks not complete: no unwind table": 0,
        "stacks not complete: no unwind rule": 0,
        "stacks not complete: memory not readable": 0,
        "stacks not complete: lost its way": 0,
        "stacks not complete: 32-bit code": 0,
        "frames without a name": 0,
    }
    assert made.comments == []


@pytest.mark.parametrize(
    ("counter", "kind"),
    [("lost_threads", "threads"), ("lost_records", "exit and exec records")],
)
def test_counters_of_the_probes(counter: str, kind: str) -> None:
    assert {k: v for k, v in profile(counters={counter: 41}).lost.items() if v} == {kind: 41}


def test_threads_without_an_account() -> None:
    waits = [(key(user=5, life=life), WaitSum(1, 1, 1, 1, 0, 0, 0)) for life in (20, 21, 21)]
    known = [ExecRecord(7, 0, 0, 21, 21)]
    made = profile(waits=waits, execs=known, stacks={5: ()})
    assert made.lost["accounts of threads"] == 1
    assert "1 thread without an account: hidden from the kernel's task iterator" in made.comments
    made = profile(waits=waits, execs=known, counters={"lost_records": 1}, stacks={5: ()})
    assert made.comments == ["the ring buffer was full: raise --buffer"]


@pytest.mark.parametrize(
    ("counters", "option"),
    [({"lost_records": 1}, "--buffer")],
)
def test_comment_names_the_option_that_helps(counters: dict[str, int], option: str) -> None:
    (comment,) = profile(counters=counters).comments
    assert option in comment


def test_a_stack_that_came_twice_is_no_loss() -> None:
    assert profile(counters={"stack_table_full": 1}).comments == []


def test_lost_waits_have_a_row_and_their_time() -> None:
    lost = Origin(LOST, 0, 0, 0, 0, 0, SLEEP)
    made = profile(waits=[(lost, WaitSum(3, 70, 1, 50, 30, 2, 20)), (key(user=5), WaitSum(1, 9, 9, 9, 0, 0, 0))])
    assert (made.lost["intervals"], made.lost["ns of intervals"]) == (3, 100)
    rows = [sample for sample in made.samples if sample.label("process") == "[lost]"]
    assert [[frame.name for frame in sample.stack] for sample in rows] == [["[lost]"], ["[lost]"]]
    assert [(sample.label("state"), sample.values) for sample in rows] == [
        ("interruptible", (70, 3, 1, 50)),
        ("runnable-woken", (30, 3, 2, 20)),
    ]
    assert any("--table-size" in comment for comment in made.comments)


def test_rare_stacks_have_a_row_of_each_thread() -> None:
    other = Origin(OTHER_STACKS, 0, 0, 8, 7, 8, SLEEP)
    made = profile(waits=[(other, WaitSum(3, 70, 1, 50, 0, 0, 0))], threads=[remaining()])
    (sample,) = made.samples
    assert [frame.name for frame in sample.stack] == ["[other stacks]"]
    assert (sample.label("thread"), sample.values) == ("worker", (70, 3, 1, 50))
    assert not any(made.lost.values())


def test_other_losses_and_notes() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    spaces.lost["processes whose maps were not read in time"] = 3
    made = profile(lost_process_events=5, spaces=spaces, notes=["no perf events"])
    assert made.lost["address space records"] == 5
    assert made.lost["processes whose maps were not read in time"] == 3
    assert "files not opened while they were mapped" not in made.lost
    assert made.comments == ["no perf events"]


def test_switches_that_were_not_reported() -> None:
    (comment,) = profile(counters={"missed_ins": 2, "missed_outs": 3}).comments
    assert comment.startswith("5 waits of which a switch was not seen")


SEEN = {
    1: (1,),
    20: (KERNEL + 7, KERNEL + 1),
    21: (KERNEL + 6, KERNEL + 5, KERNEL + 3, KERNEL + 2, KERNEL + 7, KERNEL + 1),
}
"""The same wait of a thread that was found asleep, and at a switch."""


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
