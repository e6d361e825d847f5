import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.text import folded_name, printable, shortened

ANY_TEXT = st.text(st.characters())  # surrogates too
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("std::vector<int>::at(unsigned long)", "std::vector<int>::at(unsigned long)"),
        ("größe", "größe"),
        ("a b", "a b"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\r\0\x7f\x85", "a\\x0ab\\x0d\\x00\\x7f\\x85"),
        ("\u202eexe.gpj", "\\u202eexe.gpj"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\udcff\udc80", "\\xff\\x80"),
        ("\udc7f\udd00\ud800", "\\udc7f\\udd00\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("", ""),
    ],
)
def test_printable(name: str, shown: str) -> None:
    assert printable(name) == shown


@settings(deadline=None)
@given(ANY_TEXT)
def test_printable_leaves_nothing_that_steers_or_hides(name: str) -> None:
    shown = printable(name)
    assert not {unicodedata.category(c) for c in shown} & STEERING
    shown.encode()
    assert printable(shown) == shown


def test_folded_name_has_no_separator() -> None:
    assert folded_name("a;b\nc") == "a:b\\x0ac"


@settings(deadline=None)
@given(ANY_TEXT)
def test_folded_name_is_one_field_of_one_line(name: str) -> None:
    field = folded_name(name)
    assert ";" not in field
    assert field.splitlines() in ([field], [])


@pytest.mark.parametrize(("most", "expected"), [(3, "a…f"), (4, "ab…f"), (5, "ab…ef"), (6, "abcdef"), (7, "abcdef")])
def test_shortened_texts_lose_their_middle(most: int, expected: str) -> None:
    assert shortened("abcdef", most) == expected
