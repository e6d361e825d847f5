"""Steps that nobody named, against the clock of a program that takes what a slow thread makes."""

from __future__ import annotations

import numpy as np
import pytest
from stallscope.converters.model.steps import Steps
from stallscope.converters.scan.report import report_of
from stallscope.converters.scan.step_lines import pace_lines
from stallscope.converters.summary.found_steps import found_steps
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.timeline import Timeline
from tracing import Trace, Traced
from truths import by_function

pytestmark = pytest.mark.usefixtures("live")

ITEMS, MAKES, WORKS = 40, 50_000_000, 15_000_000
"""Number of items; ns for which one is made, and on a core for which it is used."""
US = 1_000


def is_clear(traced: Traced) -> bool:
    """Whether the program came back to its wait regularly, by its own clock, for most of the recording, and waited for
    each item: on a machine on which it had to wait for a core it need not."""
    truth, events = traced.truth, traced.profile.scheduling
    assert events
    times = truth["times"]
    intervals = np.diff(times)
    near = np.abs(intervals / np.median(intervals) - 1)
    waited_each_time = by_function(truth)["take_item"]["blocks"] >= ITEMS
    nothing_lost = not any(events.lost().values()) and not traced.missed
    most_of_it = times[-1] - times[0] > 0.6 * (events.end - events.begin)
    regular = bool(np.median(near) < 0.1 and (near < 0.25).mean() > 0.95)
    return waited_each_time and nothing_lost and most_of_it and regular


def test_a_thread_that_takes_what_another_one_makes(trace: Trace) -> None:
    traced = trace("slow_producer", ITEMS, MAKES // US, WORKS // US, measures=(OffCpu(), Timeline()))
    tids = {thread["thread"]: thread["tid"] for thread in traced.truth["threads"]}
    assert traced.profile.scheduling
    found = found_steps(traced.profile.scheduling)
    assert len(found) == 1 or not (found or is_clear(traced))
    for steps in found:
        check(steps, tids)
        traced.profile.found_steps = list(found)
        report = report_of(traced.profile)
        (line,) = pace_lines(report.steps, {steps.pid})
        assert line.startswith("By time alone, a step is from one end of the wait in ")
        assert "1 thread ends these waits" in line
    if is_clear(traced):
        # By the program's clock the thread also needs a core after each wake-up.
        median = float(np.median(np.diff(traced.truth["times"])))
        assert found[0].median == pytest.approx(median, rel=0.25)
        assert ITEMS - 1 - ITEMS // 10 <= found[0].steps.count <= ITEMS - 1


def check(steps: Steps, tids: dict[str, int]) -> None:
    """Bounds that hold however loaded the machine is: an item is not there before it was made."""
    assert (steps.tid, steps.name) == (tids["consumer"], "")
    assert steps.found
    assert "take_item" in steps.found.place.frames
    assert not steps.found.is_timed
    assert steps.steps.count <= ITEMS - 1
    assert steps.p90
    # Clocks of cores differ a little.
    assert 0.99 * MAKES <= steps.median <= steps.p90 <= steps.max
    assert steps.per_second
    assert steps.per_second <= 1.01 * 1e9 / MAKES
    # It used each item, but the last one.
    assert steps.steps.on_cpu >= 0.9 * steps.steps.count * WORKS
    assert steps.reader
    assert [maker.tid for maker in steps.reader.makers] == [tids["producer"]]
    assert steps.reader.work >= 0.9 * MAKES
