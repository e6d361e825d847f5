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
from .comparing import Change, Comparison, Moved
from .first import answer
from .graph import PROCESS
from .steps import step_rows

_TITLE = "Comparison of two runs"
_NOISE = {"yes": "noise", "no": "change", "?": "not known"}


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
    yield from (f"<p>{escape(line)}</p>\n" for line in telling.sides(comparison))
    yield from (f"<p>{escape(line)}</p>\n" for line in telling.numbers(comparison))
    for change in comparison.steps:
        yield from _table("A step, ms; not judged", ("Before", "After", "Change", "What"), list(step_rows(change)))
    yield from _changes(comparison.changes)
    if comparison.locks:
        heads = ("Before", "After", "Change", "Mean wait before", "Mean wait after", "Lock")
        rows = [locks.row(each) for each in comparison.locks]
        yield from _table("Waits for locks, s of threads per s of the trace; not judged", heads, rows)
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


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    if not changes:
        return
    heads = ("Before", "After", "Change", "±", "Chance without a change", "Noise or change", "What")
    yield from _table(
        "Times by kind and place, s of threads per s of the trace", heads, [_row(each) for each in changes]
    )


def _row(each: Change) -> tuple[str, ...]:
    chance = "" if each.chance is None else f"{each.chance:.2g}"
    noise = _NOISE[telling.noise(each)]
    numbers = (f"{each.before:.2f}", f"{each.after:.2f}", f"{each.difference:+.2f}", f"{each.margin:.2f}")
    return (*numbers, chance, noise, telling.what(each.key))


def _verdicts(comparison: Comparison) -> Iterator[str]:
    if lines := telling.verdict_lines(comparison):
        yield "<h2>Verdicts that differ</h2>\n<p>They are not judged: verdicts have no intervals.</p>\n<ul>\n"
        yield from (f"<li>{escape(line.strip())}</li>\n" for line in lines)
        yield "</ul>\n"


def _moved(caption: str, moved: Sequence[Moved]) -> Iterator[str]:
    if moved:
        rows = [
            (f"{each.before:.2f}", f"{each.after:.2f}", f"{each.difference:+.2f}", telling.whose(each))
            for each in moved
        ]
        yield from _table(f"{caption}, not judged", ("Before", "After", "Change", "What"), rows)
