from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.table import markdown as table_markdown

TYPES = [ValueType("off-cpu", "nanoseconds")]


def text(profile: Profile, **options: object) -> str:
    file = io.BytesIO()
    table_markdown.write(profile, file, WriteOptions(**options))  # type: ignore[arg-type]
    return file.getvalue().decode()


def named(name: str) -> Profile:
    return Profile(TYPES, [Sample((Frame(name, "kernel", Module("/lib/a_b.so")),), (5_000,))], title="t")


def test_a_document() -> None:
    samples = [Sample((Frame("main"), Frame("operator|<int>")), (12_000,)), Sample((Frame("main"),), (500,))]
    content = Profile(TYPES, samples, title="off-CPU of <b>_x_", lost={"lost events": 1})
    assert text(content).splitlines() == [
        "# off-CPU of \\<b\\>\\_x\\_",
        "",
        "- 12.5 µs off-cpu",
        "- lost: 1 lost event",
        "",
        "## Functions",
        "",
        "|     self |  share |    total |   share | function | in |",
        "|---------:|-------:|---------:|--------:|---|---|",
        "| 12.00 µs | 96.0 % | 12.00 µs |  96.0 % | `operator\\|<int>` | native |",
        "|  0.50 µs |  4.0 % | 12.50 µs | 100.0 % | `main` | native |",
        "",
        "## Top-down: callers above what they call",
        "",
        "```text",
        "   total               self  function",
        "12.50 µs  100.0 %         0  all",
        "12.50 µs  100.0 %   0.50 µs    main",
        "12.00 µs   96.0 %  12.00 µs      operator|<int>",
        "```",
        "",
        "## Bottom-up: functions above what calls them",
        "",
        "```text",
        "   total               self  function",
        "12.50 µs  100.0 %         0  all",
        "12.00 µs   96.0 %         0    operator|<int>",
        "12.00 µs   96.0 %  12.00 µs      main",
        " 0.50 µs    4.0 %   0.50 µs    main",
        "```",
    ]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("a`b", "``a`b``"),
        ("a``b`", "``` a``b` ```"),
        ("`", "`` ` ``"),
        (" a ", "`  a  `"),
        ("a|b", "`a\\|b`"),
        ("a\\|b", "`a\\\\|b`"),
        ("*a* _b_ <i> [x](y) www.a.b #1 @you", "`*a* _b_ <i> [x](y) www.a.b #1 @you`"),
        ("a\nb\x1b", "`a\\x0ab\\x1b`"),
    ],
)
def test_names_are_code(name: str, cell: str) -> None:
    row = text(named(name), form="functions").splitlines()[-1]
    assert row == f"| 5.000 µs | 100.0 % | 5.000 µs | 100.0 % | {cell} | kernel, a\\_b.so |"


@pytest.mark.parametrize(
    ("title", "escaped"),
    [
        ("<script>&amp;", "\\<script\\>\\&amp;"),
        ("see http://x.y and www.x.y or a@b.c", "see http\\://x.y and www\\.x.y or a\\@b.c"),
        ("*a* _b_ `c` ~d~ |e| #f", "\\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\|e\\| \\#f"),
        ("[a](b) ![c](d) $x$", "\\[a\\](b) \\!\\[c\\](d) \\$x\\$"),
        ("a\n# b", "a\\\\x0a\\# b"),
    ],
)
def test_titles_and_notes_are_text(title: str, escaped: str) -> None:
    lines = text(named("f"), title=title, notes=(title,)).splitlines()
    assert lines[0] == f"# {escaped}"
    assert f"- {escaped}" in lines


def test_a_block_of_code_does_not_end_early() -> None:
    raw = text(named("```\n# out"), form="top-down")
    assert [line for line in raw.splitlines() if line.startswith("```")] == ["```text", "```"]


@given(st.text(st.characters(), min_size=1, max_size=12))
def test_a_name_is_one_cell_and_can_be_read_back(name: str) -> None:
    row = text(named(name), form="functions").splitlines()[-1]
    cells = re.split(r"(?<!\\)\|", row)
    assert len(cells) == 8
    code = cells[5].strip(" ")
    fence = re.match("`+", code)
    assert fence
    inner = code[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inner)
    if inner.startswith(" ") and inner.endswith(" ") and inner.strip(" "):
        inner = inner[1:-1]  # as CommonMark 6.1 takes one space from both ends
    assert inner.replace("\\|", "|") == printable(name)


def test_names_of_threads_are_code_and_their_functions_text() -> None:
    sample = Sample((Frame("operator|<b>"),), (5_000,), (("thread", "`a|<b>"),))
    lines = text(Profile(TYPES, [sample], title="t"), form="threads").splitlines()
    assert lines[-3:] == [
        "|    total |   share | thread | top function, its own share of the thread |",
        "|---------:|--------:|---|---|",
        "| 5.000 µs | 100.0 % | `` `a\\|<b> `` | 100.0 % operator\\|\\<b\\> \\[native\\] |",
    ]
