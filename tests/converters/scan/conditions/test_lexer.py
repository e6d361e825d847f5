from __future__ import annotations

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.scan.conditions.lexer import END, LONGEST_TEXT, NUMBER, SIGN, TEXT, WORD, one_of, tokens


def test_parts_have_kinds_and_places() -> None:
    assert tokens(" lock('a b')>=1.5 ms") == [
        (WORD, "lock", 2),
        (SIGN, "(", 6),
        (TEXT, "a b", 7),
        (SIGN, ")", 12),
        (SIGN, ">=", 13),
        (NUMBER, "1.5 ms", 15),
        (END, "", 21),
    ]


@pytest.mark.parametrize("number", ["5", "5%", "5 %", "0.25", "200ms", "2 min", "3µs"])
def test_numbers_with_and_without_units(number: str) -> None:
    assert tokens(number)[0][:2] == (NUMBER, number)


def test_a_word_after_a_number_is_no_unit() -> None:
    assert [each.text for each in tokens("2 and 3 seconds")] == ["2", "and", "3", "seconds", ""]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("lock = 5%", "at character 6, '=' is a sign that has no meaning"),
        ("name == 'x", 'at character 9, "\'" is a quote that is not closed'),
        ("lock \x1b[2J", r"at character 6, '\\x1b' is a sign that has no meaning"),
        ("\udcff", r"at character 1, '\\xff' is a sign that has no meaning"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, cause: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        tokens(text)
    assert caught.value.cause == f"--when: {cause}"
    assert caught.value.exit_code == 2
    assert caught.value.remedy


def test_a_text_that_is_too_long() -> None:
    tokens("x" * LONGEST_TEXT)
    with pytest.raises(StallscopeError, match="1,001 characters"):
        tokens("x" * (LONGEST_TEXT + 1))


def test_names_one_of_several() -> None:
    assert (one_of(["a"]), one_of(["a", "b", "c"])) == ("a", "a, b or c")
