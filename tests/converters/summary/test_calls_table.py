"""The table of calls and their distribution, as they are printed."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.calls import BUCKETS, CallTimes, together
from stallscope.converters.model.display import USUAL, By, CallsView
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize

US, MS = 1_000, 1_000_000


def raw(*calls: CallTimes, width: int = 160, view: CallsView = USUAL) -> list[str]:
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    file = io.StringIO()
    render(replace(summarize(Profile(values, calls=list(calls))), view=view), file, width=width, color=False)
    return file.getvalue().splitlines()


def shown(*calls: CallTimes, width: int = 160, view: CallsView = USUAL) -> list[str]:
    return [" ".join(line.split()) for line in raw(*calls, width=width, view=view)]


def call(name: str, count: int, total: int, bucket: int, pid: int = 1) -> CallTimes:
    latencies = [0] * BUCKETS
    latencies[bucket] = count
    return CallTimes(name, "/dev/x", pid, "train", count, total, 5 * US, 8 * US, total // 2, 0, tuple(latencies))


def test_figures_have_columns_where_there_is_room() -> None:
    failing = call("A", 4, 20 * MS, 17)
    failing.errors["EIO"] = 3
    failing.locks = "API lock read, all GPUs"
    lines = shown(failing, call("B", 1, 5 * MS, 17))
    assert (
        "Calls Total Ratio Min Max Ave p50 p99 CPU Blocked Queued Errors Call (Ratio: of the time in all calls)"
        in lines
    )
    (row,) = [line for line in lines if line.startswith("4 20.00 ms")]
    assert "80.0 % 5.00 µs 8.00 µs 5.00 ms" in row
    assert row.endswith("50.0 % 50.0 % 0.0 % 3 A /dev/x")
    assert "takes API lock read, all GPUs; 3 EIO; train (1)" in lines


def test_calls_inside_calls_have_their_own_time_apart() -> None:
    outer = replace(call("A", 4, 20 * MS, 17), inner=15 * MS)
    lines = shown(outer, call("B", 4, 15 * MS, 17))
    assert any(line.startswith("Calls Total Self Ratio Min Max Ave p50 p99 CPU Blocked Queued Call") for line in lines)
    assert [line.split(" % ")[0] for line in lines if line.startswith("4 ") and "/dev/x" in line] == [
        "4 15.00 ms 15.00 ms 75.0",
        "4 20.00 ms 5.00 ms 25.0",
    ]


def test_a_call_has_a_line_of_figures_where_there_is_no_room() -> None:
    """Checks that nothing is cut, nor wider than the terminal."""
    name = "cudaGetDeviceProperties_v2_with_a_long_name"
    outer = replace(call(name, 123_456, 20 * MS, 17), inner=15 * MS)
    lines = raw(outer, call("B", 4, 15 * MS, 17), width=80)
    assert max(map(len, lines)) <= 80
    head = lines.index(
        next(line for line in lines if line.split() == ["Calls", "Total", "Self", "Ratio", "Min", "Max", "Ave", "p99"])
    )
    place = next(i for i, line in enumerate(lines) if line == f"{name} /dev/x")
    assert place > head
    assert lines[place + 1].split()[:5] == ["123,456", "20.00", "ms", "5.00", "ms"]
    assert len(lines[place + 1]) == len(lines[head])
    assert lines[place + 2].strip().startswith("p50 ")
    assert "50.0 % on a core, 50.0 % blocked, 0.0 % queued; train (1)" in lines[place + 2]


def test_a_distribution_fits_into_80_columns() -> None:
    lines = raw(call("A", 4, 20 * MS, 17), width=80)
    assert [line for line in lines if line.endswith(f"|{'*' * 40}|")]


@pytest.mark.parametrize("by", ["process", "thread"])
def test_rows_can_be_of_processes_and_threads(by: By) -> None:
    one, two = (replace(call("A", 1, 4 * MS, 17, pid), thread="train", tid=pid) for pid in (7, 8))
    other = replace(one, thread="loa\x1bder", tid=9)
    both = replace(together([one, other]), threads=[one, other])
    lines = shown(both, replace(together([two]), threads=[two]), view=CallsView("total", by))
    rows = [line.split("/dev/x ")[1] for line in lines if line.startswith(("1 ", "2 ")) and "/dev/x " in line]
    expected = {
        "process": ["train (7)", "train (8)"],
        "thread": ["train (7)::loa\\x1bder (9)", "train (7)::main", "train (8)::main"],
    }
    assert rows == expected[by]


def test_the_number_of_rows_can_be_given() -> None:
    lines = shown(*(call(f"C{i:02}", 1, MS, 17) for i in range(20)), view=CallsView("calls", rows=18))
    assert any(line.endswith("2 more calls") for line in lines)


def test_few_processes_are_named() -> None:
    lines = shown(*(call("A", 1, MS, 17, pid) for pid in range(1, 6)))
    assert "train (1, 2, 3), 2 more processes" in lines


def test_ranks_are_named_by_their_numbers() -> None:
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    made = Profile(values, calls=[call("A", 1, MS, 17, pid) for pid in (1, 2, 3)])
    made.processes = [ProcessTimes(2, "train", ranks={"rank": "7"}), ProcessTimes(3, "train", ranks={"rank": "8"})]
    file = io.StringIO()
    render(summarize(made), file, width=160, color=False)
    assert "rank 7 (pid 2), rank 8 (pid 3), train (1)" in " ".join(file.getvalue().split())


def test_rows_that_do_not_fit_share_one() -> None:
    lines = shown(*(call(f"C{i:02}", 1, MS, 17) for i in range(20)))
    assert any(line.endswith("5 more calls") for line in lines)


def test_distribution_is_that_of_bcc() -> None:
    slow, fast = call("A", 4, 20 * MS, 17), call("B", 2, 5 * MS, 5)
    two = CallTimes(**{**{f: getattr(slow, f) for f in slow.__slots__}, "latencies": tuple(
        4 if i == 17 else 1 if i == 20 else 0 for i in range(BUCKETS))})  # fmt: skip
    lines = shown(two, fast)
    assert lines[lines.index("A /dev/x") + 1] == "usecs count distribution"
    assert f"4 -> 7 4 |{'*' * 40}|" in lines
    assert f"8 -> 15 1 |{'*' * 10} |" in lines
    assert lines[lines.index("B /dev/x") + 1] == "nsecs count distribution"
    assert f"512 -> 1023 2 |{'*' * 40}|" in lines


def test_hostile_names_are_made_safe() -> None:
    hostile = CallTimes("0x1", "/dev/\x1b[31m", 1, "tr\nain\u202e", 1, 9, 9, 9, 0, 0, (1,) + (0,) * (BUCKETS - 1))
    text = "\n".join(shown(hostile))
    assert "\x1b" not in text
    assert "/dev/\\x1b[31m" in text
    assert "tr\\x0aain\\u202e (1)" in text
