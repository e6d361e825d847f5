"""The SVG in a browser, as it looks: text in its boxes, colours, sizes, on paper, and as an image."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stallscope.converters.model import Profile, Sample
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.svg import writer as svg
from svg_graphs import (
    HOSTILE,
    PAD,
    TYPES,
    Graph,
    compared,
    contrasts,
    hostile_names,
    labels,
    many_modules,
    stack,
    training_node,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.parametrize("width", [380, 700, 1200, 2500])
@pytest.mark.parametrize("make", [training_node, hostile_names])
def test_no_text_leaves_its_box(show_graph: Callable[..., Graph], make: Callable[[], Profile], width: int) -> None:
    graph = show_graph(make(), viewport={"width": width, "height": 700})
    some_label = graph.page.locator("#labels text")
    assert some_label.count() >= (1 if width < 400 else 6)
    assert graph.overflowing() == []
    rng = random.Random(width)
    for _ in range(5):
        wide = [i for i, box in enumerate(graph.boxes()) if box["width"] > 3]
        graph.page.evaluate("(i) => { location.hash = 'zoom=' + i; }", rng.choice(wide))
        graph.page.wait_for_timeout(30)
        assert graph.overflowing() == []
        assert some_label.count() >= 1
    graph.page.set_viewport_size({"width": width // 2 + 300, "height": 700})
    graph.page.wait_for_timeout(100)
    assert graph.overflowing() == []
    page_width = graph.page.evaluate("() => document.documentElement.scrollWidth")
    assert page_width <= width // 2 + 300
    lines = graph.page.evaluate(
        "() => Array.from(document.querySelectorAll('#page > text'), (t) => t.getBBox().x + t.getBBox().width)"
    )
    assert max(lines) <= width // 2 + 300


def test_hostile_names_stay_text(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(hostile_names())
    page = graph.page
    assert page.locator("script").count() == 1
    assert page.locator("image, b:not(.tip b), iframe, a").count() == 0
    for i, name in enumerate(HOSTILE):
        node = graph.find("all", f"{name}-{i}", name)
        shown = graph.hover(node)[0]
        assert shown == name.replace("\u202e", r"\u202e").replace("\u200d", r"\u200d")
    page.keyboard.press("/")
    page.keyboard.type("<script>alert")
    assert graph.result.startswith("matched ")
    page.reload()
    assert page.locator("script").count() == 1


def test_a_tall_graph_opens_at_its_roots_with_the_bar_in_sight(show_graph: Callable[..., Graph]) -> None:
    deep = Profile(TYPES, [Sample(stack(*(f"f{i}" for i in range(1500))), (5, 1), labels(1, "deep"))])
    graph = show_graph(deep)
    root = graph.page.locator("#frames rect").nth(0).bounding_box()
    assert root is not None
    assert 0 < root["y"] < 900
    graph.page.mouse.move(600, 300)
    bar = graph.page.locator("#bar").bounding_box()
    assert bar is not None
    assert 0 <= bar["y"] < 60
    inverted = show_graph(deep, wanted=WriteOptions(inverted=True))
    assert inverted.page.evaluate("() => window.scrollY") == 0


def test_the_picture_is_complete_without_its_script(show_graph: Callable[..., Graph]) -> None:
    for make in (training_node, hostile_names):
        graph = show_graph(make(), java_script_enabled=False, viewport={"width": 1300, "height": 900})
        outside = graph.page.evaluate(
            """() => {
                const rects = Array.from(document.querySelectorAll("#frames rect"), (rect) => rect.getBBox());
                const labels = Array.from(document.querySelectorAll("#labels text"));
                return labels.map((label) => [label.textContent, label.getBBox()])
                    .filter(([, t]) => !rects.some((r) => r.x <= t.x && t.x + t.width <= r.x + r.width + 0.05
                        && Math.abs(r.y + r.height / 2 - t.y - t.height / 2) < 3))
                    .map(([text, t]) => text);
            }"""
        )
        assert outside == []
        assert graph.page.locator("#labels text").count() > 20
        assert graph.page.locator("foreignObject").count() == 0


def test_as_an_image(open_file: Callable[..., Page], tmp_path: Path) -> None:
    path = tmp_path / "graph.svg"
    with path.open("wb") as file:
        svg.write(training_node(), file, WriteOptions())
    html = tmp_path / "page.html"
    html.write_text('<!DOCTYPE html><link rel="icon" href="data:,"><img src="graph.svg">')
    open_file.opened.add(path.as_uri())  # type: ignore[attr-defined]
    page = open_file(html)
    assert page.evaluate("() => document.images[0].naturalWidth") == 1200


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(show_graph: Callable[..., Graph], scheme: str) -> None:
    graph = show_graph(training_node(), color_scheme=scheme)
    paper = graph.page.evaluate("() => getComputedStyle(document.getElementById('paper')).fill")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    assert contrasts(graph.page) >= 4.5
    graph.search("topk|wait")
    assert contrasts(graph.page) >= 4.5
    graph.page.emulate_media(media="print", color_scheme="dark")
    assert graph.page.evaluate("() => getComputedStyle(document.getElementById('paper')).fill") == "rgb(255, 255, 255)"
    assert contrasts(graph.page) >= 4.5
    assert not graph.page.locator("#bar").is_visible()


def test_an_empty_profile_opens(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(Profile(TYPES, title="Idle"))
    assert "Nothing to show" in (graph.page.locator(".nothing").text_content() or "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_more_is_red_and_less_is_blue(show_graph: Callable[..., Graph], scheme: str) -> None:
    graph = show_graph(compared(), color_scheme=scheme)
    fills = graph.page.evaluate(
        "() => Array.from(document.querySelectorAll('#frames rect'), (rect) => getComputedStyle(rect).fill)"
    )
    colors = {
        node.key.name: [int(part) for part in re.findall(r"\d+", fill)]
        for node, fill in zip(graph.tree.nodes, fills, strict=True)
    }
    redness = {name: red - blue for name, (red, _, blue) in colors.items()}
    assert redness["new"] > redness["leaf"] > 20
    assert redness["shrunk"] < redness["main"] < -20
    assert abs(redness["same"]) < 20


@pytest.mark.parametrize(("palette", "swatches"), [("calm", 6), ("hot", 6), ("chain", 6), ("state", 3), ("module", 4)])
def test_the_legend_says_what_the_colours_are(show_graph: Callable[..., Graph], palette: str, swatches: int) -> None:
    for width in (1200, 600, 380):
        graph = show_graph(
            many_modules(), wanted=WriteOptions(palette=palette), viewport={"width": width, "height": 700}
        )
        legend = graph.page.evaluate(
            """() => Array.from(document.querySelectorAll("#legend rect"), (swatch) => {
                const label = swatch.nextElementSibling;
                const [box, text] = [swatch.getBBox(), label.getBBox()];
                return {left: box.x, end: box.x + box.width, text: text.x, right: text.x + text.width,
                    shown: getComputedStyle(label).visibility, color: getComputedStyle(swatch).fill};
            })"""
        )
        shown = [item for item in legend if item["shown"] == "visible"]
        assert len(legend) >= swatches
        assert len(shown) == len(legend) or width < 1200
        assert shown[-1]["right"] <= width - PAD
        for item, after in zip(shown, shown[1:], strict=False):
            assert item["end"] < item["text"]
            assert item["right"] + 10 < after["left"]
        assert len({item["color"] for item in legend}) == len(legend) or palette == "module"
        drawn = graph.page.evaluate(
            "() => Array.from(document.querySelectorAll('#frames rect'), (r) => r.getAttribute('class').slice(0, -1))"
        )
        classes = graph.page.evaluate(
            "() => Array.from(document.querySelectorAll('#legend rect'), (r) => r.getAttribute('class').slice(0, -1))"
        )
        assert set(classes) <= set(drawn)


@pytest.mark.parametrize("palette", ["warm", "hot", "io", "state", "module", "diff"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_every_palette(show_graph: Callable[..., Graph], palette: str, scheme: str) -> None:
    profile = compared() if palette == "diff" else many_modules()
    graph = show_graph(profile, wanted=WriteOptions(palette=palette), color_scheme=scheme)
    assert contrasts(graph.page) >= 4.5


@pytest.mark.parametrize("scale", [0.5, 1.5, 3])
@pytest.mark.parametrize(("font", "size"), [("", 8), ("", 20), ("DejaVu Serif", 13)])
def test_no_font_and_no_scale_lets_text_leave_its_box(
    show_graph: Callable[..., Graph], font: str, size: int, scale: float
) -> None:
    for make in (training_node, hostile_names):
        graph = show_graph(make(), wanted=WriteOptions(font=font, font_size=size), device_scale_factor=scale)
        assert graph.page.locator("#labels text").count() > 10
        assert graph.overflowing() == []
        graph.click(graph.find("all", ""))
        assert graph.overflowing() == []
        family = graph.page.evaluate("() => getComputedStyle(document.querySelector('#labels text')).fontFamily")
        assert (font or "monospace") in family


def test_a_font_of_another_width_fits_without_the_script(show_graph: Callable[..., Graph]) -> None:
    wide = Profile(TYPES, [Sample(stack("W" * n), (n, 1)) for n in range(4, 60, 5)])
    graph = show_graph(wide, wanted=WriteOptions(font="DejaVu Serif"), java_script_enabled=False)
    ends = graph.page.evaluate(
        """() => Array.from(document.querySelectorAll("#labels text"), (label) => {
            const text = label.getBBox();
            return Math.min(...Array.from(document.querySelectorAll("#frames rect"), (r) => r.getBBox())
                .filter((r) => r.x <= text.x && text.x <= r.x + r.width && r.y <= text.y && text.y < r.y + r.height)
                .map((r) => r.x + r.width - text.x - text.width));
        })"""
    )
    assert len(ends) > 5
    assert min(ends) >= -0.05


def test_a_small_graph_prints_on_one_page_and_light(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node(), color_scheme="dark")
    graph.click(graph.find("all", "trainer-101"))
    pdf = graph.page.pdf(format="A4", landscape=True, print_background=False)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    graph.page.emulate_media(media="print")
    assert contrasts(graph.page) >= 4.5
    assert graph.overflowing() == []


def test_a_graph_that_is_taller_than_the_window_is_whole_on_paper_and_in_a_picture(
    show_graph: Callable[..., Graph],
) -> None:
    deep = Profile(TYPES, [Sample(stack(*(f"f{i}" for i in range(200))), (5, 1), labels(1, "deep"))])
    graph = show_graph(deep)
    page = graph.page
    # Nobody has touched it: a picture of all of it has the bar over no frame.
    frames, bar = page.locator("#frames").bounding_box(), page.locator("#bar").bounding_box()
    assert frames is not None
    assert bar is not None
    assert bar["y"] + bar["height"] <= frames["y"]
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 1
    page.emulate_media(media="print")
    height = page.evaluate("() => document.documentElement.getBoundingClientRect().height")
    boxes = [page.locator("#frames rect").nth(i).bounding_box() for i in (0, graph.tree.levels - 1)]
    assert height <= 900
    assert all(box is not None and 0 <= box["y"] <= height for box in boxes)


def test_the_pressed_button_can_be_read_under_the_mouse(show_graph: Callable[..., Graph]) -> None:
    for scheme in ("light", "dark"):
        page = show_graph(training_node(), color_scheme=scheme).page
        button = page.get_by_role("button", name="Match case")
        button.click()
        button.hover()
        colours = button.evaluate("(b) => [getComputedStyle(b).color, getComputedStyle(b).backgroundColor]")
        assert colours == ["rgb(255, 255, 255)", "rgb(9, 105, 218)"], scheme


def test_a_path_loses_its_beginning(show_graph: Callable[..., Graph]) -> None:
    names = [f"/srv/{'long/' * 20}main.py", f"std::{'long::' * 20}main", "https://x.org/" + "a/" * 60 + "app.js"]
    samples = [Sample(stack(name), (5, 1), labels(1, "p")) for name in names]
    graph = show_graph(Profile(TYPES, samples))
    shown = graph.page.locator("#labels text").all_text_contents()
    assert any(text.startswith("..") and text.endswith("/main.py") for text in shown)
    assert any(text.startswith("..") and text.endswith("/app.js") for text in shown)
    assert any(text.startswith("std::long") and text.endswith("..") for text in shown)
