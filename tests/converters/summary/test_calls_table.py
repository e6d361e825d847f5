"""The table of calls and their distribution, as they are printed."""

from __future__ import annotations

import io

from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.calls import BUCKETS, CallTimes
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize

US, MS = 1_000, 1_000_000


def shown(*calls: CallTimes, width: int = 160) -> list[str]:
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    file = io.StringIO()
    render(summarize(Profile(values, calls=list(calls))), file, width=width, color=False)
    return [" ".join(line.split()) for line in file.getvalue().splitlines()]


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
        "Time Share Count Errors Mean p50 p99 Max On core Blocked Queued Call (Share: of the time in all calls)"
        in lines
    )
    (row,) = [line for line in lines if line.startswith(("20.0 ms", "20.00 ms"))]
    assert "80.0 % 4 3 5.00 ms" in row
    assert row.endswith("50.0 % 50.0 % 0.0 % A /dev/x")
    assert "takes API lock read, all GPUs; 3 EIO; train (1)" in lines


def test_and_are_below_the_name_where_there_is_not() -> None:
    lines = " ".join(shown(call("A", 4, 20 * MS, 17), width=70))
    assert "4 × 5.00 ms, p99" in lines
    assert "50.0 % on a core, 50.0 % blocked, 0.0 % queued" in lines


def test_few_processes_are_named() -> None:
    lines = shown(*(call("A", 1, MS, 17, pid) for pid in range(1, 6)))
    assert "train (1), train (2), train (3), 2 more processes" in lines


def test_rows_that_do_not_fit_share_one() -> None:
    lines = shown(*(call(f"C{i:02}", 1, MS, 17) for i in range(20)))
    assert any(line.endswith("5 more calls") for line in lines)


def test_distribution_is_that_of_bcc() -> None:
    slow, fast = call("A", 4, 20 * MS, 17), call("B", 2, 5 * MS, 5)
    two = CallTimes(**{**{f: getattr(slow, f) for f in slow.__slots__}, "latencies": tuple(
        4 if i == 17 else 1 if i == 20 else 0 for i in range(BUCKETS))})  # fmt: skip
    lines = shown(two, fast)
    assert "A /dev/x: usecs count distribution" in lines
    assert f"4 -> 7 4 |{'*' * 40}|" in lines
    assert f"8 -> 15 1 |{'*' * 10} |" in lines
    assert "B /dev/x: nsecs count distribution" in lines
    assert f"512 -> 1023 2 |{'*' * 40}|" in lines


def test_hostile_names_are_made_safe() -> None:
    hostile = CallTimes("0x1", "/dev/\x1b[31m", 1, "tr\nain\u202e", 1, 9, 9, 9, 0, 0, (1,) + (0,) * (BUCKETS - 1))
    text = "\n".join(shown(hostile))
    assert "\x1b" not in text
    assert "/dev/\\x1b[31m" in text
    assert "tr\\x0aain\\u202e (1)" in text
