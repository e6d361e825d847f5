"""Numbers that decide what is judged, said or shown stand in one table, `converters/facts/thresholds.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.threshold_types import Limit

PACKAGES = Path(__file__).resolve().parents[1] / "converters"
TABLES = ("facts/thresholds.py", "facts/collective_thresholds.py", "facts/connection_thresholds.py")
MODULES = [
    path
    for package in ("facts", "rules", "phrases", "summary", "scan")
    for path in sorted((PACKAGES / package).rglob("*.py"))
    if str(path.relative_to(PACKAGES)) not in TABLES
]
PLAIN = (0, 1, 2, 100)
"""Numbers of arithmetic, of indices, of one and several, of percentages."""
DIGITS = {"round", "lru_cache"}
"""Functions whose numbers are digits that are kept, or sizes of caches."""

NS = 1_000_000_000
ELSEWHERE: dict[str, tuple[str, tuple[float, ...]]] = {
    "facts/contention.py": ("ns of a second; the percentile that a column shows", (NS, 99)),
    "facts/core_threads.py": ("threads of a core that are kept", (8,)),
    "facts/facts.py": ("ns of a second", (NS,)),
    "facts/frame_names.py": ("longest names", (120, 4096)),
    "facts/gpus.py": ("digits of a number that is read", (4,)),
    "facts/identity.py": ("bits of ids, and what their uses are called", (32, 1, 24, 1, 2)),
    "facts/memory_waits.py": ("numbers of objects that are not recorded", (1, 2, 3)),
    "facts/server_waits.py": ("numbers of objects that are not recorded", (5, 6, 7)),
    "facts/links.py": ("ns of a second", (NS,)),
    "facts/jobs.py": ("digits of a number that is read", (9,)),
    "facts/scripts.py": ("longest name that the kernel keeps", (15,)),
    "facts/shared_frames.py": ("bound of work; bits", (4096, 1, 2)),
    "facts/slow_steps.py": ("bounds of work", (64, 3)),
    "facts/wait_objects.py": ("ns of a second", (NS,)),
    "facts/wait_sites.py": ("of a run, the names at its ends: the first and the last two", (3,)),
    "facts/waits.py": ("bound of work", (64,)),
    "rules/rank_states.py": ("standard deviations of a median deviation", (1.4826,)),
    "rules/herd.py": ("ns of a second", (NS,)),
    "rules/stuck_ranks.py": ("ns of a second", (NS,)),
    "phrases/cores.py": ("ns of a microsecond", (1_000,)),
    "phrases/ends_with.py": ("ns of a second", (NS,)),
    "phrases/jobs.py": ("parts of a share; parts that are told", (1_000_000, 0.95, 3)),
    "phrases/remarks.py": ("ms and ns of a second; millionths", (1_000, 10_000, 1_000_000, NS)),
    "phrases/sentences.py": ("digits of a share", (1_000, 1_000)),
    "phrases/slices.py": ("ns of a second", (NS,)),
    "phrases/steps.py": ("English ordinals", (11, 12, 13, 3, 10)),
    "phrases/words.py": ("ns of a second", (NS,)),
    "summary/asked_values_table.py": ("widths", (40, 120)),
    "summary/waits_for_table.py": ("width", (9,)),
    "summary/calls.py": ("quantiles that the JSON has", (0.5, 0.99)),
    "summary/calls_table.py": (
        "widths; ns of a microsecond; quantiles of columns",
        (150, 40, 1_000, 0.5, 0.99, 0.5, 2),
    ),
    "summary/calls_view.py": ("quantiles of columns", (0.5, 0.99)),
    "summary/contention_table.py": ("digits that are printed", (10, 0.05)),
    "summary/copies_table.py": ("columns; digits that are printed", (6, 1023.5, 1024, 9.995, 99.95)),
    "summary/events.py": ("ns of a second; digits that are printed", (NS, 0.05)),
    "summary/figures.py": ("version of the JSON", (3,)),
    "summary/outliers.py": ("standard deviations of a median deviation; digits of a share", (1.4826, 10**6, 10**6)),
    "scan/compare/judgement.py": ("digits that are printed", (0.0001,)),
    "scan/compare/graph.py": ("ns of a second", (NS,)),
    "scan/compare/locks.py": ("ns of a second", (NS,)),
    "scan/compare/steps.py": ("ns of units of time", (1e9, 1e6, 1e3)),
    "scan/compare/statistic.py": (
        "bounds of a numeric method; share of cases outside of a margin",
        (1e-300, 1e-14, 10_000, 64, 1e6, 0.05),
    ),
    "scan/compare/telling.py": ("version of the JSON", (2,)),
    "scan/conditions/figures.py": ("ns of a second", (NS,)),
    "scan/conditions/lexer.py": ("bounds of a text", (40, 1_000)),
    "scan/conditions/parser.py": ("bound of work", (50,)),
    "scan/conditions/words.py": ("ns of units of time", (1, 1_000, 1_000, 1_000_000, NS, 60 * NS)),
    "scan/live/keys.py": ("a byte; bound of work", (27, 27, 4_096)),
    "scan/live/state.py": ("a screen; columns", (10, 60)),
    "scan/live/view.py": ("columns and lines of a screen", (3, 4, 5, 6, 8, 8, 8, 8, 8, 11, 18, 18, 20, 80)),
    "scan/watch/line.py": ("version of the JSON; ns of a second", (1, NS, NS)),
    "scan/cost.py": ("millionths", (10_000, 1_000_000)),
    "scan/folder.py": ("bound of a file that is read", (512, 20)),
    "scan/page/data.py": ("version; ns of a millisecond", (1, 1_000_000)),
    "scan/page/evidence.py": ("rows of a page", (200, 5, 12, 8, 4)),
    "scan/page/graph.py": ("bound of a page", (200_000,)),
    "scan/page/steps.py": ("rows of a page", (1_000,)),
    "scan/page/jobs.py": ("rows of a page", (1_000,)),
    "scan/page/meetings.py": ("rows of a page", (1_000,)),
    "scan/page/lanes.py": (
        "layout of a block; bound of a page; parts of a chart; thousandths",
        (1, 800, 6_000_000, 5, 32, 1, 4, 4, 8, 4, 1_000),
    ),
    "scan/page/page.py": ("level of compression; bound of work", (6, 50_000)),
    "scan/page/tables.py": ("rows of a page", (63, 500, 20_000, 8)),
    "scan/page/host.py": ("rows of a page; units of a thousandth", (100, 1_000, 1_000, 1_000)),
    "scan/gpus.py": ("users that are named; units of a thousandth", (2, 1_000, 1_000, 1_000, 1_000)),
    "scan/jobs.py": ("digits of a share", (6,)),
    "scan/report.py": ("version of the JSON", (1,)),
    "scan/screen.py": ("lines", (40,)),
    "summary/render.py": ("ns of a second", (NS,)),
    "summary/sharing_table.py": ("digits that are printed", (200,)),
    "summary/ended_waits.py": ("bits of a key; the row of no thread", (32, 1)),
    "summary/found_steps.py": ("number of no place", (1,)),
    "summary/step_makers.py": ("threads that pass something on, one after the other", (3,)),
    "summary/steps.py": ("the percentile that is told", (90,)),
    "summary/steps_table.py": ("width; columns; digits that are printed", (160, 8, 99.5)),
    "summary/summarize.py": ("index", (3,)),
    "summary/tables.py": ("width", (110,)),
    "summary/terminal.py": ("widths", (100_000, 80, 80)),
}
"""Numbers that decide nothing of that, by module, with what they are."""
SCREEN = "summary/fitting.py"
"""Module on how many lines of what fit on a screen: all of it is layout."""


def numbers(tree: ast.Module) -> Iterator[float]:
    """Literals that may decide something."""
    digits = {
        id(argument)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in DIGITS
        for each in (*call.args[1:], *(keyword.value for keyword in call.keywords))
        for argument in ast.walk(each)
    }
    named = {id(each) for made in tree.body for each in assigned(made)}
    factors = {id(each) for compare in ast.walk(tree) if isinstance(compare, ast.Compare) for each in scaled(compare)}
    literals = [each for each in ast.walk(tree) if isinstance(each, ast.Constant) and id(each) not in digits]
    for each in sorted(literals, key=lambda each: (each.lineno, each.col_offset)):
        if type(each.value) in (int, float) and (each.value not in PLAIN or id(each) in named | factors):
            yield each.value


def assigned(made: ast.stmt) -> Iterator[ast.expr]:
    """Plain numbers that a module gives a name: ``_MOST = 2``."""
    if isinstance(made, (ast.Assign, ast.AnnAssign)) and made.value:
        yield from (each for each in ast.walk(made.value) if isinstance(each, ast.Constant) and each.value != 0)


def scaled(compare: ast.Compare) -> Iterator[ast.expr]:
    """Numbers by which a side of a comparison is multiplied or divided: ``2 * time > wall``."""
    for side in (compare.left, *compare.comparators):
        if isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Mult, ast.Div, ast.FloorDiv)):
            yield from (each for each in (side.left, side.right) if isinstance(each, ast.Constant))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGES)))
def test_numbers_that_decide_stand_in_the_table(path: Path) -> None:
    name = str(path.relative_to(PACKAGES))
    _, allowed = ELSEWHERE.get(name, ("", ()))
    if name != SCREEN:
        assert sorted(numbers(ast.parse(path.read_text()))) == sorted(allowed)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("_MOST = 2", [2]),
        ("_SHOWN, _MOST = 0.05, 3", [0.05, 3]),
        ("def f(x): return x > 0.3", [0.3]),
        ("def f(x): return x[:3]", [3]),
        ("def f(x, y): return 2 * x > y", [2]),
        ("def f(x, y): return x * 100 >= y", [100]),
        ("def f(x): return 100 * x, x[1], len(x) > 1, x[-1]", []),
        ("def f(x): return round(x, 6)", []),
    ],
)
def test_such_numbers_are_found(code: str, found: list[float]) -> None:
    assert list(numbers(ast.parse(code))) == found


def test_numbers_elsewhere_are_those_of_modules() -> None:
    assert {str(path.relative_to(PACKAGES)) for path in MODULES} >= {*ELSEWHERE, SCREEN}
    assert all(reason and allowed for reason, allowed in ELSEWHERE.values())


@pytest.mark.parametrize(("name", "limit"), thresholds.limits().items())
def test_each_limit_has_a_unit_and_a_reason(name: str, limit: Limit) -> None:
    assert limit.unit
    assert limit.reason.endswith(".")
    assert repr(limit) == f"Limit({int(limit)}, {limit.unit!r})"


def test_all_numbers_of_the_table_are_used() -> None:
    code = "".join(path.read_text() for path in (*MODULES, *(PACKAGES / "collectives").glob("*.py")))
    assert [name for name in (*thresholds.table(), *thresholds.limits()) if f"thresholds.{name}" not in code] == []
