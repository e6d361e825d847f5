"""The matrix, as it is printed."""

from __future__ import annotations

import io

from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize


def shown(call: SharedCall, process: str) -> list[str]:
    timed = [CallTimes("A", "/dev/x", pid, process, 3, 100, 1, 50) for pid in (1, 2, 3)]
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    file = io.StringIO()
    render(summarize(Profile(values, calls=timed, shared=[call])), file, width=200, color=False)
    return [" ".join(line.split()) for line in file.getvalue().splitlines()]


def test_rows_wait_and_columns_are_inside() -> None:
    waits = {(1, 3): 60_000_000, (2, 3): 20_000_000, (3, 1): 20_000_000}
    lines = shown(SharedCall("A", "/dev/x", 100, 90, 250, 100, 4000, 20, 200, {1: 10, 3: 80}, waits), "a\x1b[31m")
    first = lines.index("Waited 1 3 Waits in A /dev/x, while this process was the next to return")
    assert not any("\x1b" in line for line in lines)
    assert lines[first + 1].startswith("60.0 ms - 60.0 % ")
    assert lines[first + 1].endswith("(1)")
    assert lines[first + 3].startswith("20.0 ms 20.0 % - ")
    assert lines[first + 4] == "2.5 inside on average, two or more for 90.0 % of its time; 4.0 times as long"
