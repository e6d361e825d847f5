from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.writers.svg.text import CHAR_WIDTH, Labels, Unit, escape, fit, human


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
        (123_456_789, "ppb", "12.3 %"),
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
    assert Unit("milliseconds").data() == 'data-ns="1000000" data-unit="milliseconds"'
    assert Unit('"><x').data() == 'data-ns="0" data-unit="&quot;&gt;&lt;x"'


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
    assert fit(name, chars * 7.44 + 0.01, 7.44)[0] == text


@given(st.text(min_size=1, max_size=60), st.floats(0, 400))
def test_the_bound_is_never_wider_than_the_room(name: str, width: float) -> None:
    text, bound = fit(name, width, 7.44)
    assert bound <= width
    assert (bound > 0) == (bool(text) and not name.isascii())
    if name.isascii():
        assert len(text) * 7.44 <= width


@pytest.mark.parametrize(
    ("after", "before", "text"),
    [
        (1_200, 900, "+300 ns (+33.3 %)"),
        (500, 1_000, "-500 ns (-50.0 %)"),
        (5, 0, "+5 ns (new)"),
        (0, 5, "-5 ns (gone)"),
        (7, 7, "no change"),
        (10**9 + 1, 10**9, "+1 ns (<0.1 %)"),
    ],
)
def test_changes_for_people(after: int, before: int, text: str) -> None:
    assert Unit("nanoseconds").change(after, before) == text


@pytest.mark.parametrize("size", [6, 12, 17, 40])
def test_a_label_lies_inside_its_row(size: int) -> None:
    labels = Labels("", size)
    assert labels.row >= 1.4 * size
    # Ascenders and descenders of the common fonts: 0.93 and 0.24 em at most.
    assert labels.base - 0.75 * size >= 0
    assert labels.base + 0.24 * size <= labels.row
    assert labels.char_width == pytest.approx(CHAR_WIDTH * size)


def test_a_label_of_a_font_that_we_do_not_know_is_squeezed_into_its_bound() -> None:
    known = ET.fromstring(Labels("", 10).text("WWWWWWWW", 5, 100, 70))
    assert (known.get("x"), known.get("y"), known.text) == ("9.0", "111", "WWWWWWWW")
    assert known.get("textLength") is None
    other = ET.fromstring(Labels("Verdana", 10).text("WWWWWWWWWWWWWWW", 5, 100, 70))
    assert (other.text, other.get("textLength")) == ("WWWWWWWW..", "62.0")
    assert 'font-family:"Verdana",' in Labels("Verdana", 10).css()
    assert Labels("", 12).text("topk", 0, 0, 20) == ""


@pytest.mark.parametrize(
    ("value", "factor", "unit", "text"),
    [
        (99, 1 / 99, "seconds", "1.00 s"),
        (3, 0.5, "count", "2"),
        (1, 0.5, "count", "1"),
        (2_000, 10.0, "pages", "20,000 pages"),
        (1, 0.25, "bytes", "0 B"),
        (3, 1024.0, "bytes", "3.0 KiB"),
        ((1 << 62) + 1, 1, "count", "4,611,686,018,427,387,905"),
    ],
)
def test_a_factor_is_applied_before_rounding(value: int, factor: float, unit: str, text: str) -> None:
    assert Unit(unit, factor).human(value) == text
    data = Unit(unit, factor).data()
    assert ("data-factor" in data) == (factor != 1)
    assert f'data-factor="{factor!r}"' in data or factor == 1


def test_a_row_is_as_high_as_asked_and_its_text_in_the_middle() -> None:
    assert (Labels("", 12).row, Labels("", 12, 30).row) == (18, 30)
    assert 15 < Labels("", 12, 30).base < 22


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/srv/app/lib/main.py", "..b/main.py"),
        ("https://x.org/lib/app.js", "..ib/app.js"),
        ("std::vector<int>::at", "std::vect.."),
        ("/no slash behind spaces/x", "/no slash.."),
        ("/srv/größe/lib/main.py", "..b/main.py"),
        ("/main", "/main"),
    ],
)
def test_a_path_loses_its_beginning_and_all_else_its_end(name: str, shown: str) -> None:
    assert fit(name, 11 * 7, 7)[0] == shown


def test_what_is_counted_is_told() -> None:
    assert Unit("count", 1, "samples").told(15) == "15 samples"
    assert Unit("count", 1, "samples").told(1) == "1 sample"
    assert Unit("nanoseconds").told(1500) == "1.50 µs"
    assert Unit("count", 1, "<b>").data() == 'data-ns="0" data-unit="count" data-things="&lt;b&gt;"'
