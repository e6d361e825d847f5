"""The lanes of threads on a scan's page: what is drawn is what the events say, and it can be zoomed, moved, chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scan_pages import ScanPage, write_page
from scans import scanned_host
from scheduling_traces import SLEEPING, rows
from stallscope.converters.model import scheduling as events
from stallscope.converters.model.scheduling import OPEN, Scheduling
from summary_profiles import FUTEX, LIBC, MS, user

if TYPE_CHECKING:
    from playwright.sync_api import Page

RUNNING, RUNNABLE = (46, 158, 79), (240, 140, 0)
LOCK = (*user(LIBC, "main", "pthread_mutex_lock", "__lll_lock_wait"), *FUTEX)


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., ScanPage]:
    def show(scheduling: Scheduling, **options: Any) -> ScanPage:
        profile = scanned_host(events=False)
        profile.scheduling = scheduling
        path = tmp_path / "scan.html"
        report = write_page(profile, path)
        page = open_file(path, **options)
        page.wait_for_selector("html[data-ready]")
        page.locator("#lanes").scroll_into_view_if_needed()
        page.wait_for_timeout(80)
        return ScanPage(page, report)

    return show


def alternating() -> Scheduling:
    """Thread 200 runs for 10 ms, waits for a lock for 9 ms and for a core for 1 ms, five times; 201 wakes it."""
    begins = np.arange(5) * 20 * MS
    switches = np.concatenate(
        [
            rows(events.SWITCH, time=begins, cpu=[0] * 5, prev_tid=[0] * 5, next_tid=[200] * 5, next_prio=[120] * 5),
            rows(events.SWITCH, time=begins + 10 * MS, prev_tid=[200] * 5, next_tid=[0] * 5, prev_state=[SLEEPING] * 5),
            rows(events.SWITCH, time=[1], cpu=[1], prev_tid=[0], next_tid=[201]),
        ]
    )
    spans = rows(
        events.BLOCKED,
        begin=begins + 10 * MS,
        woken=begins + 19 * MS,
        end=[*(begins[:-1] + 20 * MS), OPEN],
        tid=[200] * 5,
        state=[SLEEPING] * 5,
    )
    made = Scheduling(
        100 * MS,
        switches=switches,
        wakeups=rows(events.WAKE_UP, time=begins + 19 * MS, cpu=[1] * 5, tid=[200] * 5, waker=[201] * 5),
        threads=rows(events.THREAD, tid=[200, 201], tgid=[200, 200], name=[0, 1], process=[0, 0]),
        blocked=spans,
        names=["saver", "holder"],
        stacks=[LOCK],
        samples=rows(events.SAMPLE, time=[5 * MS], tid=[200], stack=[0]),
    )
    return events.in_order(made)


def test_phases_are_drawn_where_they_belong(show: Callable[..., ScanPage]) -> None:
    shown = show(alternating())
    assert shown.times == (0, 100)
    for i in range(5):
        assert shown.color("lanes-canvas", *shown.lane(1, (20 * i + 5) / 100)) == RUNNING
        assert shown.color("lanes-canvas", *shown.lane(1, (20 * i + 19.5) / 100)) == RUNNABLE
        x, y = shown.lane(1, (20 * i + 15) / 100)
        assert shown.color("lanes-canvas", x, y + 3) == (194, 24, 91)  # a lock
        assert shown.color("lanes-canvas", x, y - 6) == (255, 255, 255)  # lower than what runs


def test_a_click_tells_the_wait_its_end_and_the_stack(show: Callable[..., ScanPage]) -> None:
    shown = show(alternating())
    shown.page.mouse.click(*shown.lane(1, 0.15))
    text = shown.page.locator("#lanes-phase").inner_text()
    assert "saver (200) of saver (200" in text
    assert "lock for 9.00 ms, from 10,000 µs on" in text
    assert "Ended by holder (201) of saver (200)." in text
    frames = shown.page.locator("#lanes-phase li").all_inner_texts()
    assert frames[1] == "pthread_mutex_lock │ libc.so.6"
    shown.page.mouse.click(*shown.lane(1, 0.05))
    text = shown.page.locator("#lanes-phase").inner_text()
    assert "running for 10.0 ms" in text
    assert "pthread_mutex_lock" in text  # the sample
    shown.page.mouse.click(*shown.lane(1, 0.25))
    assert "No sample was taken" in shown.page.locator("#lanes-phase").inner_text()


def test_keys_zoom_move_and_choose(show: Callable[..., ScanPage]) -> None:
    shown = show(alternating())
    keyboard = shown.page.keyboard
    shown.page.locator("#lanes-canvas").focus()
    keyboard.press("+")
    assert shown.times == (25, 75)
    keyboard.press("PageDown")
    assert shown.times == (50, 100)
    keyboard.press("-")
    keyboard.press("-")
    assert shown.times == (0, 100)
    keyboard.press("ArrowDown")  # the header
    keyboard.press("ArrowDown")
    assert "running for 10.0 ms, from 0 µs" in shown.page.locator("#lanes-phase").inner_text()
    keyboard.press("ArrowRight")
    assert "lock for 9.00 ms, from 10,000 µs" in shown.page.locator("#lanes-phase").inner_text()
    keyboard.press("ArrowRight")
    assert "runnable for 1.00 ms, from 19,000 µs" in shown.page.locator("#lanes-phase").inner_text()
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    assert shown.page.locator("#lanes-result").inner_text() == "0 threads shown"
    keyboard.press("Enter")
    assert shown.page.locator("#lanes-result").inner_text() == "2 threads shown"


def test_the_pointer_zooms_and_moves(show: Callable[..., ScanPage]) -> None:
    shown = show(alternating())
    mouse, keyboard = shown.page.mouse, shown.page.keyboard
    keyboard.down("Shift")
    mouse.move(*shown.lane(1, 0.2))
    mouse.down()
    mouse.move(*shown.lane(1, 0.3), steps=4)
    mouse.move(*shown.lane(1, 0.4), steps=4)
    mouse.up()
    keyboard.up("Shift")
    assert shown.times == pytest.approx((20, 40), abs=0.2)
    mouse.move(*shown.lane(1, 0.6))
    mouse.down()
    mouse.move(*shown.lane(1, 0.1), steps=4)
    mouse.up()
    assert shown.times == pytest.approx((30, 50), abs=0.3)
    shown.page.locator("#lanes-whole").click()
    assert shown.times == (0, 100)
    mouse.move(*shown.lane(1, 0.5))
    keyboard.down("Control")
    mouse.wheel(0, -250)
    keyboard.up("Control")
    begin, end = shown.times
    assert end - begin == pytest.approx(100 / np.e, rel=0.02)
    assert (begin + end) / 2 == pytest.approx(50, abs=0.5)


def test_many_short_phases_are_parts_of_a_pixel(show: Callable[..., ScanPage]) -> None:
    number = 20_000
    begins = np.arange(number) * 100_000  # runs 25 µs of 100 µs, for 2 s
    switches = np.concatenate(
        [
            rows(events.SWITCH, time=begins, prev_tid=[0] * number, next_tid=[200] * number),
            rows(
                events.SWITCH,
                time=begins + 25_000,
                prev_tid=[200] * number,
                next_tid=[0] * number,
                prev_state=[SLEEPING] * number,
            ),
        ]
    )
    made = Scheduling(
        number * 100_000,
        switches=switches,
        threads=rows(events.THREAD, tid=[200], tgid=[200]),
        names=["saver"],
    )
    shown = show(events.in_order(made))
    for part in (0.1, 0.5, 0.9):
        x, y = shown.lane(0, part)
        assert shown.color("lanes-canvas", x, y + 4) == RUNNING
        assert shown.color("lanes-canvas", x, y - 5) != RUNNING
    for _ in range(12):
        shown.page.locator("#lanes-in").click()
    begin, end = shown.times
    assert end - begin == pytest.approx(2000 / 4096, rel=0.01)
    x, y = shown.lane(0, 0.5)
    colors = {shown.color("lanes-canvas", *shown.lane(0, part / 50)) for part in range(50)}
    assert RUNNING in colors
    assert len(colors) > 1


def test_idle_processes_are_shown_if_there_is_nothing_else(show: Callable[..., ScanPage]) -> None:
    made = alternating()
    made.threads["tgid"] = 4711
    shown = show(made)
    assert shown.page.locator("#lanes-still").is_checked()
    assert shown.page.locator("#lanes-result").inner_text() == "2 threads shown"
    shown.page.locator("#lanes-still").uncheck()
    assert shown.page.locator("#lanes-result").inner_text() == "0 threads shown"
    shown.page.locator("#lanes-group").select_option(label="others")
    assert shown.page.locator("#lanes-result").inner_text() == "2 threads shown"


def test_threads_that_did_not_move_are_hidden_first(show: Callable[..., ScanPage]) -> None:
    made = alternating()
    shown = show(made)
    assert shown.page.locator("#lanes-still").is_hidden()
    quiet = np.concatenate([made.threads, rows(events.THREAD, tid=[202], tgid=[200], name=[1])])
    made.threads = quiet
    made.blocked = np.concatenate([made.blocked, rows(events.BLOCKED, begin=[-5], end=[OPEN], tid=[202], state=[1])])
    shown = show(events.in_order(made))
    assert shown.page.locator("#lanes-still-text").inner_text().startswith("1 other: idle")
    assert shown.page.locator("#lanes-result").inner_text() == "2 threads shown"
    shown.page.locator("#lanes-still").check()
    assert shown.page.locator("#lanes-result").inner_text() == "3 threads shown"
