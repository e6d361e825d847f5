"""Profiles for graphs in the browser, and what an opened graph shows."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from stallscope.converters.flame.tree import Tree
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType

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


LONG = "/opt/an/environment/of/a/library/with_a_rather_long_name_that_goes_on_for_a_while-{}.so.1"


def many_modules() -> Profile:
    samples = []
    for i, kind in enumerate(("kernel", "native", "python", "jit", "api", "other") * 3):
        frames = (Frame("main"), Frame(f"f{i}", kind, Module(LONG.format(i))), Frame(f"g{i}", kind))  # type: ignore[arg-type]
        who = (("pid", i % 3), ("process", "job"), ("state", ("interruptible", "idle", "odd")[i % 3]))
        samples.append(Sample(frames, (10**9 + i, 3), who))
    return Profile(TYPES, samples, title="Of many kinds")
