from __future__ import annotations

import re
from typing import get_args

import pytest
from stallscope.converters.flame.tree import NodeKind
from stallscope.converters.model import Kind
from stallscope.converters.writers.colors import hues
from stallscope.converters.writers.colors.hues import CODES, KIND_HUES, SHADES, Hue


def rules(css: str) -> dict[str, str]:
    return dict(re.findall(r"\.([\w-]+)\{fill:(#[0-9a-f]{6})\}", css))


def halves(css: str) -> tuple[dict[str, str], dict[str, str]]:
    light, dark = css.split("@media screen and (prefers-color-scheme:dark)")
    return rules(light), rules(dark)


@pytest.mark.parametrize("palette", KIND_HUES)
def test_each_kind_has_shades_and_a_legend_of_its_own(palette: str) -> None:
    light, dark = halves(hues.css(palette))
    assert light.keys() == dark.keys()
    assert len(light) == SHADES * len(KIND_HUES[palette])
    kinds: tuple[NodeKind, ...] = get_args(Kind)
    assert set(hues.LABELS) == set(kinds)
    for classes in (light, dark):
        assert len({classes[hues.legend_class(kind)] for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert hues.css_class("f", kind)[0] == hues.legend_class(kind)[0] == CODES[kind]


@pytest.mark.parametrize("palette", KIND_HUES)
def test_neighbouring_kinds_are_told_apart(palette: str) -> None:
    light, dark = halves(hues.css(palette))
    for classes in (light, dark):
        colors = [classes[hues.legend_class(kind)] for kind in get_args(Kind)]
        parts = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in colors]
        distances = [
            sum((x - y) ** 2 for x, y in zip(one, other, strict=True)) ** 0.5
            for i, one in enumerate(parts)
            for other in parts[:i]
        ]
        assert min(distances) > 12


def test_a_name_keeps_its_shade_and_names_differ() -> None:
    assert hues.css_class("__schedule", "kernel") == "k6"
    assert len({hues.css_class(f"f{i}", "native") for i in range(100)}) == SHADES
    assert hues.css_class("\ud800", "kernel")[0] == "k"
    assert hues.css_class("f", "a kind of tomorrow")[0] == "o"


def test_what_only_separates_is_grey() -> None:
    assert {hues.css_class(name, "native")[0] for name in ("-", "--")} == {"s"}
    assert hues.css_class("---", "native")[0] == "n"


def test_rules_of_one_hue() -> None:
    light, dark = halves(hues.rules({"z": Hue(0, 0, 1.0)}))
    assert list(light) == list(dark) == [f"z{i}" for i in range(SHADES)]
    assert light["z0"] == "#ff7a7a"  # red with 74 % of lightness
    assert len(set(light.values())) == SHADES
