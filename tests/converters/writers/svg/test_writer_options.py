"""Effects of a picture's options."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track
from svg_texts import COMPARED, SVG, lines, names, profile, rects, sample, text_of


def test_reversed_stacks_end_in_their_process() -> None:
    root = ET.fromstring(text_of(profile(sample(5, "main", "wait"), sample(3, "run", "wait")), reverse=True))
    assert names(root) == ["all", "wait", "main", "job-7", "run", "job-7"]


def test_a_unit_of_ones_own() -> None:
    data = profile(sample(2_048, "a"))
    assert "2,048 pages" in text_of(data, value="off-cpu", unit="pages")
    root = ET.fromstring(text_of(data, unit="bytes"))
    assert (root.get("data-unit"), root.get("data-ns")) == ("bytes", "0")
    assert (rects(root)[0].findtext(f"{SVG}title") or "").split("\n")[1].startswith("2.0 KiB")
    assert "&lt;b&gt;" in text_of(data, unit="<b>")


def test_sizes() -> None:
    data = profile(sample(5, "main", "f"))
    root = ET.fromstring(text_of(data, width=600, font_size=20, font="Verdana"))
    assert [rect.get("height") for rect in rects(root)] == ["29"] * 4
    tops = [int(rect.get("y", "")) for rect in rects(root)]
    assert [top - tops[-1] for top in tops] == [90, 60, 30, 0]
    assert rects(root)[0].get("width") == "575.00"
    assert '#labels text{font-family:"Verdana",' in (root.findtext(f"{SVG}style") or "")
    assert "font-size:20px" in (root.findtext(f"{SVG}style") or "")


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"width": 100}, "width of 100 px"),
        ({"width": 10**6}, "width of 1000000 px"),
        ({"font_size": 0}, "font size of 0 px"),
        ({"min_width": -1.0}, "least width of -1 px"),
        ({"min_width": float("nan")}, "least width of nan px"),
        ({"font": 'x"}</style><script>'}, "no name of a font"),
        ({"font": "a\n"}, "no name of a font"),
        ({"palette": "hotter"}, "no palette 'hotter'"),
        ({"palette": "diff"}, "no comparison"),
        ({"negate": True}, "colours of a comparison"),
        ({"height": 12}, "height of the rows of 12 px"),
        ({"height": 1000}, "height of the rows of 1000 px"),
        ({"total": 4.0}, "cannot stand for 4: there is 5"),
        ({"total": float("nan")}, "cannot stand for nan"),
        ({"total": float("inf")}, "cannot stand for inf"),
        ({"factor": 0.0}, "factor of 0"),
        ({"factor": float("nan")}, "factor of nan"),
        ({"factor": float("inf")}, "factor of inf"),
        ({"factor": -1.0}, "factor of -1"),
        ({"factor": 1e308}, r"factor of 1e\+308"),
        ({"factor": 1.1e12}, r"factor of 1.1e\+12"),
        ({"factor": 0.9e-12}, "factor of 9e-13"),
        ({"factor": 1e-320}, "factor of "),
        ({"background": "red;}</style><script>"}, "no background"),
        ({"background": "#000000"}, "text cannot be read"),
        ({"flamechart": True}, "needs to know when"),
    ],
)
def test_what_cannot_be_drawn(options: dict[str, Any], cause: str) -> None:
    with pytest.raises(StallscopeError, match=cause) as error:
        text_of(profile(sample(5, "a")), **options)
    assert error.value.exit_code == 2
    assert error.value.remedy


def test_the_least_width_may_be_a_share() -> None:
    data = profile(sample(990, "wide"), sample(10, "narrow"))
    root = ET.fromstring(text_of(data, min_share=0.02))
    assert names(root) == ["all", "job-7", "wide"]
    assert "branches narrower than 0.1 px or 2 %, not drawn: 1" in lines(root)


def test_a_total_leaves_room_for_what_was_not_measured() -> None:
    data = profile(sample(500_000, "main"), sample(100, "narrow"))
    root = ET.fromstring(text_of(data, total=2e6, subtitle=""))
    boxes = dict(zip(names(root), rects(root), strict=True))
    assert list(boxes) == ["all", "job-7", "main"], "0.06 px is narrow, though it is 0.2 px of what was measured"
    assert float(boxes["all"].get("width", "")) == 1175
    assert float(boxes["main"].get("width", "")) == pytest.approx(1176 / 4 - 1, abs=0.01)
    assert "500 µs · 25.0 %" in (boxes["main"].findtext(f"{SVG}title") or "")
    assert lines(root)[0] == "500 µs of 2.00 ms off-cpu · 2 times"
    with pytest.raises(StallscopeError, match="comparison"):
        text_of(COMPARED, total=1e9)


def test_a_factor_changes_what_is_told_and_no_box() -> None:
    data = Profile([ValueType("samples", "count")], [Sample((Frame("f"),), (99,)), Sample((Frame("g"),), (198,))])
    plain, root = ET.fromstring(text_of(data)), ET.fromstring(text_of(data, factor=1 / 99, unit="seconds"))
    assert [rect.get("data-v") for rect in rects(root)] == [rect.get("data-v") for rect in rects(plain)]
    told = [(rect.findtext(f"{SVG}title") or "").split("\n")[1] for rect in rects(root)]
    assert told == ["3.00 s · 100.0 %", "1.00 s · 33.3 % · 1.00 s in itself", "2.00 s · 66.7 % · 2.00 s in itself"]
    assert lines(root)[0] == "3.00 s samples"
    assert root.get("data-factor") == repr(1 / 99)
    with pytest.raises(StallscopeError) as error:
        text_of(data, factor=1e300)
    assert error.value.remedy == "choose 1e-12 to 1e+12"


@pytest.mark.parametrize("factor", [1e-12, 1e12])
@pytest.mark.parametrize("unit", ["", "pages", "bytes", "seconds"])
def test_the_largest_and_the_smallest_factor_can_be_drawn(factor: float, unit: str) -> None:
    for value in (1, 2**62):
        timeline = Timeline([Track(spans=[Span(0, value, Frame("f"))])], "count")
        data = Profile([ValueType("samples", "count")], [Sample((Frame("f"),), (value,))], timeline=timeline)
        for chart in (False, True):
            assert names(ET.fromstring(text_of(data, factor=factor, unit=unit, flamechart=chart))) == ["all", "f"]


def test_rows_have_the_height_that_is_asked_for() -> None:
    root = ET.fromstring(text_of(profile(sample(5, "main")), height=30))
    assert {rect.get("height") for rect in rects(root)} == {"29"}
    assert sorted({int(rect.get("y", "")) for rect in rects(root)}) == [86, 116, 146]


def test_a_background() -> None:
    style = ET.fromstring(text_of(profile(sample(5, "a")), background="#FFFFEE")).findtext(f"{SVG}style") or ""
    assert style.count("#paper{fill:#FFFFEE}") == 2


def test_a_negated_comparison_swaps_the_colours() -> None:
    def fills(**options: Any) -> dict[str, str]:
        style = ET.fromstring(text_of(COMPARED, **options)).findtext(f"{SVG}style") or ""
        return dict(re.findall(r"\.(x\d)\{fill:#(\w{6})", style.partition("@media screen and")[0] + style))

    plain, swapped = fills(), fills(negate=True)
    assert all(swapped[f"x{i}"] != plain[f"x{i}"] for i in range(9) if i != 4)
    assert swapped["x4"] == plain["x4"]
    assert int(plain["x8"][:2], 16) > int(plain["x8"][4:], 16)
    assert int(swapped["x8"][:2], 16) < int(swapped["x8"][4:], 16)
