"""The HTML page in a browser: what is drawn, zoomed, found, listed and remembered is compared with the profile."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from html_pages import HOSTILE, TYPES, Shown, compared, hostile_names, matched, stack, training_node
from stallscope.converters.base.text import printable
from stallscope.converters.base.units import counted, duration, share
from stallscope.converters.flame.tree import build
from stallscope.converters.model import Frame, Profile, Sample
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.colors import palette as palettes
from stallscope.converters.writers.html import writer as html

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Shown]:
    def show(profile: Profile, fragment: str = "", given: WriteOptions | None = None, **options: Any) -> Shown:
        path = tmp_path / "graph.html"
        with path.open("wb") as file:
            html.write(profile, file, given or WriteOptions())
        page = open_file(path, fragment, **options)
        page.wait_for_selector("html[data-ready]")
        return Shown(page, build(profile, given or WriteOptions()))

    return show


# ---- Graphs


@pytest.mark.parametrize("view", ["flame", "icicle"])
def test_every_box_is_where_it_belongs_with_its_numbers(show: Callable[..., Shown], view: str) -> None:
    shown = show(training_node(), f"#view={view}")
    shown.inverted = view == "icicle"
    nodes = shown.tree.nodes
    for node in nodes:
        name, numbers, *_ = shown.hover(node)
        assert name == node.key.name
        assert numbers == f"{duration(node.total)} · {share(node.total, nodes[0].total)} of all"
        assert f"count: {node.events:,}" in shown.page.locator("#tip").inner_text()
    # Beside the innermost frames there is nothing.
    deepest = max(nodes, key=lambda node: node.depth)
    _, y = shown.spot(deepest)
    assert shown.move(2, y) == []


def test_one_function_has_the_colour_of_each_of_its_states(show: Callable[..., Shown]) -> None:
    waits = [("a;read;wait", "interruptible"), ("a;write;wait", "uninterruptible"), ("b;wait", "running"), ("b", "")]
    samples = [
        Sample(tuple(map(Frame, text.split(";"))), (5, 1), (("state", state),) if state else ())
        for text, state in waits
    ]
    profile = Profile(TYPES, samples)
    shown = show(profile, given=WriteOptions(palette="state"))
    palette = palettes.choose("state", profile, "off-cpu")
    tree = build(profile, WriteOptions(), label=palette.label)
    assert [node.key for node in tree.nodes] == [node.key for node in shown.tree.nodes]
    colours = set()
    for node in tree.nodes:
        colours.add(shown.color(*shown.corner(node)))
        assert shown.color(*shown.corner(node)) == shown.fill(palette.css_class(node)), node
    assert len(colours) >= 4


def test_boxes_have_the_colours_of_the_svg(show: Callable[..., Shown]) -> None:
    profile = training_node()
    shown = show(profile)
    palette = palettes.choose("", profile, "off-cpu")
    for node in shown.tree.nodes:
        assert shown.color(*shown.corner(node)) == shown.fill(palette.css_class(node)), node
    legend = shown.page.locator("#legend > span").all_text_contents()
    assert legend == ["kernel", "native"]


def test_details(show: Callable[..., Shown]) -> None:
    shown = show(training_node())
    run = shown.tree.nodes[shown.find("main", "run<int, A&>(B*)")]
    lines = shown.hover(run)
    assert f"{duration(run.own)} in itself, {duration(run.total - run.own)} in what it calls" in lines
    assert lines[-1] == "native · /usr/lib/libc.so.6"


def test_click_zooms_and_an_ancestor_zooms_out(show: Callable[..., Shown]) -> None:
    shown = show(training_node())
    nodes = shown.tree.nodes
    at = shown.find("trainer-102", "start_thread", "worker")
    worker = nodes[at]
    shown.click(worker)
    assert shown.fragment == f"#zoom={at}"
    topk = nodes[shown.find("trainer-102", "start_thread", "worker", "topk")]
    of_all, of_worker = share(topk.total, nodes[0].total), share(topk.total, worker.total)
    assert shown.hover(topk, worker)[:2] == [
        "topk",
        f"{duration(topk.total)} · {of_all} of all · {of_worker} of worker",
    ]
    trainer = nodes[shown.find("trainer-102")]
    assert shown.hover(trainer, worker)[0] == "trainer-102"
    shown.click(trainer, worker)
    assert shown.hover(topk, trainer)[0] == "topk"
    shown.page.locator("#reset").click()
    assert shown.fragment == ""
    assert shown.hover(topk)[0] == "topk"


def test_the_place_is_in_the_address(show: Callable[..., Shown]) -> None:
    shown = show(training_node(), "#view=icicle&zoom=2&search=TOPK&case=1&value=1")
    assert shown.page.locator("#search").input_value() == "TOPK"
    assert shown.page.locator("#value").input_value() == "1"
    assert shown.page.locator("[aria-pressed=true]").all_text_contents() == ["Icicle", "Aa"]
    assert shown.result == "matched 0.0 % (0), 0.0 % here"
    shown.page.locator("#case").click()
    assert shown.fragment == "#view=icicle&value=1&zoom=2&search=TOPK"
    shown.view("table")
    shown.page.go_back()
    shown.page.wait_for_function("() => location.hash.includes('icicle')")
    assert shown.page.locator("#graph").is_visible()


@pytest.mark.parametrize(
    "fragment", ["#zoom=99999&view=x&value=7", "#zoom=-1&value=-1", "#zoom=1e2&search=(", "#%00=%ff"]
)
def test_an_address_of_another_page_is_harmless(show: Callable[..., Shown], fragment: str) -> None:
    shown = show(training_node(), fragment)
    assert shown.hover(shown.tree.nodes[0])[0] == "all"


# ---- Search, values, table


def test_search_says_its_share(show: Callable[..., Shown]) -> None:
    profile = training_node()
    shown = show(profile)
    whole = profile.total("off-cpu")
    for pattern in ("schedule", "^run", "topk|read", "trainer-10[12]", "nothing"):
        found = matched(profile, pattern)
        assert shown.search(pattern) == f"matched {share(found, whole)} ({duration(found)})"
    topk = shown.tree.nodes[shown.find("topk")]
    shown.search("topk")
    assert shown.color(*shown.corner(topk)) == shown.fill("hit")
    worker = shown.tree.nodes[shown.find("worker")]
    shown.click(worker)
    assert shown.result.endswith(f", {share(topk.total, worker.total)} here")
    assert shown.search("(") == "not a regular expression"
    assert shown.search("") == ""


def test_the_pressed_tab_can_be_read_under_the_mouse(show: Callable[..., Shown]) -> None:
    for scheme in ("light", "dark"):
        page = show(training_node(), color_scheme=scheme).page
        tab = page.locator("#views button[aria-pressed=true]")
        tab.hover()
        ink, paper = tab.evaluate("(b) => [getComputedStyle(b).color, getComputedStyle(b).backgroundColor]")
        assert ink == "rgb(255, 255, 255)"
        assert paper in ("rgb(9, 105, 218)", "rgb(31, 111, 235)"), scheme


def test_another_value(show: Callable[..., Shown]) -> None:
    profile = training_node()
    shown = show(profile)
    shown.page.locator("#value").select_option("1")
    shown.tree = build(profile, WriteOptions(value="count"))
    for node in shown.tree.nodes:
        assert shown.hover(node)[:2] == [
            node.key.name,
            f"{counted(node.total, 'times')} · {share(node.total, shown.tree.total)} of all",
        ]
    assert show(profile, given=WriteOptions(value="count")).page.locator("#value").input_value() == "1"


def test_the_table_adds_up(show: Callable[..., Shown]) -> None:
    profile = training_node()
    own: defaultdict[str, int] = defaultdict(int)
    total: defaultdict[str, int] = defaultdict(int)
    for sample in profile.samples:
        own[sample.stack[-1].name] += sample.values[0]
        for name in {frame.name for frame in sample.stack}:
            total[name] += sample.values[0]
    whole = profile.total("off-cpu")
    shown = show(profile, "#view=table")
    assert shown.table() == {
        name: [
            duration(own[name]) if own[name] else "0",
            share(own[name], whole),
            duration(total[name]),
            share(total[name], whole),
        ]
        for name in total
    }
    assert [own[name] for name in shown.table()] == sorted((own[name] for name in total), reverse=True)
    shown.page.locator("#heads [data-key=total]").click()
    assert [total[name] for name in shown.table()] == sorted(total.values(), reverse=True)
    shown.page.locator("#heads [data-key=name]").click()
    assert list(shown.table()) == sorted(total)
    shown.page.locator("#heads [data-key=name]").click()
    assert list(shown.table()) == sorted(total, reverse=True)
    shown.search("^r")
    assert list(shown.table()) == ["run<int, A&>(B*)", "read"]
    shown.page.locator("#rows button", has_text="run").click()
    found = matched(profile, r"^run<int, A&>\(B\*\)$")
    assert shown.result == f"matched {share(found, whole)} ({duration(found)})"
    assert shown.page.locator("#graph").is_visible()


def test_the_table_is_of_what_is_zoomed(show: Callable[..., Shown]) -> None:
    shown = show(training_node())
    worker = shown.tree.nodes[shown.find("worker")]
    shown.click(worker)
    shown.view("table")
    assert set(shown.table()) == {"worker", "topk", "ioctl", "do_syscall", "schedule", "Queue::pop()", "futex"}
    assert shown.table()["worker"][2:] == [duration(worker.total), "100.0 %"]


def test_a_long_table_comes_in_parts(show: Callable[..., Shown]) -> None:
    samples = [Sample(stack(f"f{i}"), (i + 1, 1)) for i in range(450)]
    shown = show(Profile(TYPES, samples), "#view=table")
    assert list(shown.table()) == [f"f{449 - i}" for i in range(200)]
    shown.page.locator("#more").click()
    shown.page.locator("#more").click()
    assert len(shown.table()) == 450
    assert shown.page.locator("#more").is_hidden()


# ---- What changed


def test_what_changed_is_coloured_as_in_the_svg(show: Callable[..., Shown]) -> None:
    profile = compared()
    shown = show(profile)
    palette = palettes.choose("", profile, "after")
    classes = set()
    for node in shown.tree.nodes:
        classes.add(palette.css_class(node))
        assert shown.color(*shown.corner(node)) == shown.fill(palette.css_class(node)), node
    assert len(classes) >= 5
    some = shown.tree.nodes[shown.find("some")]
    assert "100 ms before, 112 ms after: +12.0 ms (+12.0 %)" in shown.hover(some)
    shown.view("table")
    table = shown.table()
    assert table["double"][:3] == ["100 ms", "300 ms", "+200 ms (+200.0 %)"]
    assert table["gone"][3:] == ["70.0 ms", "0", "−70.0 ms (−100.0 %)"]
    assert table["new"][:3] == ["0", "200 ms", "+200 ms (new)"]
    assert table["same"][2] == "0"
    assert list(table)[-2:] == ["main", "same"]


# ---- Hostile names, and what is missing


def test_names_stay_text(show: Callable[..., Shown]) -> None:
    profile = hostile_names()
    shown = show(profile)
    count = "() => document.querySelectorAll('script, img, iframe, object, a, [onload], [onerror], b b').length"
    elements = shown.page.evaluate(count)
    for node in shown.tree.nodes[1:]:
        assert shown.hover(node)[0] == printable(node.key.name)
    shown.view("table")
    assert set(shown.table()) == {printable(frame.name) for sample in profile.samples for frame in sample.stack}
    assert shown.page.evaluate(count) == elements
    assert shown.page.locator("#title").text_content() == printable(HOSTILE[0])
    assert shown.page.evaluate("() => document.title") == printable(HOSTILE[0])
    for i in range(3):
        shown.page.locator("#rows button").nth(i).click()
        assert float(re.findall(r"matched ([\d.]+) %", shown.result)[0]) > 0
        shown.search("")
        shown.view("table")


def test_losses_and_comments_are_told(show: Callable[..., Shown]) -> None:
    shown = show(training_node())
    assert shown.page.locator("#notes p").all_text_contents() == ["lost: 12 lost events", "said"]
    assert shown.page.locator("#notes .warning").count() == 1
    assert "node-17" in (shown.page.locator("#about").text_content() or "")
    complete = training_node()
    complete.lost = {}
    assert show(complete).page.locator("#notes p").first.text_content() == "lost: not recorded"


def test_nothing_to_show(show: Callable[..., Shown]) -> None:
    assert "no samples" in show(Profile(TYPES)).page.locator("#nothing").inner_text()
    nothing = Profile(TYPES, [Sample(stack("f"), (0, 3))])
    shown = show(nothing)
    assert "none with a value above 0" in shown.page.locator("#nothing").inner_text()
    shown.page.locator("#value").select_option("1")
    shown.tree = build(nothing, WriteOptions(value="count"))
    assert shown.hover(shown.tree.nodes[0])[0] == "all"


def test_a_damaged_file_says_so(show: Callable[..., Shown], open_file: Callable[..., Page], tmp_path: Path) -> None:
    show(training_node())
    source = (tmp_path / "graph.html").read_text()
    path = tmp_path / "damaged.html"
    path.write_text(re.sub(r'(id="data">\n.{40}).*', r"\1", source, count=1))
    page = open_file(path)
    page.locator("#nothing").wait_for()
    assert "its data is damaged" in page.locator("#nothing").inner_text()


# ---- Keys, size, dark and paper


def test_keys(show: Callable[..., Shown]) -> None:
    shown = show(training_node())
    keyboard = shown.page.keyboard
    shown.page.locator("#canvas").focus()

    def press(key: str) -> str:
        keyboard.press(key)
        return (shown.page.locator("#tip b").text_content() or "") if shown.page.locator("#tip").is_visible() else ""

    assert press("ArrowUp") == "trainer-103"  # the widest child
    assert press("ArrowLeft") == "trainer-102"
    assert press("ArrowRight") == "trainer-103"
    assert press("ArrowUp") == "main"
    assert press("ArrowRight") == "start_thread"
    assert press("ArrowDown") == "trainer-103"
    keyboard.press("Enter")
    assert shown.fragment == f"#zoom={shown.find('trainer-103')}"
    keyboard.press("/")
    keyboard.type("topk")
    assert shown.result.startswith("matched")
    keyboard.press("Escape")
    assert (shown.result, shown.fragment) == ("", "")


def test_a_stack_of_thousands_of_frames(show: Callable[..., Shown]) -> None:
    """The window alone is drawn, and it is scrolled."""
    deep = tuple(Frame(f"f{i}") for i in range(3_000))
    shown = show(Profile(TYPES, [Sample(deep, (5_000, 1)), Sample((Frame("z"),), (5_000, 1))]))
    size = shown.page.evaluate("() => [document.getElementById('canvas').height, innerHeight]")
    assert size[0] <= size[1]
    assert shown.hover(shown.tree.nodes[1])[0] == "f0"  # the roots are in the window from the start
    shown.page.evaluate("() => { document.getElementById('graph').scrollTop = 0; }")
    assert shown.hover(shown.tree.nodes[3_000])[0] == "f2999"


def test_narrow_and_dense_screens(show: Callable[..., Shown]) -> None:
    shown = show(training_node(), viewport={"width": 420, "height": 700}, device_scale_factor=2)
    assert shown.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for node in shown.tree.nodes:
        if node.depth < 4:
            assert shown.hover(node)[0] == node.key.name
    assert (
        shown.page.evaluate("() => { const c = document.getElementById('canvas'); return c.width / c.clientWidth; }")
        == 2
    )
    shown.page.set_viewport_size({"width": 900, "height": 700})
    shown.page.wait_for_function("() => document.getElementById('canvas').clientWidth > 800")
    assert shown.hover(shown.tree.nodes[1])[0] == "trainer-100"


def test_dark_on_screen_and_light_on_paper(show: Callable[..., Shown]) -> None:
    shown = show(training_node(), color_scheme="dark")
    x, y = shown.spot(shown.tree.nodes[0])
    dark = shown.color(x, y)
    assert max(dark) < 128
    shown.page.emulate_media(media="print")
    shown.page.wait_for_selector("html.printing")
    assert min(shown.color(x, y)) > 128
    assert shown.page.locator("#bar").is_hidden()
    shown.page.emulate_media(media="screen", color_scheme="light")
    shown.page.wait_for_selector("html:not(.printing)")
    assert min(shown.color(x, y)) > 128
    shown.page.emulate_media(color_scheme="dark")
    for _ in range(100):
        if shown.color(x, y) == dark:
            break
        shown.page.wait_for_timeout(50)
    assert shown.color(x, y) == dark
