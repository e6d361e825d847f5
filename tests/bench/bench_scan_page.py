"""The page of a scan of 64 processes with 5,000 threads, 200,000 stacks and 2 million switches.

Its size, how long it takes to write and to open, and the time of a frame in Chromium while the lanes are zoomed, moved,
scrolled and searched.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.model import scheduling as events
from stallscope.converters.model.scheduling import OPEN, Scheduling
from stallscope.converters.scan.page import page as pages
from stallscope.converters.scan.report import report_of

PROCESSES, THREADS, STACKS, SWITCHES, CORES = 64, 5_000, 200_000, 2_000_000, 128
SECONDS = 10
NS = 1_000_000_000
SLEEPING = 0x01
ROUNDS = 60
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]

# Reading one pixel back makes the browser finish what was drawn: the time is that of the whole frame but its display.
MEASURE = """async ([what, rounds]) => {
    const canvas = document.getElementById("lanes-canvas");
    const pen = canvas.getContext("2d");
    const view = document.getElementById("lanes-view");
    const input = document.getElementById("search");
    canvas.scrollIntoView();
    let seed = 1;
    const random = () => (seed = seed * 16807 % 2147483647) / 2147483647;
    const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    const steps = {
        zoom: (i) => {
            const box = canvas.getBoundingClientRect();
            const x = box.left + 300 + random() * (box.width - 300);
            canvas.dispatchEvent(new WheelEvent("wheel", {
                clientX: x, clientY: box.top + 50, deltaY: i % 20 < 10 ? -200 : 200, ctrlKey: true, cancelable: true}));
        },
        pan: (i) => press(i % 4 < 2 ? "PageDown" : "PageUp"),
        scroll: () => (view.scrollTop = random() * view.scrollHeight),
        search: (i) => {
            input.value = ["f", "fu", "fun", "function_number_1", "worker-3", ""][i % 6];
            input.dispatchEvent(new Event("input"));
        },
        choose: () => press(random() < 0.5 ? "ArrowRight" : "ArrowDown"),
    };
    if (what === "pan") ["+", "+", "+", "+"].forEach(press);
    const times = [];
    for (let i = 0; i < rounds; i++) {
        await new Promise(requestAnimationFrame);
        const begin = performance.now();
        steps[what](i);
        await new Promise(requestAnimationFrame);
        pen.getImageData(0, 0, 1, 1);
        times.push(performance.now() - begin);
    }
    press("Home");
    return times;
}"""


def stacks(number: int) -> list[Stack]:
    """Distinct stacks that share their beginnings."""
    choice = random.Random(1)
    frames = [
        Frame(f"module_{i % 40}::function_number_{i}", "native", Module(f"/usr/lib/{i % 40}.so")) for i in range(8_000)
    ]
    kernel = [Frame(name, "kernel") for name in ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")]
    ends = [
        (*kernel, Frame("__x64_sys_futex", "kernel"), Frame("futex_wait", "kernel"), Frame("schedule", "kernel")),
        (*kernel, Frame("ksys_read", "kernel"), Frame("pipe_read", "kernel"), Frame("schedule", "kernel")),
    ]
    paths = [tuple(choice.choices(frames, k=4)) for _ in range(20)]
    found: dict[Stack, None] = {}
    while len(found) < number:
        path = choice.choice(paths)
        path = (*path[: choice.randint(3, len(path))], *choice.choices(frames, k=choice.randint(1, 6)))[:24]
        paths.append(path)
        if len(path) >= 8:
            found[(*path, *choice.choice(ends))] = None
    return list(found)


def profile(number: int, of: list[Stack]) -> Profile:
    """Waits and samples of all threads."""
    choice = random.Random(2)
    columns = [ValueType("wall", "nanoseconds"), ValueType("count", "count"), ValueType("min", "nanoseconds", "min")]
    columns += [ValueType("max", "nanoseconds", "max"), ValueType("samples", "count")]
    made = Profile(columns, title="bench", host="bench", duration_ns=SECONDS * NS, lost={"intervals": 0})
    labels: list[Labels] = []
    for thread in range(THREADS):
        pid, tid = 1000 + thread % PROCESSES, 10_000 + thread
        tid = pid if thread < PROCESSES else tid
        name = f"rank{pid % 4}"
        state = "interruptible" if thread % 4 else "running"
        labels.append((("pid", pid), ("process", name), ("state", state), ("thread", f"worker-{thread}"), ("tid", tid)))
        run = choice.randrange(NS)
        blocked = {"interruptible": SECONDS * NS - run}
        made.threads.append(ThreadTimes(pid, name, tid, f"worker-{thread}", SECONDS * NS, run, 0, blocked, 400))
    for i in range(number):
        weight = int(choice.paretovariate(1.1) * 1e6)
        runs = dict(labels[i % THREADS])["state"] == "running"
        values = (weight, 0, 0, 0, 1) if runs else (weight, 9, weight // 20, weight // 2, 0)
        made.samples.append(Sample(of[i], values, labels[i % THREADS]))
    return made


def scheduling(of: list[Stack]) -> Scheduling:
    """Cores that change among their threads; a thread sleeps until it is woken in the middle of its wait."""
    random_ = np.random.default_rng(1)
    per_core, per_switch = THREADS // CORES, SWITCHES // CORES
    tids = np.array([1000 + i if i < PROCESSES else 10_000 + i for i in range(THREADS)], np.int64)
    parts, spans, wakeups = [], [], []
    for core in range(CORES):
        mine = tids[core * per_core : (core + 1) * per_core]
        order = np.cumsum(random_.integers(1, per_core, per_switch)) % per_core
        times = np.sort(random_.integers(0, SECONDS * NS, per_switch))
        switches = np.zeros(per_switch, events.SWITCH)
        switches["time"], switches["cpu"], switches["next_tid"] = times, core, mine[order]
        switches["prev_tid"][1:], switches["prev_state"] = mine[order[:-1]], SLEEPING
        parts.append(switches)
        by_thread = np.lexsort((np.arange(per_switch), order))
        by_thread = by_thread[by_thread < per_switch - 1]
        same = order[by_thread[:-1]] == order[by_thread[1:]]
        out, back = by_thread[:-1][same] + 1, by_thread[1:][same]
        made = np.zeros(len(out), events.BLOCKED)
        made["begin"], made["end"], made["tid"] = times[out], times[back], mine[order[back]]
        made["woken"], made["stack"], made["state"] = (
            (times[out] + times[back]) // 2,
            random_.integers(0, len(of), len(out)),
            SLEEPING,
        )
        spans.append(made)
        woken = np.zeros(len(out), events.WAKE_UP)
        woken["time"], woken["tid"], woken["waker"] = made["woken"], made["tid"], random_.choice(tids, len(out))
        wakeups.append(woken)
    threads = np.zeros(THREADS, events.THREAD)
    threads["tid"], threads["tgid"] = tids, 1000 + np.arange(THREADS) % PROCESSES
    threads["name"], threads["process"] = np.arange(THREADS), THREADS + np.arange(THREADS) % 4
    names = [f"worker-{i}" for i in range(THREADS)] + [f"rank{i}" for i in range(4)]
    arrays = {"switches": parts, "blocked": spans, "wakeups": wakeups}
    together = {name: np.concatenate(each) for name, each in arrays.items()}
    together["blocked"]["end"][together["blocked"]["end"] <= together["blocked"]["begin"]] = OPEN
    return events.in_order(Scheduling(SECONDS * NS, threads=threads, names=names, stacks=of, **together))


def show(name: str, times: list[float]) -> None:
    high = statistics.quantiles(times, n=20)[-1]
    print(f"{name:>8}: median {statistics.median(times):6.1f} ms, 95th percentile {high:6.1f} ms ({len(times)} frames)")


def measure(path: Path, picture: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page: Any = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(120_000)
        begin = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-report]")
        print(f"    open: {time.perf_counter() - begin:.2f} s until the tables can be read")
        page.wait_for_selector("html[data-ready]")
        print(f"    open: {time.perf_counter() - begin:.2f} s until all can be used")
        for what in ("zoom", "pan", "scroll", "choose", "search"):
            show(what, page.evaluate(MEASURE, [what, ROUNDS if what != "search" else 12]))
        if picture:
            page.evaluate("() => document.getElementById('lanes').scrollIntoView()")
            page.wait_for_timeout(500)
            page.screenshot(path=picture)
        browser.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", default="", help="write the page to this file and do not open it")
    parser.add_argument("--open", default="", help="only open this page")
    parser.add_argument("--picture", default="", help="write a picture of the lanes to this file")
    given = parser.parse_args()
    if given.open:
        measure(Path(given.open).resolve(), given.picture)
        return 0
    of = stacks(STACKS)
    content = profile(STACKS, of)
    content.scheduling = scheduling(of)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given.keep or Path(folder, "scan.html"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.process_time()
        report = report_of(content)
        print(f"  report: {time.process_time() - begin:.2f} s of CPU")
        begin = time.process_time()
        lanes = pages.lanes_block(content, report)
        print(f"   lanes: {time.process_time() - begin:.2f} s of CPU, {len(lanes) / 1e6:.1f} MB packed")
        begin = time.process_time()
        with path.open("wb") as file:
            pages.write(content, report, file, lanes)
        took, size = time.process_time() - begin, path.stat().st_size / 1e6
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"   write: {took:.2f} s of CPU; {size:.1f} MB; {more:.0f} MB of memory beside the profile")
        if not given.keep and Path(CHROMIUM).exists():
            measure(path, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
