"""Profiles for HTML pages in the browser, and what an opened page shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stallscope.converters.flame.tree import Node, Tree
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROW = 18
LIBC = Module("/usr/lib/libc.so.6")
TYPES = [ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")]
HOSTILE = [
    "<script>alert(1)</script>;x",
    "</script><img src=x onerror=alert(1)>",
    "' onload='alert(1)",
    "javascript:alert(1)",
    "evil\u202egnp.exe\x1b[2J",
    "日本語の関数名はとても長いことがあります",
    "__proto__",
    "constructor",
]


def labels(pid: int, process: str) -> Labels:
    return (("pid", pid), ("process", process))


def stack(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(n[:-4], "kernel") if n.endswith("_[k]") else Frame(n, "native", LIBC) for n in names)


def training_node() -> Profile:
    samples = []
    for pid in range(100, 104):
        who = labels(pid, "trainer")
        for names, value in (
            (("start_thread", "worker", "topk", "ioctl", "do_syscall_[k]", "schedule_[k]"), 8_070_000_000 + pid),
            (("start_thread", "worker", "Queue::pop()", "futex_[k]", "schedule_[k]"), 1_040_000_000 + pid),
            (("main", "run<int, A&>(B*)", "futex_[k]", "schedule_[k]"), 7_050_000_000 + pid),
            (("main", "run<int, A&>(B*)", "read"), 2_060_000_000 + pid),
            (("main", "run<int, A&>(B*)", "read", "run<int, A&>(B*)"), 400_000_000),
            (("main", "run<int, A&>(B*)"), 300_000_000),
        ):
            samples.append(Sample(stack(*names), (value, 1 + value % 97), who))
    return Profile(
        TYPES, samples, "Off-CPU time of 4 processes", "node-17", lost={"lost events": 12}, comments=["said"]
    )


def compared() -> Profile:
    changes = {"half": (50, 100), "less": (80, 100), "same": (100, 100), "some": (112, 100), "double": (300, 100)}
    samples = [
        Sample(stack("main", name), (after * 1_000_000, before * 1_000_000))
        for name, (after, before) in {**changes, "new": (200, 0), "gone": (0, 70)}.items()
    ]
    return Profile([ValueType("after", "nanoseconds"), ValueType("before", "nanoseconds")], samples, "compared")


def hostile_names() -> Profile:
    samples = [
        Sample(stack(name, f"{name}{width}"), (width * 1000 + i, 1), labels(i, name))
        for i, name in enumerate(HOSTILE)
        for width in (60, 900)
    ]
    return Profile(TYPES, samples, HOSTILE[0], HOSTILE[1], lost={HOSTILE[2]: 1}, comments=HOSTILE)


class Shown:
    """An opened page and the tree that it should show."""

    def __init__(self, page: Page, tree: Tree) -> None:
        self.page = page
        self.tree = tree
        self.inverted = False

    def find(self, *names: str) -> int:
        """The first node whose innermost names are these."""
        trail: list[str] = []
        for i, node in enumerate(self.tree.nodes):
            trail = [*trail[: node.depth], node.key.name]
            if tuple(trail[-len(names) :]) == names:
                return i
        raise LookupError(names)

    def spot(self, node: Node, zoomed: Node | None = None) -> tuple[float, float]:
        """The middle of the box on the canvas."""
        zoomed = zoomed or self.tree.nodes[0]
        width = self.page.evaluate("() => document.getElementById('canvas').clientWidth")
        start, end = max(node.start, zoomed.start), min(node.start + node.total, zoomed.start + zoomed.total)
        row = node.depth if self.inverted else self.tree.levels - 1 - node.depth
        return ((start + end) / 2 - zoomed.start) / zoomed.total * width, row * ROW + ROW / 2

    def move(self, x: float, y: float) -> list[str]:
        """The details that the pointer brings up at a place of the canvas, [] for none."""
        box = self.page.locator("#space").bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + x, box["y"] + y)
        if self.page.locator("#tip").is_hidden():
            return []
        return self.page.locator("#tip > *").all_text_contents()

    def hover(self, node: Node, zoomed: Node | None = None) -> list[str]:
        return self.move(*self.spot(node, zoomed))

    def click(self, node: Node, zoomed: Node | None = None) -> None:
        self.hover(node, zoomed)
        self.page.mouse.down()
        self.page.mouse.up()

    def corner(self, node: Node) -> tuple[float, float]:
        """A place of the box where no label is, of the whole graph."""
        x, y = self.spot(node)
        left, _ = self.spot(node._replace(total=0))
        return min(x, left + 2), y - ROW / 2 + 2

    def color(self, x: float, y: float) -> tuple[int, ...]:
        """Colour of the pixel at a place of the canvas, read from a copy of it."""
        script = """([x, y]) => {
            const copy = document.createElement("canvas");
            copy.width = copy.height = 1;
            const pen = copy.getContext("2d", { willReadFrequently: true });
            const at = (place) => -Math.round(place * devicePixelRatio);
            pen.drawImage(document.getElementById("canvas"), at(x), at(y));
            return Array.from(pen.getImageData(0, 0, 1, 1).data).slice(0, 3);
        }"""
        return tuple(self.page.evaluate(script, [x, y]))

    def fill(self, name: str) -> tuple[int, ...]:
        """The colour of a class of the style sheet."""
        text = self.page.evaluate(
            """(name) => {
                const probe = document.createElement("i");
                probe.className = name;
                document.body.append(probe);
                const fill = getComputedStyle(probe).fill;
                probe.remove();
                return fill;
            }""",
            name,
        )
        return tuple(map(int, re.findall(r"\d+", text)))

    def search(self, pattern: str) -> str:
        self.page.locator("#search").fill(pattern)
        return self.result

    def view(self, name: str) -> None:
        self.page.locator(f"[data-view={name}]").click()
        self.inverted = name == "icicle"

    def table(self) -> dict[str, list[str]]:
        """Function → its numbers, in the order of the rows."""
        rows = self.page.locator("#rows tr").all()
        cells = [row.locator("td").all_text_contents() for row in rows]
        return {row[-2]: row[:-2] for row in cells}

    @property
    def result(self) -> str:
        return self.page.locator("#result").text_content() or ""

    @property
    def fragment(self) -> str:
        return str(self.page.evaluate("() => location.hash"))


def matched(profile: Profile, pattern: str) -> int:
    """Time of the samples on whose path any name matches."""
    expression = re.compile(pattern, re.IGNORECASE)
    total = 0
    for sample in profile.samples:
        names = [f"{sample.label('process')}-{sample.label('pid')}", *(frame.name for frame in sample.stack)]
        total += sample.values[0] if any(map(expression.search, names)) else 0
    return total
