"""The matrix, as it is printed."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize

TITLE = "A /dev/x: whom they waited for inside, who was next to return (%)"


def printed(call: SharedCall, process: str = "train", *, width: int = 200) -> list[str]:
    """Lines that are printed, from the title on."""
    timed = [CallTimes("A", "/dev/x", pid, process, 3, 100, 1, 50) for pid in {0, *call.turns}]
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    file = io.StringIO()
    render(summarize(Profile(values, calls=timed, shared=[call])), file, width=width, color=False)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return lines[lines.index(TITLE) :]


def shared(waits: dict[tuple[int, int], int]) -> SharedCall:
    pids = {pid for pair in waits for pid in pair}
    return SharedCall("A", "/dev/x", 100, 90, 250, 100, 3400, 20, 200, dict.fromkeys(pids, 10), waits)


def test_rows_wait_and_columns_are_inside() -> None:
    waits = {(1, 3): 60_000_000, (2, 3): 20_000_000, (3, 1): 20_000_000, (2, 1): 90_000}
    lines = printed(shared(waits), "a\x1b[31m")
    assert [line.split() for line in lines[1:6]] == [
        ["Waited", "A", "B", "C", "Process"],
        ["A", "60.0", "ms", "-", "-", "100", "a\\x1b[31m", "(1)"],
        ["B", "20.1", "ms", "<1", "-", "100", "a\\x1b[31m", "(2)"],
        ["C", "20.0", "ms", "100", "-", "-", "a\\x1b[31m", "(3)"],
        ["100", "ms", "20", "-", "80", "all"],
    ]
    assert lines[6] == (
        "2.5 inside on average, two or more for 90.0 % of its time; a call takes 4.0 times as long as alone"
    )


@pytest.mark.parametrize("processes", [8, 10])
def test_many_processes_fit_into_80_columns(processes: int) -> None:
    """A row has one line: nothing is wrapped or cut."""
    pids = [4_190_000 + i for i in range(processes)]
    waits = {(one, other): 1_234_567_890 for one in pids for other in pids if one != other}
    waits |= {(one, pids[3]): 123_456_789_012 for one in pids if one != pids[3]}
    lines = printed(shared(waits), "python3", width=80)[2 : 2 + processes]
    assert [line.split()[0] for line in lines] == list("ABCDEFGHIJ"[:processes])
    assert all(line.endswith(f"python3 ({pid})") for line, pid in zip(lines, pids, strict=True))
    column = [line.index("(") for line in lines]
    assert len(set(column)) == 1


def test_the_least_of_very_many_share_a_row() -> None:
    pids = list(range(1, 31))
    waits = {(one, other): 1000 - 10 * max(one, other) for one in pids for other in pids if one != other}
    lines = printed(shared(waits), width=80)
    rows = [line.split() for line in lines[2:12]]
    assert [row[0] for row in rows] == [*"ABCDEFGHI", "…"]
    assert lines[11].endswith("21 others")
    for row in rows:
        whole = sum(float(cell) for cell in row[3 : 3 + 10] if cell not in ("-", "<1"))
        assert whole == pytest.approx(100, abs=6), row


def test_what_the_factor_is_of() -> None:
    waits = {(1, 3): 60, (3, 1): 20}
    hardly = replace(shared(waits), alone=2, alone_time=20)
    told = "a call takes 170.0 times as long as its turn, from the return before it to its own"
    assert printed(hardly)[5].endswith(told)
    none = SharedCall("A", "/dev/x", 100, 90, 250, waits=waits)
    assert printed(none)[5].endswith("; no call returned")
