"""The flame chart in a browser: places are times, the zoom is a window of time for all tracks."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stallscope.converters.base.units import duration, share
from stallscope.converters.flame.chart import build
from stallscope.converters.flame.tree import Node, Tree
from stallscope.converters.model import Frame, Profile, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.svg import writer as svg
from stallscope.converters.writers.svg.axis import position
from stallscope.converters.writers.svg.text import Unit

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAD = 12
MS = 1_000_000
UNIT = Unit("nanoseconds")
HOSTILE = "<img src=x onerror='alert(1)'>]]>&\"\u202e"


def calls(seed: int, count: int) -> list[Span]:
    rng = random.Random(seed)
    spans = []
    now = rng.randrange(20 * MS)
    for _ in range(count):
        length = rng.randrange(30 * MS, 90 * MS)
        spans.append(Span(now, now + length, Frame("step")))
        for i, name in enumerate(("forward", "backward", HOSTILE)):
            begin = now + i * length // 3
            spans.append(Span(begin, begin + length // 4, Frame(name, "python")))
            spans.append(Span(begin, begin + length // 9, Frame("all_reduce", "api")))
            spans.append(Span(begin + length // 5, begin + length // 5 + 20, Frame("tiny")))
        now += length + rng.randrange(20 * MS)
    return spans


def training() -> Profile:
    tracks = [
        Track((("pid", 7), ("process", "trainer"), ("thread", name), ("tid", 70 + i)), spans=calls(i, 9))
        for i, name in enumerate(("main", "loader", HOSTILE))
    ]
    timeline = Timeline(tracks)
    types = [ValueType("wall", "nanoseconds"), ValueType("count", "count")]
    return Profile(types, add_up(timeline), "Training", timeline=timeline)


class Chart:
    """An opened chart and the tree that it should show."""

    def __init__(self, page: Page, tree: Tree) -> None:
        self.page = page
        self.tree = tree
        self.end = tree.total

    def boxes(self) -> list[tuple[float, float, float, bool]]:
        """x, y, width and whether it is faded, of what is shown."""
        boxes: list[tuple[float, float, float, bool]] = self.page.evaluate(
            """() => Array.from(document.querySelectorAll("#frames rect"), (r) => [+r.getAttribute("x"),
                +r.getAttribute("y"), +r.getAttribute("width"), r.classList.contains("up")]).filter((b) => b[2] > 0)"""
        )
        return boxes

    def rows(self, top: int = 106, row: int = 18) -> list[int]:
        """Place of each node in px, from the top."""
        tops, band = [], -1
        for node in self.tree.nodes:
            if node.depth == 0:
                band += 1
                base = top + sum(self.tree.bands[: band + 1]) * row - row + 10 * band
            tops.append(base - node.depth * row)
        return tops

    def expected(self, begin: int, end: int) -> list[tuple[float, float, float, bool]]:
        scale = 1176 / (end - begin)
        found = []
        for node, y in zip(self.tree.nodes, self.rows(), strict=True):
            low, high = max(node.start, begin), min(node.start + node.total, end)
            width = (high - low) * scale
            if width >= 0.1:
                outside = node.start < begin or node.start + node.total > end
                found.append((PAD + (low - begin) * scale, y, width - 1 if width > 4 else width, outside))
        return found

    def hover(self, node: Node) -> list[str]:
        scale = 1176 / self.end
        y = self.rows()[self.tree.nodes.index(node)]
        self.page.mouse.move(PAD + (node.start + node.total / 2) * scale, y + 8)
        return self.page.locator("#tip .tip > *").all_text_contents()

    def find(self, name: str, nth: int = 0) -> Node:
        return [node for node in self.tree.nodes if node.key.name == name][nth]

    def search(self, pattern: str) -> str:
        self.page.locator("#bar input").fill(pattern)
        return self.page.locator("#bar output").text_content() or ""

    def click(self, node: Node) -> None:
        y = self.rows()[self.tree.nodes.index(node)]
        self.page.mouse.click(PAD + (node.start + node.total / 2) * 1176 / self.end, y + 8)


def assert_drawn(chart: Chart, begin: int, end: int) -> None:
    boxes, expected = sorted(chart.boxes()), sorted(chart.expected(begin, end))
    assert len(boxes) == len(expected)
    for box, wanted in zip(boxes, expected, strict=True):
        assert box[:3] == pytest.approx(wanted[:3], abs=0.02)


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Chart]:
    def show(profile: Profile, wanted: WriteOptions | None = None, fragment: str = "", **options: Any) -> Chart:
        wanted = wanted or WriteOptions(flamechart=True, min_width=0)
        path = tmp_path / "chart.svg"
        with path.open("wb") as file:
            svg.write(profile, file, wanted)
        return Chart(open_file(path, fragment, **options), build(profile, wanted))

    return show


def test_places_are_times_and_the_zoom_is_a_window_for_all_tracks(show: Callable[..., Chart]) -> None:
    chart = show(training())
    assert_drawn(chart, 0, chart.end)
    step = chart.find("step", 3)
    chart.click(step)
    assert_drawn(chart, step.start, step.start + step.total)
    faded = {box[:3] for box in map(tuple, chart.boxes()) if box[3]}
    outside = [box for box in chart.expected(step.start, step.start + step.total) if box[3]]
    assert len(outside) > 5, "calls of other tracks go on beyond the window"
    for wanted in outside:
        assert any(box == pytest.approx(wanted[:3], abs=0.02) for box in faded)
    chart.page.reload()
    assert_drawn(chart, step.start, step.start + step.total)
    chart.page.mouse.click(600, chart.rows()[0] + 8)
    assert_drawn(chart, 0, chart.end)
    assert chart.page.evaluate("() => location.hash") in ("", "#")


def test_a_call_too_narrow_for_the_whole_is_there_when_zoomed(show: Callable[..., Chart]) -> None:
    chart = show(training())
    tiny = chart.tree.nodes.index(chart.find("tiny", 4))
    before = len(chart.boxes())
    assert before < len(chart.tree.nodes)
    chart.page.evaluate("(i) => { location.hash = 'zoom=' + i; }", tiny)
    chart.page.wait_for_function("() => document.querySelector('#axis text').textContent.includes('.')")
    node = chart.tree.nodes[tiny]
    assert_drawn(chart, node.start, node.start + node.total)
    chart.page.keyboard.press("Escape")
    assert len(chart.boxes()) == before


def test_hovering_tells_when_and_how_long(show: Callable[..., Chart]) -> None:
    chart = show(training())
    for name, nth in (("step", 2), ("all_reduce", 5), ("backward", 7)):
        node = chart.find(name, nth)
        stop = node.start + node.total
        shown = chart.hover(node)
        assert shown[0] == name
        assert shown[1] == f"{duration(node.total)} · {share(node.total, chart.end)} of all"
        begin, end = (position(value, node.total / 100, stop, UNIT) for value in (node.start, stop))
        assert shown[2] == f"from {begin} to {end}"
        assert abs(float(begin.split()[0]) * 1e9 - node.start) < node.total or "ms" in begin
    root = chart.tree.nodes[0]
    assert chart.hover(root)[:2] == ["trainer-7 · main-70", f"{duration(chart.end)} · 100.0 % of all"]


def test_begin_and_end_have_as_many_digits_as_the_length(show: Callable[..., Chart]) -> None:
    spans = [Span(0, 5_560_000, Frame("a")), Span(5_600_000, 7_000_000, Frame("b")), Span(8 * MS, 9 * MS, Frame("c"))]
    chart = show(Profile([ValueType("wall", "nanoseconds")], [], timeline=Timeline([Track(spans=spans)])))
    assert chart.hover(chart.find("a"))[1:3] == ["5.56 ms · 61.8 % of all", "from 0.00 ms to 5.56 ms"]
    assert chart.hover(chart.find("b"))[1:3] == ["1.40 ms · 15.6 % of all", "from 5.60 ms to 7.00 ms"]


def test_the_axis_is_that_of_the_window(show: Callable[..., Chart]) -> None:
    chart = show(training())

    def ticks() -> list[tuple[float, str]]:
        found: list[tuple[float, str]] = chart.page.evaluate(
            """() => Array.from(document.querySelectorAll("#axis text"), (t) => [t.getBBox().x - 4, t.textContent])"""
        )
        return found

    def check(begin: int, end: int) -> None:
        found = ticks()
        assert len(found) >= 4
        for x, text in found:
            number, unit = text.replace(",", "").split()
            time = float(number) * {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[unit]
            assert x == pytest.approx(PAD + (time - begin) * 1176 / (end - begin), abs=0.05)

    check(0, chart.end)
    step = chart.find("step", 3)
    chart.click(step)
    check(step.start, step.start + step.total)
    with_script = chart.page.locator("#axis text").all_text_contents()
    assert len(set(with_script)) == len(with_script)


def test_the_axis_of_the_script_is_that_of_the_picture(show: Callable[..., Chart]) -> None:
    profile = training()
    texts = [
        show(profile, java_script_enabled=script).page.locator("#axis text").all_text_contents()
        for script in (True, False)
    ]
    assert texts[0] == texts[1]
    assert len(texts[0]) >= 5


def union(nodes: list[Node], begin: int, end: int) -> int:
    """Time of calls of one name, none inside another."""
    return sum(max(0, min(node.start + node.total, end) - max(node.start, begin)) for node in nodes)


def test_the_share_of_a_search_is_one_of_the_time_of_all_tracks(show: Callable[..., Chart]) -> None:
    chart = show(training())
    hits = [node for node in chart.tree.nodes if node.key.name in ("backward", "all_reduce")]
    outer = [node for node in hits if node.key.name == "backward"]
    outer += [n for n in hits if n.depth == 3 and not any(o.start <= n.start < o.start + o.total for o in outer)]
    # By track, as a call of another one may be at the same time.
    found, band = 0, -1
    inside = -1
    for node in chart.tree.nodes:
        if node.depth == 0:
            band, inside = band + 1, -1
        elif re.search("backward|all_reduce", node.key.name) and node.start >= inside:
            found, inside = found + node.total, node.start + node.total
    assert (
        chart.search("backward|ALL_reduce") == f"matched {share(found, 3 * chart.end)} ({duration(found)} of 3 tracks)"
    )
    step = chart.find("step", 3)
    chart.click(step)
    here = union([n for n in chart.tree.nodes if n.key.name == "step"], step.start, step.start + step.total)
    assert chart.search("^step$").endswith(f", {share(here, 3 * step.total)} here")
    assert chart.search("^trainer").startswith("matched 100.0 % (")


def test_keys_move_in_a_track_and_from_track_to_track(show: Callable[..., Chart]) -> None:
    chart = show(training())
    page = chart.page

    def focused() -> str:
        return str(page.evaluate("() => document.activeElement.getAttribute('aria-label')"))

    page.keyboard.press("Tab")
    assert focused().startswith("trainer-7 · main-70,")
    page.keyboard.press("ArrowRight")
    assert focused().startswith("trainer-7 · loader-71,")
    page.keyboard.press("ArrowUp")
    first = focused()
    assert first.startswith("step,")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert focused().startswith("trainer-7 · loader-71,"), "left of a call there is no call of another track"
    page.keyboard.press("ArrowUp")
    assert focused() == first
    page.keyboard.press("Enter")
    assert page.evaluate("() => location.hash").startswith("#zoom=")
    assert page.locator("#tip").get_attribute("display") == "none"


def test_hostile_names_of_tracks_and_calls_stay_text(show: Callable[..., Chart]) -> None:
    chart = show(training())
    assert chart.page.locator("img, script:not(svg > script)").count() == 0
    escaped = HOSTILE.replace("\u202e", r"\u202e")
    assert chart.hover(chart.find(HOSTILE, 2))[0] == escaped
    last = [node for node in chart.tree.nodes if node.depth == 0][2]
    assert chart.hover(last)[0] == f"trainer-7 · {escaped}-72"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
def test_it_can_be_read(show: Callable[..., Chart], scheme: str, inverted: bool, width: int) -> None:
    wanted = WriteOptions(flamechart=True, inverted=inverted)
    chart = show(training(), wanted, color_scheme=scheme, viewport={"width": width, "height": 700})
    inside = """() => {
        const boxes = Array.from(document.querySelectorAll("#frames rect"), (r) => r.getBBox());
        const out = Array.from(document.querySelectorAll("#labels text"), (t) => [t.textContent, t.getBBox()])
            .filter(([, t]) => !boxes.some((b) => b.x <= t.x && t.x + t.width <= b.x + b.width + 0.05
                && Math.abs(b.y + b.height / 2 - t.y - t.height / 2) < 4));
        const axis = Array.from(document.querySelectorAll("#axis text"), (t) => t.getBBox());
        return [out.length, document.querySelectorAll("#labels text").length,
            Math.max(...axis.map((t) => t.x + t.width)), Math.max(...axis.map((t) => t.y + t.height)),
            Math.min(...boxes.map((b) => b.y)),
            axis.every((t, i) => !i || axis[i - 1].x + axis[i - 1].width < t.x)];
    }"""
    overflowing, labels, right, bottom, top, apart = chart.page.evaluate(inside)
    assert overflowing == 0
    assert labels >= 3
    assert right <= width - PAD
    assert bottom < top + 2
    assert apart
    color = chart.page.evaluate("() => getComputedStyle(document.querySelector('#axis text')).fill")
    assert (sum(map(int, re.findall(r"\d+", color))) > 380) == (scheme == "dark")
    assert chart.page.evaluate("() => window.scrollY") == 0


def test_folded_lines_in_order_have_a_scale_of_samples(show: Callable[..., Chart]) -> None:
    timeline = Timeline([Track(spans=[Span(0, 40, Frame("a")), Span(40, 100, Frame("b"))])], "count")
    profile = Profile([ValueType("samples", "count")], [], timeline=timeline)
    chart = show(profile)
    assert chart.page.locator("#axis text").all_text_contents() == [str(i) for i in range(0, 100, 10)]
    assert chart.hover(chart.find("b"))[1:3] == ["60 samples · 60.0 % of all", "from 40 to 100"]
    assert chart.search("a") == "matched 100.0 % (100)", "the root is called all"
    assert chart.search("^a$") == "matched 40.0 % (40)"
