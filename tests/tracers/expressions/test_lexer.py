from __future__ import annotations

import random

import pytest
from stallscope.tracers.expressions.lexer import LONGEST, Kind, QuestionError, words


def test_words_have_their_places() -> None:
    text = "n >= 0x10 && s == \"a\\n\\x41\" || 'b' != p->next[1]"
    found = words(text)
    assert [word.value for word in found[:-1]] == [
        *("n", ">=", 16, "&&", "s", "==", b"a\nA", "||", 98, "!=", "p", "->", "next", "[", 1, "]"),
    ]
    assert [text[word.begin : word.end] for word in found[:3]] == ["n", ">=", "0x10"]
    assert found[-1].kind is Kind.END


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("a; b", 1, 2),
        ("a + 1.5", 4, 7),
        ("a + 1e5", 4, 7),
        ("a + 08", 4, 6),
        ("99999999999999999999", 0, 20),
        ('s == "abc', 5, 6),
        ("'ab'", 0, 4),
        (r'"\q"', 1, 3),
        (r'"\x4"', 1, 3),
        ("a\x00", 1, 2),
        ("a == \u202e1", 5, 6),
        ("é", 0, 1),
        ("a" * (LONGEST + 1), LONGEST, LONGEST + 1),
    ],
)
def test_a_fault_has_its_place(text: str, begin: int, end: int) -> None:
    with pytest.raises(QuestionError) as caught:
        words(text)
    assert (caught.value.begin, caught.value.end) == (begin, end)


def test_any_text_is_taken_or_refused() -> None:
    chars = "a1 \"'\\()[]<>=!&|+-*/%^~.,:;{}#\n\t\0é\u202e\udcff0x"
    rng = random.Random(1)
    for _ in range(3000):
        text = "".join(rng.choices(chars, k=rng.randrange(30)))
        try:
            found = words(text)
        except QuestionError as error:
            assert 0 <= error.begin < error.end <= len(text) + 1
        else:
            assert found[-1].kind is Kind.END
