"""Writes the page of a comparison: its first sentence and tables, and a differential flame graph below.

The tables are text, there without the script, too. The graph is that of the HTML output (`writers.html`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import BinaryIO

from ...model import Profile
from ...writers.base.options import WriteOptions
from ...writers.html import writer as html
from ...writers.svg.text import escape
from . import locks, telling
from .changes import Change
from .comparing import Comparison
from .first import answer, caveat
from .graph import PROCESS
from .judgement import verdict
from .moved import Moved
from .steps import step_rows

_TITLE = "Comparison of two runs"


def write(comparison: Comparison, graph: Profile | None, file: BinaryIO) -> None:
    """Writes the page in UTF-8. ``graph``: of `graph.graph_of`."""
    head = f'<div id="compared">\n<h1>{_TITLE}</h1>\n{"".join(_parts(comparison))}</div>\n'
    style = resources.files(__package__).joinpath("page.css").read_text("utf-8")
    if graph is None:
        body = f'<body class="plain">\n{head}<p>There are no stacks on one of the sides: no graph.</p>\n'
        html.write_page(file, html.Page(_TITLE, style, body, html.as_function(""), {}))
        return
    html.write_within(graph, file, WriteOptions(roots=(PROCESS,), inverted=True), html.Around(head, style))


def _parts(comparison: Comparison) -> Iterator[str]:
    yield f'<p id="answer"><strong>{escape(answer(comparison))}</strong></p>\n'
    if text := caveat(comparison):
        yield f"<p>{escape(text)}</p>\n"
    yield from (f"<p>{escape(line)}</p>\n" for line in telling.sides(comparison))
    yield from (f"<p>{escape(line)}</p>\n" for line in telling.numbers(comparison))
    for change in comparison.steps:
        yield from _table("A step", ("Before", "After", "Change", "What"), list(step_rows(change)))
    yield from _changes(comparison)
    if comparison.locks:
        heads = ("Before", "After", "Change", "Mean wait before", "Mean wait after", "Lock")
        rows = [locks.row(each) for each in comparison.locks]
        yield from _table("Waits for locks, s of threads per s of the trace; not tested", heads, rows)
    yield from _verdicts(comparison)
    yield from _moved("Functions that run", comparison.functions)
    yield from _moved("Calls", comparison.calls)


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table whose last column is text, the others are numbers."""
    yield f"<table><caption>{escape(caption)}</caption>\n<thead><tr>"
    yield "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    yield "</tr></thead>\n<tbody>\n"
    for *numbers, text in rows:
        cells = "".join(f"<td>{escape(each)}</td>" for each in numbers)
        yield f'<tr>{cells}<th scope="row">{escape(text)}</th></tr>\n'
    yield "</tbody></table>\n"


def _changes(comparison: Comparison) -> Iterator[str]:
    if not comparison.changes:
        return
    name, of_runs = telling.range_name(comparison), telling.are_of_runs(comparison)
    tests = ("±", "Test") if comparison.judged else ()
    heads = ("Before", "After", "Change", f"{name} before", f"{name} after", *tests, "What")
    rows = [
        (*_rates(each), *telling.ranges(each, of_runs=of_runs), *_test(each)[: len(tests)], telling.what(each.key))
        for each in comparison.changes
    ]
    yield from _table("Times by kind and place, s of threads per s of the trace", heads, rows)


def _test(each: Change) -> tuple[str, str]:
    margin = f"{each.welch.margin:.2f}" if each.welch else ""
    return margin, verdict(each.chance, is_change=each.is_change)


def _rates(each: Change) -> tuple[str, str, str]:
    return f"{each.before.rate:.2f}", f"{each.after.rate:.2f}", f"{each.difference:+.2f}"


def _verdicts(comparison: Comparison) -> Iterator[str]:
    if lines := telling.verdict_lines(comparison):
        yield "<h2>Verdicts that differ</h2>\n<p>They are not tested.</p>\n<ul>\n"
        yield from (f"<li>{escape(line.strip())}</li>\n" for line in lines)
        yield "</ul>\n"


def _moved(caption: str, moved: Sequence[Moved]) -> Iterator[str]:
    if moved:
        rows = [
            (f"{each.before:.2f}", f"{each.after:.2f}", f"{each.difference:+.2f}", telling.whose(each))
            for each in moved
        ]
        yield from _table(f"{caption}, not tested", ("Before", "After", "Change", "What"), rows)
