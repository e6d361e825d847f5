from __future__ import annotations

import io

import pytest
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.table import plain as table
from stallscope.converters.writers.table.rows import tables

TYPES = [ValueType("off-cpu", "nanoseconds")]
HOSTILE = "a|b\x1b[2J\n\u202e`"


def text(profile: Profile, **options: object) -> str:
    file = io.BytesIO()
    table.write(profile, file, WriteOptions(**options))  # type: ignore[arg-type]
    return file.getvalue().decode()


def profile() -> Profile:
    samples = [
        Sample((Frame("main"), Frame(HOSTILE, "kernel")), (12_000_000_000,)),
        Sample((Frame("main"),), (40_000_000,)),
    ]
    return Profile(TYPES, samples, title="off-CPU\x07", lost={"lost events": 0})


def test_numbers_are_aligned_and_names_come_last() -> None:
    assert text(profile(), form="functions") == (
        "off-CPU\\x07\n"
        "12.0 s off-cpu\n"
        "lost: 0\n"
        "\n"
        "Functions\n"
        "   self            total           function\n"
        "12.00 s  99.7 %  12.00 s   99.7 %  a|b\\x1b[2J\\x0a\\u202e` [kernel]\n"
        " 0.04 s   0.3 %  12.04 s  100.0 %  main [native]\n"
    )


def test_calls_are_indented() -> None:
    assert (
        text(profile(), form="top-down", title="t").splitlines()[4:]
        == [
            "Top-down: callers above what they call",
            "  total              self  function",
            "12.04 s  100.0 %        0  all",
            "12.04 s  100.0 %   0.04 s    main",
            "12.00 s   99.7 %  12.00 s      a|b\\x1b[2J\\x0a\\u202e`",
            "and 1 call under 0.5 %",
        ][:5]
    )


def test_what_is_left_out_is_said() -> None:
    assert text(profile(), form="functions", rows=1).splitlines()[-1] == "and 1 more function"


def test_nothing_steers_the_terminal() -> None:
    raw = text(profile(), notes=(HOSTILE,), subtitle=HOSTILE)
    assert raw.replace("\n", "").isprintable()


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_row_is_a_line_of_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "begins" + "x" * 1_500 + "ends"
    content = Profile(TYPES, [Sample((Frame(name),), (5,))], title="t")
    file = Terminal()
    table.write(content, file, WriteOptions())
    lines = file.getvalue().decode().splitlines()
    assert max(map(len, lines)) == columns
    rows = [line for line in lines if "begins" in line]
    assert len(rows) == 3
    assert all("ends" in line and "…" in line for line in rows)
    assert rows[0].endswith("ends [native]")
    assert text(content).count(name) == 3


def test_a_very_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "5")
    file = Terminal()
    table.write(Profile(TYPES, [Sample((Frame("short name"),), (5,))]), file, WriteOptions())
    assert b"short name [native]" in file.getvalue()


def test_threads_are_two_columns_of_text_that_fit_on_a_terminal() -> None:
    labels = (("thread", "w" * 90), ("tid", 7))
    samples = [Sample((Frame(HOSTILE),), (3_000,), labels), Sample((Frame("f" * 90),), (1_000,), (("thread", "b"),))]
    made = Profile(TYPES, samples)
    assert text(made, form="threads").splitlines()[3:] == [
        "Threads",
        "   total          thread" + " " * 86 + "  top function, its own share of the thread",
        f"3.000 µs  75.0 %  {'w' * 90}-7  100.0 % a|b\\x1b[2J\\x0a\\u202e` [native]",
        f"1.000 µs  25.0 %  b{' ' * 91}  100.0 % {'f' * 90} [native]",
    ]
    (content,) = tables(made, WriteOptions(form="threads"))
    assert max(map(len, table.lines(content, 80))) <= 80
