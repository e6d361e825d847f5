"""A rule for docstrings: they begin with a noun or a verb, so that each can be understood alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("converters", "tracers", "scripts", "tests")

PRONOUNS = "he her his i it its our ours she such that their them these they this those we you your"
QUESTIONS = "how what whatever when whenever where wherever which whichever who whoever whom whose why"
PREPOSITIONS = (
    "about after against among as at because before behind beside besides between beyond by during except for from if "
    "in inside into like of off on only onto out outside over per since so than through to too under unless until up "
    "upon while with within without"
)
OTHERS = (
    "again also and but else even ever hardly here however never neither nor not or otherwise quite then there thus"
)
FORBIDDEN = {word for words in (PRONOUNS, QUESTIONS, PREPOSITIONS, OTHERS) for word in words.split()}
"""First words of docstrings that need the name beside them, or another docstring."""


def first_word(docstring: str) -> str:
    """The first word, or "The same", in lower case; "" for a mark, such as a quote."""
    match = re.match(r"the same\b|[a-z]+(?:-[a-z]+)*(?=[\s.,:;]|$)", docstring.lower())
    return match[0] if match else ""


def is_forbidden(docstring: str) -> bool:
    """Whether the docstring begins in such a way, or goes on with another one's sentence."""
    return first_word(docstring) in FORBIDDEN | {"the same"} or docstring.startswith(("…", "..."))


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of the docstring of each module, class, function, field and variable, private ones, too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text
        for _, block in ast.iter_fields(node):
            if isinstance(block, list):
                yield from _docstrings_of_assignments(block)


def _docstrings_of_assignments(block: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of each string that follows an assignment as a statement of its own."""
    for assignment, following in pairwise(block):
        match assignment, following:
            case ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                yield line, text


@pytest.mark.parametrize(
    ("docstring", "forbidden"),
    [
        ("Of a thread.", True),
        ("The same, in ns.", True),
        ("So many threads.", True),
        ("What it waits for.", True),
        ("What: a wait.", True),
        ("Those of a process.", True),
        ("Its name.", True),
        ("Also a file.", True),
        ("… and of a process.", True),
        ("... and of a process.", True),
        ("The samest of threads.", False),
        ("Whether it waits.", False),
        ("Offset in the file.", False),
        ("In-place change of a row.", False),
        ("Reads a file of those that wait.", False),
        ("``of`` names a thread.", False),
        ("", False),
    ],
)
def test_first_words(docstring: str, forbidden: bool) -> None:
    assert is_forbidden(docstring) is forbidden


def test_docstrings_of_all_definitions_are_found() -> None:
    source = '"A."\nclass C:\n    "B."\n    async def f():\n        "C."\n        def _g(): "D."\nx = 1\n"E."\n'
    assert sorted(docstrings(source)) == [(1, "A."), (3, "B."), (5, "C."), (6, "D."), (8, "E.")]


def test_docstrings_of_fields_and_variables_are_found() -> None:
    source = (
        'x = 1\n"""A."""\nif x:\n    pass\nelse:\n    y: int\n    "B."\n'
        'class C:\n    z: int = 1\n    "C."\n    def f(self):\n        self.a = 1\n        "D."\n        print("No.")\n'
    )
    assert sorted(docstrings(source)) == [(2, "A."), (7, "B."), (10, "C."), (13, "D.")]


def test_strings_that_follow_no_assignment_are_no_docstrings() -> None:
    assert not list(docstrings('x += 1\n"No."\nf()\n"No."\nx = 1\nf("No.")\n'))


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    sources = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    assert sources
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sources
        for line, text in docstrings(path.read_text())
        if is_forbidden(text)
    ]
    assert wrong == []
