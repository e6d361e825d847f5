"""The speedscope files in the released speedscope: it is asked which profiles there are and how much is in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Labels, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from stallscope.converters.writers import speedscope
from stallscope.converters.writers.base.options import WriteOptions

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RELEASE = Path("build/npm/node_modules/speedscope/dist/release")
MAIN, CALL, HOSTILE = Frame("main"), Frame("call"), Frame("<b onclick=alert(1)>;\n\u202e\x1b")
ROW = re.compile(r"([\d.]+)(ns|µs|ms|s) \(([\d.]+)%\)\s+([\d.]+)(ns|µs|ms|s) \([<\d.]+%\)\s+(.*)")


def labels(pid: int, process: str, tid: int, thread: str) -> Labels:
    return (("pid", pid), ("process", process), ("thread", thread), ("tid", tid))


ONE, TWO = labels(7, "python3 a", 7, "main"), labels(8, "<i>rank</i>", 9, "loader")


@pytest.fixture
def load(require: Callable[[bool, str], None], chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """``load(profile)`` → speedscope with that profile; it must not complain, nor show a dialog."""
    index = Path(__file__).parents[2] / RELEASE / "index.html"
    require(index.exists(), "speedscope is not there: make speedscope-schema")
    faults: list[str] = []
    context = chromium.new_context(viewport={"width": 1200, "height": 900})

    def load(profile: Profile, **options: Any) -> Page:
        path = tmp_path / "x.speedscope.json"
        with path.open("wb") as file:
            speedscope.write(profile, file, WriteOptions(**options))
        page = context.new_page()
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(index.as_uri())
        page.set_input_files("input[type=file]", path)
        page.get_by_text("Sandwich").click()
        page.get_by_text("Symbol Name").wait_for()
        return page

    yield load
    context.close()
    assert not faults


def title(page: Page) -> str:
    """Title of the file and the profile that is shown: ``FILE - PROFILE (1/3)``, or without the file's name."""
    return next(line for line in page.inner_text("body").splitlines() if re.search(r" \(\d+/\d+\)$", line))


def rows(page: Page) -> dict[str, tuple[float, float, float]]:
    """Function → (total in ns, share, self in ns), as the sandwich view shows them, three digits each."""
    factors = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    text = page.inner_text("body").partition("Symbol Name")[2]
    return {
        match[6]: (float(match[1]) * factors[match[2]], float(match[3]), float(match[4]) * factors[match[5]])
        for match in ROW.finditer(text)
    }


def next_profile(page: Page) -> None:
    before = title(page)
    page.keyboard.press("n")
    page.wait_for_function("(before) => !document.body.innerText.includes(before)", arg=before)


def test_sampled_profiles_have_their_names_and_weights(load: Callable[..., Page]) -> None:
    samples = [
        Sample((MAIN, CALL), (30_000_000,), ONE),
        Sample((MAIN,), (20_000_000,), ONE),
        Sample((MAIN, HOSTILE), (4_500_000_000,), TWO),
    ]
    page = load(Profile([ValueType("off-cpu", "nanoseconds")], samples))
    assert title(page).endswith("all (1/3)")
    everything = rows(page)
    assert everything["main"] == (4_550_000_000, 100, 20_000_000)
    assert everything[printable(HOSTILE.name)] == (4_500_000_000, 99, 4_500_000_000)
    next_profile(page)
    assert title(page).endswith("<i>rank</i>-8 (2/3)")
    assert rows(page)["main"] == (4_500_000_000, 100, 0)
    next_profile(page)
    assert title(page).endswith("python3 a-7 (3/3)")
    assert rows(page) == {"main": (50_000_000, 100, 20_000_000), "call": (30_000_000, 60, 30_000_000)}


def test_all_of_the_time_has_its_processes_and_its_threads(load: Callable[..., Page]) -> None:
    samples = [
        Sample((MAIN,), (20_000_000,), tuple(sorted((*ONE, ("state", "running"))))),
        Sample((MAIN, CALL), (30_000_000,), tuple(sorted((*TWO, ("state", "interruptible"))))),
    ]
    page = load(Profile([ValueType("wall", "nanoseconds")], samples))
    seen = [title(page)]
    for _ in range(4):
        next_profile(page)
        seen.append(title(page))
    names = ("all", "<i>rank</i>-8", "python3 a-7", "<i>rank</i>-8 loader/9", "python3 a-7 main/7")
    for i, (name, shown) in enumerate(zip(names, seen, strict=True)):
        assert shown.endswith(f"{name} ({i + 1}/5)")
    assert rows(page) == {"main": (20_000_000, 100, 20_000_000)}


def test_a_timeline_opens_as_its_tracks(load: Callable[..., Page]) -> None:
    tracks = [
        Track(ONE, spans=[Span(0, 800_000, MAIN), Span(0, 100_000, CALL), Span(100_000, 100_000, CALL)]),
        Track(TWO, "the loader", [Span(0, 1_000, MAIN), Span(400, 1_000, CALL), Span(400, 700, HOSTILE)]),
    ]
    timeline = Timeline(tracks)
    types = [ValueType("wall", "nanoseconds"), ValueType("count", "count")]
    page = load(Profile(types, add_up(timeline), timeline=timeline))
    assert title(page).endswith("python3 a-7 main/7 (1/2)")
    assert rows(page) == {"main": (800_000, 100, 700_000), "call": (100_000, 13, 100_000)}
    next_profile(page)
    assert title(page).endswith("the loader (2/2)")
    assert rows(page)["main"] == (1_000, 100, 400)
    assert rows(page)[printable(HOSTILE.name)] == (300, 30, 300)
