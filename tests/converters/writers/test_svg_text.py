from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.writers.svg_text import CHAR_WIDTH, escape, fit, human, unit_data


@given(st.text(st.characters(exclude_categories=())))
def test_escaped_text_is_well_formed_and_says_the_same(text: str) -> None:
    element = ET.fromstring(f'<a b="{escape(text)}">{escape(text)}</a>')
    assert element.text == element.get("b") or not text
    if text.isascii() and text.isprintable():
        assert (element.text or "") == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>alert(1)</script>;x", "&lt;script&gt;alert(1)&lt;/script&gt;;x"),
        ('"]]><b>&amp;"', "&quot;]]&gt;&lt;b&gt;&amp;amp;&quot;"),
        ("a\0b\x1b[31m\n", r"a\x00b\x1b[31m\x0a"),
        ("\ud800\ufffe\uffff", r"\ud800\ufffe\uffff"),
        ("evil\u202egnp.exe", r"evil\u202egnp.exe"),
    ],
)
def test_hostile_text(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "nanoseconds", "0 ns"),
        (850, "nanoseconds", "850 ns"),
        (1_523_000, "nanoseconds", "1.52 ms"),
        (1_523, "microseconds", "1.52 ms"),
        (12, "milliseconds", "12.0 ms"),
        (125, "seconds", "2 min 05 s"),
        (1023, "bytes", "1023 B"),
        (3 * 2**19, "bytes", "1.5 MiB"),
        (5000 * 2**30, "bytes", "5,000.0 GiB"),
        (31204, "count", "31,204"),
        (31204, "joules", "31,204 joules"),
        (5, "\x1b[2J", r"5 \x1b[2J"),
    ],
)
def test_values_for_people(value: int, unit: str, text: str) -> None:
    assert human(value, unit) == text


def test_the_unit_as_attributes() -> None:
    assert unit_data("milliseconds") == 'data-ns="1000000" data-unit="milliseconds"'
    assert unit_data('"><x') == 'data-ns="0" data-unit="&quot;&gt;&lt;x"'


@pytest.mark.parametrize(
    ("name", "chars", "text"),
    [
        ("topk", 4, "topk"),
        ("topk", 3.9, ""),
        ("worker", 5, "wor.."),
        ("worker", 4, "wo.."),
        ("worker", 6, "worker"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日.."),
        ("日本語", 3, ""),
    ],
)
def test_names_are_cut_to_what_fits(name: str, chars: float, text: str) -> None:
    assert fit(name, chars * CHAR_WIDTH + 0.01)[0] == text


@given(st.text(min_size=1, max_size=60), st.floats(0, 400))
def test_the_bound_is_never_wider_than_the_room(name: str, width: float) -> None:
    text, bound = fit(name, width)
    assert bound <= width
    assert (bound > 0) == (bool(text) and not name.isascii())
    if name.isascii():
        assert len(text) * CHAR_WIDTH <= width
