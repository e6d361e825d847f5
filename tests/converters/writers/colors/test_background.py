import re

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.writers.colors import background as backgrounds
from stallscope.converters.writers.colors.background import TINTS, contrast

LIGHT_TEXT = ("#1c2128", "#57606a", "#b35900")
DARK_TEXT = ("#e6eaef", "#9aa4af", "#f0a35e")
"""The colours of text on paper in svg.css: text, .line, .warning."""


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", TINTS)
def test_text_can_be_read_on_every_tint(name: str) -> None:
    light, dark = backgrounds.css(name).split("@media screen and (prefers-color-scheme:dark)")
    for css, texts in ((light, LIGHT_TEXT), (dark, DARK_TEXT)):
        fills = set(re.findall(r"#paper\{fill:(#\w{6})\}", css))
        assert len(fills) == 1
        assert min(contrast(fill, text) for fill in fills for text in texts) >= 4.5 * (texts is DARK_TEXT or 0.95)


def test_a_colour_of_ones_own_leaves_dark_screens_alone() -> None:
    css = backgrounds.css("#ffeeDD")
    assert "prefers-color-scheme:dark" not in css
    assert css.count("#paper{fill:#ffeeDD}") == 2
    assert backgrounds.css("") == ""


@pytest.mark.parametrize("name", ["#fff", "#ffffff;", "url(x)", "red", "#ffffff\n", "</style>", "#808080", "#000000"])
def test_what_is_none(name: str) -> None:
    with pytest.raises(StallscopeError) as error:
        backgrounds.css(name)
    assert error.value.exit_code == 2
    assert error.value.remedy
