"""The SVG in a browser, used: what is zoomed, found, told and remembered is compared with the profile."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stallscope.converters.base.units import duration, share
from stallscope.converters.flame.tree import build
from stallscope.converters.model import Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.svg import writer as svg
from stallscope.converters.writers.svg.text import human
from svg_graphs import LIBC, PAD, TYPES, Graph, assert_zoomed, compared, labels, matched, stack, training_node

if TYPE_CHECKING:
    pass


def test_click_zooms_and_an_ancestor_zooms_out(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node())
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
def test_matched_share_counts_nested_matches_once(show_graph: Callable[..., Graph], pattern: str) -> None:
    profile = training_node()
    graph = show_graph(profile)
    graph.search(pattern)
    part = matched(profile, pattern)
    assert graph.result == f"matched {share(part, graph.tree.total)} ({duration(part)})"
    hits = [box["hit"] for box in graph.boxes()]
    assert hits == [bool(re.search(pattern, node.key.name, re.IGNORECASE)) for node in graph.tree.nodes]


def test_matching_case_and_a_pattern_that_is_none(show_graph: Callable[..., Graph]) -> None:
    profile = training_node()
    graph = show_graph(profile)
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


def test_matched_share_of_the_zoomed_frame(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node())
    worker = graph.find("all", "trainer-101", "start_thread", "worker")
    topk = graph.find("all", "trainer-101", "start_thread", "worker", "topk")
    graph.search("topk")
    graph.click(worker)
    nodes = graph.tree.nodes
    assert graph.result.endswith(f", {share(nodes[topk].total, nodes[worker].total)} here")
    graph.search("start_thread")
    assert graph.result.endswith(", 100.0 % here")


def test_zoom_and_search_survive_a_reload(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node())
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
def test_a_fragment_that_makes_no_sense_is_ignored(show_graph: Callable[..., Graph], fragment: str) -> None:
    graph = show_graph(training_node(), fragment)
    assert_zoomed(graph, 0, 1200 - 2 * PAD)


def test_hovering_tells_name_value_shares_and_module(show_graph: Callable[..., Graph]) -> None:
    profile = training_node()
    graph = show_graph(profile)
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
def test_the_script_writes_values_as_python_does(
    show_graph: Callable[..., Graph], unit: str, values: list[int]
) -> None:
    samples = [Sample(stack(f"f{i}"), (value,)) for i, value in enumerate(values)]
    graph = show_graph(Profile([ValueType("v", unit)], samples), wanted=WriteOptions(min_width=0))
    for i, value in enumerate(values):
        graph.search(f"^f{i}$")
        assert graph.result == f"matched {share(value, sum(values))} ({human(value, unit)})"


def test_keys(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node())
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
def test_a_comparison_tells_what_changed(
    show_graph: Callable[..., Graph], drawn: str, name: str, text: list[str]
) -> None:
    graph = show_graph(compared(), wanted=WriteOptions(value=drawn))
    i = next(i for i, node in enumerate(graph.tree.nodes) if node.key.name == name)
    assert graph.hover(i)[1 : 1 + len(text)] == text
    graph.click(i)
    assert graph.hover(i)[2] == text[1]
    label = graph.page.locator("#frames rect").nth(i).get_attribute("aria-label") or ""
    assert text[1] in label


def test_the_details_stay_in_the_window(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node(), wanted=WriteOptions(inverted=True), viewport={"width": 500, "height": 420})
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


def test_keys_of_an_icicle_go_the_other_way(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node(), wanted=WriteOptions(inverted=True))
    page = graph.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    widest = max((n for n in graph.tree.nodes if n.depth == 1), key=lambda n: n.total)
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith(widest.key.name)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith("all,")


def test_reversed_stacks_begin_with_what_waits(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node(), wanted=WriteOptions(reverse=True))
    waits = [node.key.name for node in graph.tree.nodes if node.depth == 1]
    assert waits == ["__schedule", "read", "run<int, A&>(B*)"]
    tips = {node.key.name for node in graph.tree.nodes if node.key.kind == "root"}
    assert tips == {"all", *(f"trainer-{pid}" for pid in range(100, 104))}
    assert graph.overflowing() == []
    schedule = graph.find("all", "__schedule")
    assert f"{share(graph.tree.nodes[schedule].total, graph.tree.total)} of all" in graph.hover(schedule)[1]


def test_names_for_those_who_do_not_see(show_graph: Callable[..., Graph]) -> None:
    graph = show_graph(training_node())
    page = graph.page
    assert page.get_by_role("figure", name="Off-CPU time of 4 processes").count() == 1
    assert page.get_by_role("search").get_by_role("button").all_text_contents() == ["Aa", "Reset"]
    assert page.get_by_role("button", name="Match case").get_attribute("aria-pressed") == "false"
    assert page.get_by_role("textbox", name="Search frames by regular expression").count() == 1
    assert page.get_by_role("group", name="arrow keys").count() == 1
    assert page.get_by_role("button", name=re.compile("^all, 1 min")).count() == 1
    graph.search("topk")
    assert page.get_by_role("status").first.text_content() == graph.result


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


def test_a_huge_graph(show_graph: Callable[..., Graph]) -> None:
    rng = random.Random(5)
    samples = []
    for _ in range(6_000):
        names = [f"function_{int(rng.paretovariate(0.6)) % 3000}" for _ in range(rng.randint(3, 12))]
        samples.append(Sample(stack(*names), (rng.randrange(10**6, 10**8), 1), labels(rng.randrange(4), "job")))
    profile = Profile(TYPES, samples, "Huge")
    graph = show_graph(profile, wanted=WriteOptions(min_width=0.05))
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
