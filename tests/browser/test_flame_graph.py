"""The SVG in a browser: what is drawn, zoomed, found and remembered is compared with the profile."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stallscope.converters.base.units import duration, share
from stallscope.converters.flame.tree import Tree, build
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.svg import writer as svg
from stallscope.converters.writers.svg.text import human

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
                const boxes = Array.from(document.querySelectorAll("#frames rect"), (rect) => rect.getBBox())
                    .filter((box) => box.width > 8);
                return Array.from(document.querySelectorAll("#labels text")).filter((label) => {
                    const text = label.getBBox();
                    return !boxes.some((box) => text.x >= box.x && text.x + text.width <= box.x + box.width + 0.01
                        && text.y >= box.y - 1 && text.y + text.height <= box.y + box.height + 1);
                }).map((label) => label.textContent);
            }"""
        )
        return found


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Graph]:
    def show(profile: Profile, fragment: str = "", wanted: WriteOptions | None = None, **options: Any) -> Graph:
        wanted = wanted or WriteOptions()
        path = tmp_path / "graph.svg"
        with path.open("wb") as file:
            svg.write(profile, file, wanted)
        return Graph(open_file(path, fragment, **options), build(profile, wanted))

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
    own = f"{duration(node.own)} in itself, {duration(node.total - node.own)} in what it calls"
    assert graph.hover(topk) == ["topk", amount, times, own, f"native · {LIBC.path}"]
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
    graph = show(Profile([ValueType("v", unit)], samples), wanted=WriteOptions(min_width=0))
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
    root = graph.page.locator("#frames rect").nth(0).bounding_box()
    assert root is not None
    assert 0 < root["y"] < 900
    graph.page.mouse.move(600, 300)
    bar = graph.page.locator("#bar").bounding_box()
    assert bar is not None
    assert 0 <= bar["y"] < 60
    inverted = show(deep, wanted=WriteOptions(inverted=True))
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


def compared() -> Profile:
    samples = [
        Sample(stack("main", "grown", "leaf"), (1_500_000, 1_000_000)),
        Sample(stack("main", "grown"), (100_000, 200_000)),
        Sample(stack("main", "shrunk"), (400_000, 1_000_000)),
        Sample(stack("main", "new"), (300_000, 0)),
        Sample(stack("main", "gone"), (0, 700_000)),
        Sample(stack("main", "same"), (500_000, 500_000)),
    ]
    return Profile([ValueType("after", "nanoseconds"), ValueType("before", "nanoseconds")], samples)


@pytest.mark.parametrize(
    ("drawn", "name", "text"),
    [
        ("after", "main", ["2.80 ms · 100.0 % of all", "before 3.40 ms: -600 µs (-17.6 %)"]),
        ("after", "leaf", ["1.50 ms · 53.6 % of all", "before 1.00 ms: +500 µs (+50.0 %)"]),
        (
            "after",
            "grown",
            ["1.60 ms · 57.1 % of all", "before 1.20 ms: +400 µs (+33.3 %)", "in itself 100 µs: -100 µs (-50.0 %)"],
        ),
        ("after", "new", ["300 µs · 10.7 % of all", "before 0 ns: +300 µs (new)"]),
        ("after", "same", ["500 µs · 17.9 % of all", "before 500 µs: no change"]),
        ("before", "gone", ["700 µs · 20.6 % of all", "after 0 ns: -700 µs (gone)"]),
        ("before", "grown", ["1.20 ms · 35.3 % of all", "after 1.60 ms: +400 µs (+33.3 %)"]),
        ("before", "shrunk", ["1.00 ms · 29.4 % of all", "after 400 µs: -600 µs (-60.0 %)"]),
    ],
)
def test_a_comparison_tells_what_changed(show: Callable[..., Graph], drawn: str, name: str, text: list[str]) -> None:
    graph = show(compared(), wanted=WriteOptions(value=drawn))
    i = next(i for i, node in enumerate(graph.tree.nodes) if node.key.name == name)
    assert graph.hover(i)[1 : 1 + len(text)] == text
    graph.click(i)
    assert graph.hover(i)[2] == text[1]
    label = graph.page.locator("#frames rect").nth(i).get_attribute("aria-label") or ""
    assert text[1] in label


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_more_is_red_and_less_is_blue(show: Callable[..., Graph], scheme: str) -> None:
    graph = show(compared(), color_scheme=scheme)
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


LONG = "/opt/an/environment/of/a/library/with_a_rather_long_name_that_goes_on_for_a_while-{}.so.1"


def many_modules() -> Profile:
    samples = []
    for i, kind in enumerate(("kernel", "native", "python", "jit", "api", "other") * 3):
        frames = (Frame("main"), Frame(f"f{i}", kind, Module(LONG.format(i))), Frame(f"g{i}", kind))  # type: ignore[arg-type]
        who = (("pid", i % 3), ("process", "job"), ("state", ("interruptible", "idle", "odd")[i % 3]))
        samples.append(Sample(frames, (10**9 + i, 3), who))
    return Profile(TYPES, samples, title="Of many kinds")


@pytest.mark.parametrize(("palette", "swatches"), [("calm", 6), ("hot", 6), ("chain", 6), ("state", 3), ("module", 4)])
def test_the_legend_says_what_the_colours_are(show: Callable[..., Graph], palette: str, swatches: int) -> None:
    for width in (1200, 600, 380):
        graph = show(many_modules(), wanted=WriteOptions(palette=palette), viewport={"width": width, "height": 700})
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
def test_text_can_be_read_in_every_palette(show: Callable[..., Graph], palette: str, scheme: str) -> None:
    profile = compared() if palette == "diff" else many_modules()
    graph = show(profile, wanted=WriteOptions(palette=palette), color_scheme=scheme)
    assert contrasts(graph.page) >= 4.5


@pytest.mark.parametrize("scale", [0.5, 1.5, 3])
@pytest.mark.parametrize(("font", "size"), [("", 8), ("", 20), ("DejaVu Serif", 13)])
def test_no_font_and_no_scale_lets_text_leave_its_box(
    show: Callable[..., Graph], font: str, size: int, scale: float
) -> None:
    for make in (training_node, hostile_names):
        graph = show(make(), wanted=WriteOptions(font=font, font_size=size), device_scale_factor=scale)
        assert graph.page.locator("#labels text").count() > 10
        assert graph.overflowing() == []
        graph.click(graph.find("all", ""))
        assert graph.overflowing() == []
        family = graph.page.evaluate("() => getComputedStyle(document.querySelector('#labels text')).fontFamily")
        assert (font or "monospace") in family


def test_a_font_of_another_width_fits_without_the_script(show: Callable[..., Graph]) -> None:
    wide = Profile(TYPES, [Sample(stack("W" * n), (n, 1)) for n in range(4, 60, 5)])
    graph = show(wide, wanted=WriteOptions(font="DejaVu Serif"), java_script_enabled=False)
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


def test_the_details_stay_in_the_window(show: Callable[..., Graph]) -> None:
    graph = show(training_node(), wanted=WriteOptions(inverted=True), viewport={"width": 500, "height": 420})
    for i in range(len(graph.tree.nodes)):
        graph.hover(i)
        box = graph.page.locator("#tip .tip").bounding_box()
        picture = graph.page.locator("#paper").bounding_box()
        assert box is not None
        assert picture is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 500
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= picture["y"] + picture["height"]


def test_keys_of_an_icicle_go_the_other_way(show: Callable[..., Graph]) -> None:
    graph = show(training_node(), wanted=WriteOptions(inverted=True))
    page = graph.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    widest = max((n for n in graph.tree.nodes if n.depth == 1), key=lambda n: n.total)
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith(widest.key.name)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith("all,")


def test_reversed_stacks_begin_with_what_waits(show: Callable[..., Graph]) -> None:
    graph = show(training_node(), wanted=WriteOptions(reverse=True))
    waits = [node.key.name for node in graph.tree.nodes if node.depth == 1]
    assert waits == ["__schedule", "read", "run<int, A&>(B*)"]
    tips = {node.key.name for node in graph.tree.nodes if node.key.kind == "root"}
    assert tips == {"all", *(f"trainer-{pid}" for pid in range(100, 104))}
    assert graph.overflowing() == []
    schedule = graph.find("all", "__schedule")
    assert f"{share(graph.tree.nodes[schedule].total, graph.tree.total)} of all" in graph.hover(schedule)[1]


def test_names_for_those_who_do_not_see(show: Callable[..., Graph]) -> None:
    graph = show(training_node())
    page = graph.page
    assert page.get_by_role("figure", name="Off-CPU time of 4 processes").count() == 1
    assert page.get_by_role("search").get_by_role("button").all_text_contents() == ["Aa", "Reset"]
    assert page.get_by_role("button", name="Match case").get_attribute("aria-pressed") == "false"
    assert page.get_by_role("textbox", name="Search frames by regular expression").count() == 1
    assert page.get_by_role("group", name="arrow keys").count() == 1
    assert page.get_by_role("button", name=re.compile("^all, 1 min")).count() == 1
    graph.search("topk")
    assert page.get_by_role("status").first.text_content() == graph.result


def test_a_small_graph_prints_on_one_page_and_light(show: Callable[..., Graph]) -> None:
    graph = show(training_node(), color_scheme="dark")
    graph.click(graph.find("all", "trainer-101"))
    pdf = graph.page.pdf(format="A4", landscape=True, print_background=False)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    graph.page.emulate_media(media="print")
    assert contrasts(graph.page) >= 4.5
    assert graph.overflowing() == []


def test_a_graph_that_is_taller_than_the_window_is_whole_on_paper_and_in_a_picture(show: Callable[..., Graph]) -> None:
    deep = Profile(TYPES, [Sample(stack(*(f"f{i}" for i in range(200))), (5, 1), labels(1, "deep"))])
    graph = show(deep)
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


def test_the_pressed_button_can_be_read_under_the_mouse(show: Callable[..., Graph]) -> None:
    for scheme in ("light", "dark"):
        page = show(training_node(), color_scheme=scheme).page
        button = page.get_by_role("button", name="Match case")
        button.click()
        button.hover()
        colours = button.evaluate("(b) => [getComputedStyle(b).color, getComputedStyle(b).backgroundColor]")
        assert colours == ["rgb(255, 255, 255)", "rgb(9, 105, 218)"], scheme


def test_a_path_loses_its_beginning(show: Callable[..., Graph]) -> None:
    names = [f"/srv/{'long/' * 20}main.py", f"std::{'long::' * 20}main", "https://x.org/" + "a/" * 60 + "app.js"]
    samples = [Sample(stack(name), (5, 1), labels(1, "p")) for name in names]
    graph = show(Profile(TYPES, samples))
    shown = graph.page.locator("#labels text").all_text_contents()
    assert any(text.startswith("..") and text.endswith("/main.py") for text in shown)
    assert any(text.startswith("..") and text.endswith("/app.js") for text in shown)
    assert any(text.startswith("std::long") and text.endswith("..") for text in shown)


def test_the_policy_of_the_file_lets_nothing_else_run_or_load(chromium: Any, tmp_path: Path) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    address = f"http://127.0.0.1:{server.getsockname()[1]}/"
    path = tmp_path / "graph.svg"
    with path.open("wb") as file:
        svg.write(training_node(), file, WriteOptions())
    attack = (
        '<script>document.title = "owned";</script>'
        '<rect width="9" height="9" onclick="document.title = \'owned\'" id="bait"/>'
        f'<image href="{address}" width="9" height="9"/><style>@import "{address}";</style>'
    )
    path.write_text(path.read_text().replace('<g id="frames">', f'{attack}<g id="frames">'))
    context = chromium.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator("#bait").dispatch_event("click")
    assert page.title() == "Off-CPU time of 4 processes"
    assert page.locator("#bar input").count() == 1, "our own script has run"
    page.locator("#bar input").fill("topk")
    assert (page.locator("#bar output").text_content() or "").startswith("matched")
    with server, pytest.raises(BlockingIOError):
        server.accept()
    context.close()


def test_a_huge_graph(show: Callable[..., Graph]) -> None:
    rng = random.Random(5)
    samples = []
    for _ in range(6_000):
        names = [f"function_{int(rng.paretovariate(0.6)) % 3000}" for _ in range(rng.randint(3, 12))]
        samples.append(Sample(stack(*names), (rng.randrange(10**6, 10**8), 1), labels(rng.randrange(4), "job")))
    profile = Profile(TYPES, samples, "Huge")
    graph = show(profile, wanted=WriteOptions(min_width=0.05))
    graph.tree = build(profile, WriteOptions(), minimum=0.05 / 1176)
    nodes, total = graph.tree.nodes, graph.tree.total
    px = 1176 / total
    assert len(nodes) > 10_000
    visible = sum(node.total * px >= 0.1 for node in nodes)
    assert graph.page.locator("#frames rect").count() == visible < 0.9 * len(nodes)
    assert graph.overflowing() == []
    graph.search("function_1$")
    expression = re.compile("function_1$")
    found = 0
    end = -1
    for node in nodes:
        if expression.search(node.key.name) and node.start + node.total > end:
            found, end = found + node.total, node.start + node.total
    assert graph.result == f"matched {share(found, total)} ({duration(found)})"
    for wanted in (0.06, 0.3, 18, 36):
        i = min(range(1, len(nodes)), key=lambda i: abs(nodes[i].total * px - wanted))
        graph.page.evaluate("(i) => { location.hash = 'zoom=' + i; }", i)
        graph.page.wait_for_function(
            "(name) => document.querySelector('#tip') && Array.from(document.querySelectorAll('#labels text'))"
            ".some((label) => label.textContent === name && !label.classList.contains('up'))",
            arg=nodes[i].key.name,
        )
        focus = nodes[i]
        text = graph.page.evaluate(
            "() => Array.from(document.querySelectorAll('#frames rect:not([width=\"0\"])'),"
            " (r) => r.getAttribute('x') + ' ' + r.getAttribute('width')).join('\\n')"
        )
        drawn = {tuple(map(float, line.split())) for line in text.split("\n")}
        for node in nodes[i : i + 40]:
            if node.start >= focus.start + focus.total:
                break
            x, width = PAD + (node.start - focus.start) * 1176 / focus.total, node.total * 1176 / focus.total
            assert any(abs(x - left) < 0.02 and abs(width - there) < 1.02 for left, there in drawn), (
                "what was text has become a box"
            )
        assert graph.overflowing() == []
    graph.page.keyboard.press("Escape")
    assert graph.page.locator("#frames rect").count() == visible
