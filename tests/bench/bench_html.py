"""The HTML page of 200,000 distinct stacks: its size, time to write and open it, and time of a frame in Chromium."""

from __future__ import annotations

import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from stallscope.converters.model import Frame, Kind, Module, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.html import writer as html

STACKS = 200_000
FUNCTIONS, DEPTH = 8_000, (8, 28)
ROUNDS = 60
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
KINDS: tuple[Kind, ...] = ("native", "native", "python", "kernel", "jit", "api")

# Reading one pixel back makes the browser finish what was drawn: the time is that of the whole frame but its display.
MEASURE = """async ([what, rounds]) => {
    const canvas = document.getElementById("canvas");
    const pen = canvas.getContext("2d");
    const box = canvas.getBoundingClientRect();
    const input = document.getElementById("search");
    let seed = 1;
    const random = () => (seed = seed * 16807 % 2147483647) / 2147483647;
    const at = (type, x, y) => canvas.dispatchEvent(
        new PointerEvent(type, {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
    const root = () => document.getElementById("reset").click();
    const steps = {
        zoom: () => at("click", random() * box.width, box.height - 30 - random() * 120),
        hover: () => at("pointermove", random() * box.width, box.height - random() * 200),
        search: (i) => {
            input.value = ["_", "_1", "7", "number_4", "^module_3::", "allocator"][i % 6];
            input.dispatchEvent(new Event("input"));
        },
        scroll: (i) => {
            const graph = document.getElementById("graph");
            graph.scrollTop = i % 2 ? 0 : 200;
            graph.dispatchEvent(new Event("scroll"));
        },
        table: (i) => {
            document.querySelector(`[data-view=${i % 2 ? "flame" : "table"}]`).click();
            document.body.offsetHeight;
        },
    };
    const times = [];
    for (let i = 0; i < rounds; i++) {
        if (what === "zoom" && i % 5 === 0) root();
        await new Promise(requestAnimationFrame);
        const begin = performance.now();
        steps[what](i);
        pen.getImageData(0, 0, 1, 1);
        times.push(performance.now() - begin);
    }
    root();
    return times;
}"""


def profile() -> Profile:
    """Call paths that share their beginnings, as those of a program do, with a long tail of small ones."""
    choice = random.Random(1)
    frames = [
        Frame(
            f"module_{i % 40}::function_number_{i}<std::allocator<int>>", KINDS[i % 6], Module(f"/usr/lib/{i % 40}.so")
        )
        for i in range(FUNCTIONS)
    ]
    paths = [[choice.randrange(20) for _ in range(4)] for _ in range(8)]
    weights: dict[tuple[int, ...], int] = {}
    while len(weights) < STACKS:
        path = choice.choice(paths)
        path = path[: choice.randint(3, len(path))] + [choice.randrange(FUNCTIONS) for _ in range(choice.randint(1, 6))]
        path = path[: DEPTH[1]]
        paths.append(path)
        if len(path) >= DEPTH[0]:
            weights[tuple(path)] = int(choice.paretovariate(1.1) * 1e6)
    samples = [
        Sample(
            tuple(frames[i] for i in path), (weight, 1 + weight % 7), (("pid", 4000 + path[0]), ("process", "python3"))
        )
        for path, weight in weights.items()
    ]
    return Profile([ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")], samples, "bench")


def show(name: str, times: list[float]) -> None:
    high = statistics.quantiles(times, n=20)[-1]
    print(f"{name:>8}: median {statistics.median(times):6.1f} ms, 95th percentile {high:6.1f} ms ({len(times)} frames)")


def measure(path: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page: Any = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(60_000)
        begin = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        print(f"    open: {time.perf_counter() - begin:.2f} s until it is drawn")
        for what in ("zoom", "hover", "search", "scroll", "table"):
            show(what, page.evaluate(MEASURE, [what, ROUNDS]))
        browser.close()


def main() -> int:
    if not Path(CHROMIUM).exists():
        print(f"there is no {CHROMIUM}: apt-get install chromium")
        return 1
    content = profile()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "big.html")
        begin = time.process_time()
        with path.open("wb") as file:
            html.write(content, file, WriteOptions())
        took = time.process_time() - begin
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        size = path.stat().st_size / 1e6
        print(f"   write: {took:.2f} s of CPU, {more:.0f} MB beside the profile; {size:.1f} MB for {STACKS:,} stacks")
        measure(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
