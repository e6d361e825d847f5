from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.scan.conditions.expression import Comparison, Joined, Not, Quantity, TextComparison, Value
from stallscope.converters.scan.conditions.parser import DEEPEST, parse

LOCK = Comparison(Quantity("lock"), ">", Value(0.5, "%"))
CORES = Comparison(Quantity("cores"), "<", Value(2, ""))
IO = TextComparison("verdict", True, "io")


@pytest.mark.parametrize(
    ("text", "quantity", "operator", "value"),
    [
        ("blocked(main) > 50%", Quantity("blocked", "main"), ">", Value(0.5, "%")),
        ("blocked ( workers )>=1.5 s", Quantity("blocked", "workers"), ">=", Value(1.5e9, "ns")),
        ('driver("io-*") < 200us', Quantity("driver", "io-*", is_pattern=True), "<", Value(2e5, "ns")),
        ("runnable(process) <= 3 min", Quantity("runnable", "process"), "<=", Value(180e9, "ns")),
        ("longest(main) > 250ms", Quantity("longest", "main"), ">", Value(250e6, "ns")),
        ("waits > 1000", Quantity("waits"), ">", Value(1000, "")),
        ("share > 80%", Quantity("share"), ">", Value(0.8, "%")),
        ("pid != 12", Quantity("pid"), "!=", Value(12, "")),
    ],
)
def test_comparisons(text: str, quantity: Quantity, operator: str, value: Value) -> None:
    found = parse(text)
    assert isinstance(found, Comparison)
    assert (found.quantity, found.operator) == (quantity, operator)
    assert (found.value.number, found.value.unit) == (pytest.approx(value.number), value.unit)


def test_texts() -> None:
    assert parse("verdict == lock") == TextComparison("verdict", True, "lock")
    assert parse("verdict != 'slow-loader'") == TextComparison("verdict", False, "slow-loader")
    assert parse("name == 'train*'") == TextComparison("name", True, "train*")


def test_and_binds_more_than_or_and_not_more_than_both() -> None:
    assert parse("lock > 50% or cores < 2 and not verdict == io") == Joined(
        "or", (LOCK, Joined("and", (CORES, Not(IO))))
    )
    assert parse("(lock > 50% or cores < 2) and verdict == io") == Joined("and", (Joined("or", (LOCK, CORES)), IO))
    assert parse("not (lock > 50% and cores < 2)") == Not(Joined("and", (LOCK, CORES)))


QUANTITY = "a quantity such as blocked(main), or 'verdict', 'name', 'not' or '('"
WHOSE = "main, workers, process or a quoted name of threads such as 'io-*'"
TIME = "a share such as 50%, or a time such as 200ms"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", f"at character 1, {QUANTITY} is expected, not the end"),
        ("blockd(main) > 5%", "at character 1, 'blockd' is no quantity, but 'blocked' is"),
        ("lock > 5% and", f"at character 14, {QUANTITY} is expected, not the end"),
        ("and > 5%", f"at character 1, {QUANTITY} is expected, not 'and'"),
        ("lock 5%", "at character 6, one of > >= < <= == != is expected, not '5%'"),
        ("lock > main", "at character 8, a share such as 50%, or a time such as 200ms is expected, not 'main'"),
        ("lock > 5", f"at character 8, '5' is not what lock is compared with: {TIME}"),
        ("cores > 5%", "at character 9, '5%' is not what cores is compared with: a number such as 2 or 0.5"),
        ("longest > 5%", "at character 11, '5%' is not what longest is compared with: a time such as 200ms or 1.5s"),
        ("share > 5ms", "at character 9, '5ms' is not what share is compared with: a share such as 50%"),
        ("lock(boss) > 5%", f"at character 6, {WHOSE} is expected, not 'boss'"),
        ("lock(main > 5%", "at character 11, ')' is expected, not '>'"),
        ("(lock > 5%", "at character 11, 'and', 'or' or ')' is expected, not the end"),
        ("lock > 5%)", "at character 10, 'and', 'or' or the end is expected, not ')'"),
        ("lock > 5% lock > 6%", "at character 11, 'and', 'or' or the end is expected, not 'lock'"),
        ("share(main) > 5%", "at character 6, one of > >= < <= == != is expected, not '('"),
        ("verdict == locks", "at character 12, 'locks' is no kind of verdict, but 'lock' is"),
        ("verdict > lock", "at character 9, '==' or '!=' is expected, not '>'"),
        ("name == train", "at character 9, a quoted name such as 'train*' is expected, not 'train'"),
        ("__import__('os')", "at character 1, '__import__' is no quantity"),
    ],
)  # fmt: skip
def test_an_error_says_where_and_what_is_expected(text: str, cause: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        parse(text)
    assert caught.value.cause == f"--when: {cause}"
    assert caught.value.remedy
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("nested", ["(", "not "])
def test_the_depth_is_limited(nested: str) -> None:
    closed = ")" if nested == "(" else ""
    parse(nested * DEEPEST + "lock > 5%" + closed * DEEPEST)
    with pytest.raises(StallscopeError, match="in more than 50 parentheses or negations"):
        parse(nested * (DEEPEST + 1) + "lock > 5%")


_PARTS = st.sampled_from(
    [
        "lock",
        "(",
        ")",
        "main",
        ">",
        "==",
        "5%",
        "5",
        "and",
        "or",
        "not",
        "verdict",
        "name",
        "'x*'",
        "longest",
        "9ms",
        "$",
    ]
)


@given(st.lists(_PARTS, max_size=30).map(" ".join) | st.text(max_size=50))
def test_any_text_is_a_condition_or_an_error_of_the_user(text: str) -> None:
    try:
        parse(text)
    except StallscopeError as error:
        assert error.exit_code == 2
        assert "\n" not in error.cause + error.remedy
