from __future__ import annotations

import random

import pytest
from stallscope.tracers.expressions.lexer import QuestionError
from stallscope.tracers.expressions.parser import parse
from stallscope.tracers.expressions.syntax import Binary, Cast, Expression, Index, Member, Name, Number, Text, Unary


def shown(tree: Expression) -> str:  # noqa: PLR0911
    """Text of a tree with all parentheses."""
    if isinstance(tree, Number):
        return str(tree.value)
    if isinstance(tree, Name):
        return tree.name
    if isinstance(tree, Text):
        return repr(tree.value)
    if isinstance(tree, Unary):
        return f"({tree.sign}{shown(tree.operand)})"
    if isinstance(tree, Member):
        return f"{shown(tree.of)}.{tree.name}"
    if isinstance(tree, Index):
        return f"{shown(tree.of)}[{shown(tree.index)}]"
    if isinstance(tree, Cast):
        return f"{tree.type}{'*' * tree.stars}<{shown(tree.operand)}>"
    assert isinstance(tree, Binary)
    return f"({shown(tree.left)} {tree.sign} {shown(tree.right)})"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a || b && c == d", "(a || (b && (c == d)))"),
        ("a & b == c", "(a & (b == c))"),
        ("a << 1 + 2 > b", "((a << (1 + 2)) > b)"),
        ("-a * ~b", "((-a) * (~b))"),
        ("!(a && b)", "(!(a && b))"),
        ("*p->q[1].r", "(*p.q[1].r)"),
        ("*u32*(arg1 + 8)", "(*u32*<(arg1 + 8)>)"),
        ("u8(a) * 2", "(u8<a> * 2)"),
        ("(a < b) == (c < d)", "((a < b) == (c < d))"),
        ("a | b ^ c & d", "(a | (b ^ (c & d)))"),
    ],
)
def test_operators_bind_as_in_c(text: str, found: str) -> None:
    assert shown(parse(text)) == found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", " "),
        ("a +", " "),
        ("(a", " "),
        ("a)", ")"),
        ("a b", "b"),
        ("a = b", "="),
        ("a < b < c", "<"),
        ("f(a)", "f"),
        ("u32 a", "a"),
        ("double(a)", "double"),
        ("u32****(a)", "****"),
        ("a.1", "1"),
        ("a[1", " "),
        ("+ a", "+"),
        ("a, b", ","),
    ],
)
def test_a_fault_is_shown(text: str, fault: str) -> None:
    with pytest.raises(QuestionError) as caught:
        parse(text)
    error = caught.value
    assert fault in (text + " ")[error.begin : error.end]


@pytest.mark.parametrize("text", ["(" * 500, "-" * 900, "a" + "+a" * 490, "a[" * 300, "*" * 999])
def test_deep_and_long_ones_are_refused(text: str) -> None:
    with pytest.raises(QuestionError):
        parse(text)


def test_any_words_are_parsed_or_refused() -> None:
    rng = random.Random(2)
    parts = ["a", "1", '"s"', "(", ")", "[", "]", "->", ".", "u32", "*", "-", "&&", "==", "<", ",", ":", "=", "!"]
    for _ in range(5000):
        text = " ".join(rng.choices(parts, k=rng.randrange(12)))
        try:
            tree = parse(text)
        except QuestionError as error:
            assert 0 <= error.begin < error.end <= len(text) + 1
        else:
            assert parse(text[tree.begin : tree.end]) is not None
