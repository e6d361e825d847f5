from __future__ import annotations

import re
from typing import get_args

import pytest
from stallscope.converters.flame import NodeKind
from stallscope.converters.model import Kind
from stallscope.converters.writers import svg_color
from stallscope.converters.writers.svg_color import Palette

LIGHT_TEXT, DARK_TEXT = "#16191d", "#f4f6f8"
"""The labels' colours in svg.css."""


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def rules(css: str) -> dict[str, str]:
    return dict(re.findall(r"\.(\w\d)\{fill:(#[0-9a-f]{6})\}", css))


@pytest.mark.parametrize("palette", get_args(Palette))
def test_labels_can_be_read_on_every_shade_in_both_modes(palette: Palette) -> None:
    light, dark = svg_color.css(palette).split("@media screen and (prefers-color-scheme:dark)")
    assert rules(light).keys() == rules(dark).keys()
    assert len(rules(light)) == svg_color.SHADES * 7
    assert min(contrast(LIGHT_TEXT, color) for color in rules(light).values()) >= 7
    assert min(contrast(DARK_TEXT, color) for color in rules(dark).values()) >= 4.5


def test_each_kind_has_shades_and_a_legend() -> None:
    classes = rules(svg_color.css("calm"))
    kinds: tuple[NodeKind, ...] = get_args(Kind)
    assert set(svg_color.LABELS) == set(kinds)
    colors = {kind: classes[svg_color.legend_class(kind)] for kind in kinds}
    assert len(set(colors.values())) == len(kinds)
    for kind in kinds:
        assert svg_color.css_class("f", kind)[0] == svg_color.legend_class(kind)[0]


def test_a_name_keeps_its_shade_and_names_differ() -> None:
    assert svg_color.css_class("__schedule", "kernel") == "k6"
    assert len({svg_color.css_class(f"f{i}", "native") for i in range(100)}) == svg_color.SHADES
    assert svg_color.css_class("\ud800", "kernel")[0] == "k"
    assert svg_color.css_class("f", "a kind of tomorrow")[0] == "o"
