"""Remarks of assembled profiles on what was lost."""

from __future__ import annotations

from typing import Any

import pytest
from captures import SLEEP, capture, key, profile
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.base import capabilities
from stallscope.tracers.base.file_locks import LOST_LOOKS, LOST_REQUESTS
from stallscope.tracers.engines.ebpf.measures.offcpu import OffCpuCollector
from stallscope.tracers.engines.ebpf.measures.python_steps import PythonStepsCollector
from stallscope.tracers.engines.ebpf.remarks import details
from stallscope.tracers.engines.ebpf.retransmissions import LOST as LOST_SEGMENTS
from stallscope.tracers.kernel.records import LOST, ExecRecord, Origin, WaitSum
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.steps import PythonSteps
from stallscope.tracers.probe_targets.python_steps import PythonFunction
from stallscope.tracers.symbols.process import ProcessSpaces
from stallscope.tracers.unwind.counts import Counts

pytestmark = pytest.mark.usefixtures("named_by_a_table")


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
    assert worded(made.comments) == [f"90.00% of the time in user code is in complete stacks; others: {others}"]


def test_time_that_a_late_table_cost_is_told_apart() -> None:
    """Stack 6 and 7 end in libx.so, 8 for want of another table; and 7 for another reason."""
    waits = [(key(user=u), WaitSum(1, ns, ns, ns, 0, 0, 0)) for u, ns in ((5, 800), (6, 90), (7, 100), (8, 10))]
    stacks = {5: (10, 1), 6: (10, 2), 7: (10, 3), 8: (2,)}
    given = {"waits": waits, "stacks": stacks, "ends": {6: 2, 7: 4, 8: 2}}
    late = (
        "9.0 % of the time in user code is in stacks cut short: unwind tables were still being compiled; run it again"
    )
    made = profile(**given, tables=Counts(late=frozenset({"/usr/lib/libx.so", "/other"}), compiled=2))
    assert [comment for comment in worded(made.comments) if "cut short" in comment] == [late]
    for tables in (Counts(late=frozenset({"/other"}), compiled=1), Counts(compiled=1), None):
        made = profile(**given, tables=tables)
        assert not any("cut short" in comment for comment in worded(made.comments))
        assert any(comment.startswith("80.00% of the time") for comment in worded(made.comments))


def test_the_modules_where_stacks_are_cut_are_named() -> None:
    waits = [(key(user=u), WaitSum(1, ns, ns, ns, 0, 0, 0)) for u, ns in ((5, 60), (6, 30), (7, 10))]
    made = profile(waits=waits, stacks={5: (1,), 6: (2, 10), 7: (10,)}, ends={6: 2, 7: 3})
    said = (
        "60.00% of the time in user code is in complete stacks; others: no unwind table 30.00%, no unwind rule 10.00%"
    )
    assert worded(made.comments)[-1] == f"{said}; they end in libx.so 40.00%"


def test_code_without_rules_where_threads_start_is_the_end() -> None:
    waits = [(key(user=u), WaitSum(1, 10, 10, 10, 0, 0, 0)) for u in (5, 6)]
    made = profile(waits=waits, stacks={5: (2, 12), 6: (2, 1)}, ends={5: 3, 6: 3})
    assert made.lost["stacks not complete: no unwind rule"] == 1
    assert worded(made.comments) == [
        "50.00% of the time in user code is in complete stacks; others: no unwind rule 50.00%"
    ]


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
    assert worded(made.comments) == [
        "1 of 5 user stacks that were recognised, and checked, were others",
        "the unwind tables did not fit: raise --unwind-memory, or trace fewer processes",
    ]


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
        "stacks not complete: not read in time": 0,
        "stacks not complete: lost its way": 0,
        "stacks not complete: 32-bit code": 0,
        "frames without a name": 0,
    }
    assert worded(made.comments) == []


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
    assert "1 thread without an account: hidden from the kernel's task iterator" in worded(made.comments)
    made = profile(waits=waits, execs=known, counters={"lost_records": 1}, stacks={5: ()})
    assert worded(made.comments) == ["the ring buffer was full: raise --buffer"]


@pytest.mark.parametrize(
    ("counters", "option"),
    [({"lost_records": 1}, "--buffer")],
)
def test_comment_names_the_option_that_helps(counters: dict[str, int], option: str) -> None:
    (comment,) = worded(profile(counters=counters).comments)
    assert option in comment


def test_more_files_than_are_told_apart() -> None:
    (comment,) = worded(profile(counters={"lost_objects": 2}).comments)
    assert comment == "threads waited on more than 4,096 files and sockets: the others are not told"


def test_requests_for_locks_on_files_that_the_kernel_or_the_tracer_had_no_room_for() -> None:
    made = profile(counters={"lost_refusals": 2}, losses={LOST_REQUESTS: 3, LOST_LOOKS: 4})
    assert {kind: number for kind, number in made.lost.items() if number} == {LOST_REQUESTS: 5, LOST_LOOKS: 4}
    assert worded(made.comments) == []  # larger tables would not help
    assert LOST_REQUESTS not in profile().lost


def test_segments_whose_connections_are_not_known() -> None:
    made = profile(counters={"lost_retransmissions": 2})
    assert {kind: number for kind, number in made.lost.items() if number} == {LOST_SEGMENTS: 2}
    assert worded(made.comments) == []


def test_a_stack_that_came_twice_is_no_loss() -> None:
    assert worded(profile(counters={"stack_table_full": 1}).comments) == []


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
    assert any("--table-size" in comment for comment in worded(made.comments))


def test_other_losses_and_notes() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    spaces.lost["processes whose maps were not read in time"] = 3
    made = profile(lost_process_events=5, spaces=spaces, notes=["no perf events"])
    assert made.lost["address space records"] == 5
    assert made.lost["processes whose maps were not read in time"] == 3
    assert "files not opened while they were mapped" not in made.lost
    assert worded(made.comments) == ["no perf events"]


def test_switches_that_were_not_reported() -> None:
    (comment,) = worded(profile(counters={"missed_ins": 2, "missed_outs": 3}).comments)
    assert comment.startswith("5 waits of which a switch was not seen")


def test_losses_of_python_steps_are_not_those_of_tables() -> None:
    def said(measure: PythonStepsCollector) -> list[str]:
        other: Any = OffCpuCollector(OffCpu())
        other.losses = measure.losses
        return worded(profile(measure=other).comments)

    measure = PythonStepsCollector(PythonSteps([PythonFunction("train.py", "step")], SpanOptions(100)))
    measure._past.missed = measure._past.unreadable = 2
    assert said(measure) == []
    measure._lost = 3
    assert said(measure) == ["the ring buffer was full: raise --buffer"]


@pytest.mark.parametrize("is_there", [True, False])
def test_rights_that_are_missing_are_told(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held = capabilities.Held(is_there << capabilities.Capability.SYS_PTRACE, 0, 0, 0)
    monkeypatch.setattr(capabilities, "held", lambda: held)
    told = worded(profile().comments)
    assert [each.partition(" is not")[0] for each in told] == ([] if is_there else ["CAP_SYS_PTRACE"])
