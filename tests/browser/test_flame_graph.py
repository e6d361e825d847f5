"""The SVG in a browser: what is drawn, zoomed, found and remembered is compared with the profile."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stallscope.converters.flame import Tree, build
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.options import WriteOptions
from stallscope.converters.units import duration, share
from stallscope.converters.writers import svg
from stallscope.converters.writers.svg import SvgOptions
from stallscope.converters.writers.svg_text import human

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAD = 12
LIBC = Module("/usr/lib/x86_64-linux-gnu/libc.so.6")
TYPES = [ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")]
HOSTILE = [
    "<script>alert(1)</script>;x",
    '"]]><b>&amp;"',
    "' onload='alert(1)",
    "</title></rect><image href='http://127.0.0.1:9/'/>",
    "javascript:alert(1)",
    "evil\u202egnp.exe",
    "日本語の関数名はとても長いことがあります",
    "﷽﷽﷽﷽﷽﷽﷽﷽",
    "Ω≈ç√∫˜µ≤≥÷åß∂ƒ©˙∆˚¬…æ",
    "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦 family",
    "std::map<std::string, std::vector<int>>::operator[](std::string const&)",
    "  spaces   inside  ",
    "constructor",
    "__proto__",
]


def labels(pid: int, process: str) -> Labels:
    return (("pid", pid), ("process", process))


def stack(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(n[:-4], "kernel") if n.endswith("_[k]") else Frame(n, "native", LIBC) for n in names)


def training_node() -> Profile:
    rng = random.Random(17)
    lock = ["entry_[k]", "do_syscall_[k]", "__mutex_lock_[k]", "schedule_[k]", "__schedule_[k]"]
    futex = ["entry_[k]", "do_syscall_[k]", "do_futex_[k]", "futex_wait_[k]", "schedule_[k]", "__schedule_[k]"]
    samples = []
    for pid in range(100, 104):
        who = labels(pid, "trainer")
        for names, value in (
            (("start_thread", "worker", "topk", "cudaGetDeviceProperties", "ioctl", *lock), 8_000_000_000),
            (("start_thread", "worker", "Queue::pop()", "pthread_cond_wait", *futex), 1_000_000_000),
            (("main", "run<int, A&>(B*)", "pthread_cond_wait", *futex), 7_000_000_000),
            (("main", "run<int, A&>(B*)", "futex_helper", "read"), 2_000_000_000),
            (("main", "run<int, A&>(B*)"), 300_000_000),
        ):
            samples.append(Sample(stack(*names), (value + rng.randrange(10**8), rng.randint(2, 9999)), who))
    return Profile(TYPES, samples, "Off-CPU time of 4 processes", "node-17", lost={"lost events": 0})


def hostile_names() -> Profile:
    samples = []
    for i, name in enumerate(HOSTILE):
        for width in (4, 60, 900):
            samples.append(Sample(stack(name, f"{name}{width}"), (width * 1000 + i, 1), labels(i, name)))
    return Profile(TYPES, samples, HOSTILE[0], HOSTILE[1], lost={HOSTILE[2]: 1}, comments=[HOSTILE[3]])


class Graph:
    """An opened graph and the tree that it should show. Frames are numbered as the tree's nodes."""

    def __init__(self, page: Page, tree: Tree) -> None:
        self.page = page
        self.tree = tree

    def find(self, *path: str) -> int:
        """The first node with this path (a part of each name, from the root on)."""
        trail: list[str] = []
        for i, node in enumerate(self.tree.nodes):
            del trail[node.depth :]
            trail.append(node.key.name)
            if len(trail) == len(path) and all(part in name for part, name in zip(path, trail, strict=True)):
                return i
        raise LookupError(path)

    def boxes(self) -> list[dict[str, Any]]:
        boxes: list[dict[str, Any]] = self.page.evaluate(
            """() => Array.from(document.querySelectorAll("#frames rect"), (rect) => ({
                x: +rect.getAttribute("x"), width: +rect.getAttribute("width"),
                faded: rect.classList.contains("up"), hit: rect.classList.contains("hit")}))"""
        )
        return boxes

    def spot(self, i: int) -> tuple[float, float]:
        box = self.page.locator("#frames rect").nth(i).bounding_box()
        assert box is not None
        return box["x"] + min(box["width"] / 2, 40), box["y"] + box["height"] / 2

    def click(self, i: int) -> None:
        self.page.mouse.click(*self.spot(i))

    def hover(self, i: int) -> list[str]:
        self.page.mouse.move(*self.spot(i))
        return self.page.locator("#tip .tip > *").all_text_contents()

    def search(self, pattern: str) -> None:
        self.page.locator("#bar input").fill(pattern)

    @property
    def result(self) -> str:
        return self.page.locator("#bar output").text_content() or ""

    @property
    def typed(self) -> str:
        return str(self.page.evaluate("() => document.querySelector('#bar input').value"))

    @property
    def fragment(self) -> str:
        return str(self.page.evaluate("() => location.hash"))

    def overflowing(self) -> list[str]:
        """Labels that leave their box."""
        found: list[str] = self.page.evaluate(
            """() => {
                const rects = document.querySelectorAll("#frames rect");
                return Array.from(document.querySelectorAll("#labels text")).filter((label) => {
                    const text = label.getBBox();
                    const box = rects[Number(label.getAttribute("data-i"))].getBBox();
                    return text.x < box.x || text.x + text.width > box.x + box.width + 0.01
                        || text.y < box.y - 1 || text.y + text.height > box.y + box.height + 1;
                }).map((label) => label.textContent);
            }"""
        )
        return found


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Graph]:
    def show(profile: Profile, fragment: str = "", svg_options: SvgOptions | None = None, **options: Any) -> Graph:
        path = tmp_path / "graph.svg"
        with path.open("wb") as file:
            svg.write(profile, file, WriteOptions(), svg_options)
        return Graph(open_file(path, fragment, **options), build(profile, WriteOptions()))

    return show


def matched(profile: Profile, pattern: str, flags: int = re.IGNORECASE) -> int:
    """Time of the samples on whose path any name matches, found without the tree."""
    expression = re.compile(pattern, flags)
    return sum(
        sample.values[0]
        for sample in profile.samples
        if any(
            expression.search(name)
            for name in (f"{sample.label('process')}-{sample.label('pid')}", *(f.name for f in sample.stack))
        )
    )


def assert_zoomed(graph: Graph, zoomed: int, full: float) -> None:
    nodes = graph.tree.nodes
    focus = nodes[zoomed]
    scale = full / focus.total
    for i, (box, node) in enumerate(zip(graph.boxes(), nodes, strict=True)):
        inside = focus.start <= node.start and node.start + node.total <= focus.start + focus.total
        above = node.start <= focus.start and node.start + node.total >= focus.start + focus.total
        if i == zoomed or (above and node.depth < focus.depth):
            assert (box["x"], box["width"]) == (PAD, pytest.approx(full - 1, abs=0.01))
            assert box["faded"] == (i != zoomed)
        elif inside and node.depth > focus.depth:
            assert box["x"] == pytest.approx(PAD + (node.start - focus.start) * scale, abs=0.01)
            assert box["width"] == pytest.approx(node.total * scale, abs=1.01)
            assert not box["faded"]
        else:
            assert box["width"] == 0


def test_click_zooms_and_an_ancestor_zooms_out(show: Callable[..., Graph]) -> None:
    graph = show(training_node())
    full = 1200 - 2 * PAD
    assert_zoomed(graph, 0, full)
    topk = graph.find("all", "trainer-102", "start_thread", "worker", "topk")
    graph.click(topk)
    assert_zoomed(graph, topk, full)
    start_thread = graph.find("all", "trainer-102", "start_thread")
    graph.click(start_thread)
    assert_zoomed(graph, start_thread, full)
    graph.page.locator("#bar button", has_text="Reset").click()
    assert_zoomed(graph, 0, full)
    assert graph.fragment == ""
    graph.page.go_back()
    graph.page.wait_for_function(f"() => location.hash === '#zoom={start_thread}'")
    assert_zoomed(graph, start_thread, full)


@pytest.mark.parametrize(
    "pattern", ["topk", "futex", "cudaGet|futex_wait", "^trainer-10[13]", "schedule", "Int, A&>", "nowhere"]
)
def test_matched_share_counts_nested_matches_once(show: Callable[..., Graph], pattern: str) -> None:
    profile = training_node()
    graph = show(profile)
    graph.search(pattern)
    part = matched(profile, pattern)
    assert graph.result == f"matched {share(part, graph.tree.total)} ({duration(part)})"
    hits = [box["hit"] for box in graph.boxes()]
    assert hits == [bool(re.search(pattern, node.key.name, re.IGNORECASE)) for node in graph.tree.nodes]


def test_matching_case_and_a_pattern_that_is_none(show: Callable[..., Graph]) -> None:
    profile = training_node()
    graph = show(profile)
    graph.search("QUEUE::POP")
    assert graph.result.startswith(f"matched {share(matched(profile, 'Queue'), graph.tree.total)}")
    case = graph.page.locator("#bar button", has_text="Aa")
    case.click()
    assert graph.result == "matched 0.0 % (0 ns)"
    assert case.get_attribute("aria-pressed") == "true"
    graph.search("Queue::pop")
    assert graph.result.startswith(f"matched {share(matched(profile, 'Queue'), graph.tree.total)}")
    graph.search("(")
    assert graph.result == "not a regular expression"
    graph.search("")
    assert graph.result == ""
    assert not any(box["hit"] for box in graph.boxes())


def test_matched_share_of_the_zoomed_frame(show: Callable[..., Graph]) -> None:
    graph = show(training_node())
    worker = graph.find("all", "trainer-101", "start_thread", "worker")
    topk = graph.find("all", "trainer-101", "start_thread", "worker", "topk")
    graph.search("topk")
    graph.click(worker)
    nodes = graph.tree.nodes
    assert graph.result.endswith(f", {share(nodes[topk].total, nodes[worker].total)} here")
    graph.search("start_thread")
    assert graph.result.endswith(", 100.0 % here")


def test_zoom_and_search_survive_a_reload(show: Callable[..., Graph]) -> None:
    graph = show(training_node())
    pattern = "run<int, A&>|100%+#"
    topk = graph.find("all", "trainer-103", "start_thread", "worker", "topk")
    graph.search(pattern)
    graph.page.locator("#bar button", has_text="Aa").click()
    graph.click(topk)
    before, result = graph.boxes(), graph.result
    graph.page.reload()
    assert graph.boxes() == before
    assert graph.result == result
    assert graph.typed == pattern
    assert graph.page.locator("#bar button", has_text="Aa").get_attribute("aria-pressed") == "true"
    graph.page.keyboard.press("Escape")
    graph.page.reload()
    assert_zoomed(graph, 0, 1200 - 2 * PAD)
    assert graph.typed == ""


@pytest.mark.parametrize(
    "fragment",
    ["#zoom=99999999", "#zoom=-1", "#zoom=1.5", "#zoom=x&search=%E0%A4%A", "#&&=&=%", "#svgView(viewBox(0,0,1,1))"],
)
def test_a_fragment_that_makes_no_sense_is_ignored(show: Callable[..., Graph], fragment: str) -> None:
    graph = show(training_node(), fragment)
    assert_zoomed(graph, 0, 1200 - 2 * PAD)


def test_hovering_tells_name_value_shares_and_module(show: Callable[..., Graph]) -> None:
    profile = training_node()
    graph = show(profile)
    nodes = graph.tree.nodes
    worker = graph.find("all", "trainer-100", "start_thread", "worker")
    topk = graph.find("all", "trainer-100", "start_thread", "worker", "topk")
    node = nodes[topk]
    amount = f"{duration(node.total)} · {share(node.total, graph.tree.total)} of all"
    times = f"{node.events:,} times, {duration(round(node.total / node.events))} on average"
    assert graph.hover(topk) == ["topk", amount, times, f"native · {LIBC.path}"]
    graph.click(worker)
    graph.page.mouse.move(0, 0)
    assert graph.page.locator("#tip").get_attribute("display") == "none"
    zoomed = f"{amount} · {share(node.total, nodes[worker].total)} of worker"
    assert graph.hover(topk)[:2] == ["topk", zoomed]
    graph.page.keyboard.press("Escape")
    run = graph.find("all", "trainer-100", "main", "run")
    own = nodes[run].own
    assert f"{duration(own)} in itself, {duration(nodes[run].total - own)} in what it calls" in graph.hover(run)
    assert not graph.page.locator("#frames rect").nth(run).locator("title").count()


@pytest.mark.parametrize(
    ("unit", "values"),
    [
        ("nanoseconds", [7, 999, 1_001, 9_994_000, 59_940_000_000, 61_000_000_000, 3_601_000_000_000, 10**14]),
        ("milliseconds", [7, 1_234, 123_456]),
        ("bytes", [1023, 1_234_567, 12_345_678_901]),
        ("count", [1_234, 1_234_567]),
        ("joules", [1_234]),
    ],
)
def test_the_script_writes_values_as_python_does(show: Callable[..., Graph], unit: str, values: list[int]) -> None:
    samples = [Sample(stack(f"f{i}"), (value,)) for i, value in enumerate(values)]
    graph = show(Profile([ValueType("v", unit)], samples), svg_options=SvgOptions(min_width=0))
    for i, value in enumerate(values):
        graph.search(f"^f{i}$")
        assert graph.result == f"matched {share(value, sum(values))} ({human(value, unit)})"


@pytest.mark.parametrize("width", [380, 700, 1200, 2500])
@pytest.mark.parametrize("make", [training_node, hostile_names])
def test_no_text_leaves_its_box(show: Callable[..., Graph], make: Callable[[], Profile], width: int) -> None:
    graph = show(make(), viewport={"width": width, "height": 700})
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


def test_hostile_names_stay_text(show: Callable[..., Graph]) -> None:
    graph = show(hostile_names())
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


def test_keys(show: Callable[..., Graph]) -> None:
    graph = show(training_node())
    page = graph.page

    def focused() -> int:
        return int(
            page.evaluate("() => Array.from(document.querySelectorAll('#frames rect')).indexOf(document.activeElement)")
        )

    page.keyboard.press("Tab")
    assert focused() == 0
    page.keyboard.press("ArrowUp")
    widest = max((n for n in graph.tree.nodes if n.depth == 1), key=lambda n: n.total)
    assert graph.tree.nodes[focused()] == widest
    page.keyboard.press("ArrowDown")
    assert focused() == 0
    page.keyboard.press("ArrowUp")
    while graph.tree.nodes[focused()].key.name != "trainer-100":
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    process = graph.find("all", "trainer-101")
    assert focused() == process
    assert "trainer-101" in (page.locator("#frames rect").nth(process).get_attribute("aria-label") or "")
    assert page.locator("#tip b").text_content() == "trainer-101"
    page.keyboard.press("Enter")
    assert_zoomed(graph, process, 1200 - 2 * PAD)
    for find in ("/", "Control+f"):
        page.keyboard.press(find)
        assert page.evaluate("() => document.activeElement.localName") == "input"
        page.keyboard.type("topk")
        assert graph.result.startswith("matched ")
        page.keyboard.press("Escape")
        assert graph.result == ""
        assert_zoomed(graph, 0, 1200 - 2 * PAD)
    page.keyboard.press("/")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert graph.fragment == "#case=1"


def test_a_tall_graph_opens_at_its_roots_with_the_bar_in_sight(show: Callable[..., Graph]) -> None:
    deep = Profile(TYPES, [Sample(stack(*(f"f{i}" for i in range(1500))), (5, 1), labels(1, "deep"))])
    graph = show(deep)
    root, bar = graph.page.locator("#frames rect").nth(0).bounding_box(), graph.page.locator("#bar").bounding_box()
    assert root is not None
    assert bar is not None
    assert 0 < root["y"] < 900
    assert 0 <= bar["y"] < 60
    inverted = show(deep, svg_options=SvgOptions(inverted=True))
    assert inverted.page.evaluate("() => window.scrollY") == 0


def test_the_picture_is_complete_without_its_script(show: Callable[..., Graph]) -> None:
    for make in (training_node, hostile_names):
        graph = show(make(), java_script_enabled=False, viewport={"width": 1300, "height": 900})
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


def contrasts(page: Page) -> float:
    """The smallest contrast of a label with its box or of a line with the paper."""
    return float(
        page.evaluate(
            """() => {
                const light = (color) => {
                    const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
                        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
                };
                const contrast = (a, b) => {
                    const lights = [a, b].map((element) => light(getComputedStyle(element).fill));
                    const [low, high] = lights.sort((x, y) => x - y);
                    return (high + 0.05) / (low + 0.05);
                };
                const rects = document.querySelectorAll("#frames rect");
                const paper = document.getElementById("paper");
                const labels = Array.from(document.querySelectorAll("#labels text"));
                const lines = Array.from(document.querySelectorAll("#page > text, #legend text"));
                return Math.min(...labels.map((label) => contrast(label, rects[label.getAttribute("data-i")])),
                    ...lines.map((line) => contrast(line, paper)));
            }"""
        )
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(show: Callable[..., Graph], scheme: str) -> None:
    graph = show(training_node(), color_scheme=scheme)
    paper = graph.page.evaluate("() => getComputedStyle(document.getElementById('paper')).fill")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    assert contrasts(graph.page) >= 4.5
    graph.search("topk|wait")
    assert contrasts(graph.page) >= 4.5
    graph.page.emulate_media(media="print", color_scheme="dark")
    assert graph.page.evaluate("() => getComputedStyle(document.getElementById('paper')).fill") == "rgb(255, 255, 255)"
    assert contrasts(graph.page) >= 4.5
    assert not graph.page.locator("#bar").is_visible()


def test_an_empty_profile_opens(show: Callable[..., Graph]) -> None:
    graph = show(Profile(TYPES, title="Idle"))
    assert "Nothing to show" in (graph.page.locator(".nothing").text_content() or "")
