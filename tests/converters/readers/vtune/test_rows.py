from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import ValueType
from stallscope.converters.readers.vtune.rows import BAD, BLANK, MAX_DEPTH, NOWHERE, Columns, Row, Rows, parse_header

HEADER = "Function Stack,CPU Time:Self,Wait Time:Self,Module"
SECOND = 1e9


def make_rows(header: str = HEADER) -> Rows:
    """The second number of a row is that of its name among the names that came before."""
    columns = parse_header(header)
    assert columns is not None
    return rows_of(columns, {})


def rows_of(columns: Columns, names: dict[str, int]) -> Rows:
    def parse(fields: list[str]) -> tuple[int, int]:
        text = fields[columns.tree]
        spaces = len(text) - len(text.lstrip(" "))
        if spaces >= MAX_DEPTH:
            raise ValueError
        return spaces, names.setdefault(text.strip() + "/" + fields[-1], len(names))

    return Rows("x", columns, parse)


def test_header() -> None:
    columns = parse_header("Function;Function Stack;CPU Time;Module;Source File")
    text = "Function;Function Stack;CPU Time;Module;Source File"
    assert columns == Columns(";", 5, 1, 0, 3, 4, [(2, ValueType("CPU Time", "nanoseconds"))], text)
    assert columns.upwards
    columns = parse_header("Module\tFunction Stack\tAllocation Size:Self\tCPU Time:Self\tCPU Time:Total")
    assert columns is not None
    assert not columns.upwards
    assert columns.values == [(3, ValueType("CPU Time", "nanoseconds")), (2, ValueType("Allocation Size", "bytes"))]
    assert parse_header("Function,CPU Time:Self") is None


def test_rows_that_were_seen_before() -> None:
    rows = make_rows()
    assert rows[" f,0.5,0,a"] == (1, 0, (0.5 * SECOND, 0))
    assert rows["   f,0.25,2ms,a"] == (3, 0, (0.25 * SECOND, 0.002 * SECOND))
    assert rows[" f,0,,a"] == (1, 0, ())
    assert rows[" f,0,,b"] == (1, 1, ())
    assert list(rows) == [" f,0,,a", " f,0,,b"]


def test_what_quotation_marks_hold_is_not_cut() -> None:
    rows = make_rows()
    for time in ("1", "2", "3.5"):
        assert rows[f'  "f<1,0,a>",{time},0,a'] == (2, 0, (float(time) * SECOND, 0))
        assert rows[f' "f ""g"",7",{time},0,a'] == (1, 1, (float(time) * SECOND, 0))
        assert rows[f'" h",{time},0,"a,{time},0,b"'][2] == (float(time) * SECOND, 0)
        assert rows[f' "f,{time},0,a'] == (NOWHERE, BAD, ())
        assert rows[f' f,"{time}",0,a'] == rows[f" f,{time},0,a"]


@pytest.mark.parametrize("line", ["f", "f,1", "f,x,0,a", "f,-1,0,a", "f,.5,0,a", "f,1_0,0,a", "f,inf,0,a"])
def test_bad_rows_stay_bad(line: str) -> None:
    rows = make_rows()
    assert rows["f,1,0,a"] == (0, 0, (SECOND, 0))
    assert rows[line] == rows[line] == (NOWHERE, BAD, ())


def test_too_deep_and_blank() -> None:
    rows = make_rows()
    assert rows[" " * (MAX_DEPTH - 1) + "f,1,0,a"][0] == MAX_DEPTH - 1
    assert rows[" " * MAX_DEPTH + "f,1,0,a"] == (NOWHERE, BAD, ())
    assert rows["  "] == rows[""] == (NOWHERE, BLANK, ())


def test_shares_are_refused_wherever_they_come() -> None:
    rows = make_rows()
    assert rows["f,1,0,a"][1] == 0
    with pytest.raises(StallscopeError, match="percentages"):
        rows["f,5%,0,a"]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stallscope.converters.readers.vtune.rows._MAX_CACHED", 10_000)
    rows = make_rows()
    for i in range(1000):
        assert rows[f" f{i},0,0,a"] == (1, i, ())
        assert rows[f"  f{i},1,0,a"] == (2, i, (SECOND, 0))
    assert len(rows) < 50


PIECES = [
    " ",
    "  ",
    "f",
    '"',
    '""',
    ",",
    ",,",
    "0",
    "0.0",
    "1.5",
    "12.345678",
    "ms",
    ".",
    "a",
    "\t",
    "\u0663",
    "-0",
    "Total",
]
LINES = st.lists(st.lists(st.sampled_from(PIECES), max_size=9).map("".join), max_size=30)


@given(
    LINES,
    st.sampled_from(
        [
            HEADER,
            "Function Stack,CPU Time:Self,Module",
            "Module,Function Stack,CPU Time:Self",
            "CPU Time:Self,Function Stack,Module",
            "Function Stack,Wait Time:Self,Module,CPU Time:Self",
        ]
    ),
)
def test_what_was_seen_before_does_not_change_what_a_row_means(lines: list[str], header: str) -> None:
    columns = parse_header(header)
    assert columns is not None
    names: dict[str, int] = {}
    rows = rows_of(columns, names)
    starts = [" f", '"f, g"', '  "f" ']
    lines = [f"{start},{line},a" for line in lines for start in starts] + lines * 2
    for line in lines:
        fresh: Row = rows_of(columns, names)[line]
        assert rows[line] == fresh
