from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.steps_table import text_of
from stallscope.converters.transforms.diff import differential
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.table.rows import FORMS, Table, summary, tables
from step_traces import recorded

OFF_CPU, COUNT = ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")
MS = 1_000_000
LIB = Module("/opt/x/lib.so")
MAIN, CALL, LOCK = Frame("main"), Frame("call", "python", LIB, 16), Frame("lock", "kernel")
ELSEWHERE = Frame("call", "python", LIB, 32)
WHO: Labels = (("pid", 7), ("process", "p"))
HOSTILE = "evil\x1b[2J\n\u202e"


def profile() -> Profile:
    """``call`` calls itself, from two places."""
    samples = [
        Sample((MAIN, CALL, LOCK), (600 * MS, 6), WHO),
        Sample((MAIN, CALL, ELSEWHERE, CALL), (300 * MS, 3), WHO),
        Sample((MAIN,), (99 * MS, 1), WHO),
        Sample((Frame(HOSTILE),), (1 * MS, 90), WHO),
        Sample((Frame("negative"), MAIN), (-5 * MS, 0), WHO),
    ]
    return Profile([OFF_CPU, COUNT], samples, lost={"lost events": 2, "none": 0}, comments=[HOSTILE])


def one(content: Profile, form: str, **options: object) -> Table:
    (table,) = tables(content, WriteOptions(form=form, **options))  # type: ignore[arg-type]
    assert table.form == form
    return table


def test_all_forms_unless_one_is_asked_for() -> None:
    assert [table.form for table in tables(profile(), WriteOptions())] == list(FORMS[:3])


def test_functions_by_their_own_time_and_recursion_counts_once() -> None:
    table = one(profile(), "functions", min_share=1e-9)
    assert [(row.name, row.cells, row.origin) for row in table.rows] == [
        ("lock", ["0.600 s", "60.0 %", "0.600 s", "60.0 %"], "kernel"),
        ("call", ["0.300 s", "30.0 %", "0.900 s", "90.0 %"], "Python, lib.so"),
        ("main", ["0.099 s", "9.9 %", "0.999 s", "99.9 %"], "native"),
        (printable(HOSTILE), ["0.001 s", "0.1 %", "0.001 s", "0.1 %"], "native"),
    ]
    assert table.left_out == ""


def test_what_is_small_or_too_much_is_left_out_and_counted() -> None:
    small = one(profile(), "functions", min_share=0.5)
    assert ([row.name for row in small.rows], small.left_out) == (["lock", "call", "main"], "1 more function")
    few = one(profile(), "functions", min_share=1e-9, rows=1)
    assert ([row.name for row in few.rows], few.left_out) == (["lock"], "3 more functions")


def test_what_changed_in_programs_comes_before_the_kernel() -> None:
    """Programs come first even where their own time is that of the kernel's functions below them."""
    ioctl, read = Frame("ioctl"), Frame("read")
    stacks = {
        (MAIN, ioctl, LOCK): (900, 100),
        (MAIN, read, LOCK): (50, 100),
        (MAIN, read): (5, 35),
        (MAIN, CALL): (9, 8),
    }
    sides = [
        Profile([OFF_CPU], [Sample(stack, (values[side] * MS,), WHO) for stack, values in stacks.items()])
        for side in (1, 0)
    ]
    table = one(differential(*sides), "functions", min_share=1e-9)
    assert [row.name for row in table.rows] == ["ioctl", "read", "call", "main", "lock"]
    assert table.rows[0].cells == ["0", "0", "0", "100.00 ms", "900.00 ms", "+800.00 ms"]
    shares = one(differential(*sides, normalise=True), "functions", min_share=1e-9)
    assert shares.rows[0].name == "ioctl"
    assert shares.rows[0].cells[3:] == ["41.2 %", "93.4 %", "+52.2 %"]


def test_calls_from_the_outside_in() -> None:
    table = one(profile(), "top-down")
    assert [(row.name, row.cells) for row in table.rows] == [
        ("all", ["1.000 s", "100.0 %", "0"]),
        ("  p-7", ["1.000 s", "100.0 %", "0"]),
        ("    main", ["0.999 s", "99.9 %", "0.099 s"]),
        ("      call", ["0.900 s", "90.0 %", "0"]),
        ("        lock", ["0.600 s", "60.0 %", "0.600 s"]),
        ("        call", ["0.300 s", "30.0 %", "0"]),
        ("          call", ["0.300 s", "30.0 %", "0.300 s"]),
    ]
    assert table.left_out == "1 call under 0.5 %"


def test_calls_from_the_inside_out() -> None:
    table = one(profile(), "bottom-up", rows=6)
    assert [row.name for row in table.rows] == [
        "all",
        "  lock",
        "    call",
        "      main",
        "  call",
        "    call",
    ]
    assert table.left_out == "3 more rows and 1 call under 0.5 %"


def test_rows_hang_together_however_few() -> None:
    for most in range(1, 8):
        names = [row.name for row in one(profile(), "top-down", rows=most, min_share=1e-9).rows]
        depths = [(len(name) - len(name.lstrip())) // 2 for name in names]
        assert len(names) == most
        assert depths[0] == 0
        assert all(after <= before + 1 for before, after in zip(depths, depths[1:], strict=False))


def test_another_value_and_another_unit() -> None:
    table = one(profile(), "functions", value="count", min_share=1e-9)
    assert [(row.name, *row.cells[:2]) for row in table.rows][:2] == [
        (printable(HOSTILE), "90", "90.0 %"),
        ("lock", "6", "6.0 %"),
    ]
    assert one(profile(), "functions", value="count", unit="ioctls").rows[0].cells[0] == "90 ioctls"
    with pytest.raises(StallscopeError):
        one(profile(), "functions", value="x")


def compared() -> Profile:
    samples = [
        Sample((MAIN, CALL), (900 * MS, 400 * MS), WHO),
        Sample((MAIN, LOCK), (100 * MS, 100 * MS), WHO),
        Sample((MAIN, Frame("gone")), (0, 250 * MS), WHO),
        Sample((MAIN, Frame("new")), (50 * MS, 0), WHO),
    ]
    return Profile([ValueType("after", "nanoseconds"), ValueType("before", "nanoseconds")], samples)


def test_what_changed_most_comes_first() -> None:
    table = one(compared(), "functions")
    assert table.columns == ["self before", "after", "change", "total before", "after", "change"]
    assert [(row.name, row.cells) for row in table.rows] == [
        ("call", ["0.400 s", "0.900 s", "+0.500 s"] * 2),
        ("gone", ["0.250 s", "0", "-0.250 s"] * 2),
        ("new", ["0", "0.050 s", "+0.050 s"] * 2),
        ("main", ["0", "0", "0", "0.750 s", "1.050 s", "+0.300 s"]),
        ("lock", ["0.100 s", "0.100 s", "0"] * 2),
    ]


@pytest.mark.parametrize("value", ["after", "before"])
def test_calls_before_and_after_whichever_is_drawn(value: str) -> None:
    table = one(compared(), "top-down", value=value)
    assert table.columns == ["before", "after", "change"]
    found = {row.name.strip(): row.cells for row in table.rows}
    assert found["main"] == ["0.750 s", "1.050 s", "+0.300 s"]
    assert found["call"] == ["0.400 s", "0.900 s", "+0.500 s"]
    assert found["gone"] == ["0.250 s", "0", "-0.250 s"]
    assert found["new"] == ["0", "0.050 s", "+0.050 s"]
    assert [row.name.strip() for row in table.rows if row.name.startswith(" " * 6)] == ["call", "gone", "lock", "new"]
    assert table.left_out == ""


def test_the_smallest_width_is_one_of_both_sides() -> None:
    table = one(compared(), "bottom-up", min_share=0.2)
    assert [row.name.strip() for row in table.rows] == ["all", "call", "main", "gone", "main"]
    assert table.left_out == "2 calls under 20 %"


def test_an_empty_profile_has_empty_tables() -> None:
    for table in tables(Profile([OFF_CPU]), WriteOptions()):
        assert (table.rows, table.left_out) == ([], "")


def test_a_stack_without_frames_and_one_of_thousands() -> None:
    deep = (MAIN,) * 5_000
    content = Profile([OFF_CPU], [Sample((), (5,)), Sample(deep, (5,))])
    functions, down, up = tables(content, WriteOptions())
    assert [row.cells for row in functions.rows] == [["5 ns", "50.0 %", "5 ns", "50.0 %"]]
    assert (len(down.rows), len(up.rows)) == (40, 40)


def test_the_summary_tells_what_is_missing() -> None:
    assert summary(profile(), WriteOptions(notes=("a note",))) == [
        "1.00 s off-cpu",
        "lost: 2 lost events, 1 sample with a negative value",
        "a note",
        printable(HOSTILE),
    ]
    assert summary(compared(), WriteOptions())[:2] == ["750 ms before, 1.05 s after", "lost: not recorded"]
    assert summary(Profile([COUNT], lost={"x": 0}), WriteOptions(subtitle="mine")) == ["mine", "lost: 0"]


def test_threads_by_what_they_took() -> None:
    def who(pid: int, tid: int, name: str) -> Labels:
        return (("pid", pid), ("process", f"p{pid}"), ("thread", name), ("tid", tid))

    samples = [
        Sample((MAIN, CALL), (600 * MS, 6), who(7, 8, HOSTILE)),
        Sample((MAIN, LOCK), (200 * MS, 6), who(7, 8, HOSTILE)),
        Sample((MAIN,), (150 * MS, 3), who(9, 9, "b")),
        Sample((), (46 * MS, 3), WHO),
        Sample((MAIN,), (4 * MS, 3), who(9, 10, "tiny")),
        Sample((MAIN,), (-9 * MS, 3), who(9, 11, "negative")),
    ]
    table = one(Profile([OFF_CPU, COUNT], samples), "threads")
    assert [(row.cells, row.name, row.origin) for row in table.rows] == [
        (["0.800 s", "80.0 %"], f"p7-7: {printable(HOSTILE)}-8", "75.0 % call [Python, lib.so]"),
        (["0.150 s", "15.0 %"], "p9-9: b-9", "100.0 % main [native]"),
        (["0.046 s", "4.6 %"], "p-7: [unknown]", "-"),
    ]
    assert table.left_out == "2 more threads"
    assert len(one(Profile([OFF_CPU, COUNT], samples), "threads", rows=1).rows) == 1
    with pytest.raises(StallscopeError, match="names no threads"):
        one(profile(), "threads")


def test_threads_of_a_comparison() -> None:
    types = [ValueType("after", "count"), ValueType("before", "count")]
    thread: Labels = (("thread", "a"),)
    samples = [
        Sample((MAIN,), (3, 9), thread),
        Sample((LOCK,), (4, 0), thread),
        Sample((MAIN,), (0, 7), (("thread", "b"),)),
    ]
    table = one(Profile(types, samples), "threads")
    assert table.columns == ["before", "after", "change"]
    assert [(row.cells, row.name, row.origin) for row in table.rows] == [
        (["9", "7", "-2"], "a", "57.1 % lock [kernel]"),
        (["7", "0", "-7"], "b", "-"),
    ]


def test_steps_are_those_of_the_summary() -> None:
    steps = list(steps_of(recorded()))
    table = one(replace(profile(), steps=steps), "steps")
    assert list(table.lines) == list(text_of(steps, 40))
    assert table.lines[0].startswith("3 steps of demo:train_step")
    with pytest.raises(StallscopeError, match="the input has no steps"):
        one(profile(), "steps")
