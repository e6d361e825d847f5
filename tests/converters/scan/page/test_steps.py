from __future__ import annotations

from dataclasses import replace

from job_profiles import job
from pace_profiles import found_by, steps
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.scan.page.steps import steps_data
from stallscope.converters.scan.report import report_of
from summary_profiles import MS


def test_a_row_for_each_thread() -> None:
    profile = job(0.3, 0.3, 0.3)
    profile.found_steps = [found_by(100, 100), found_by(101)]
    one, other = steps_data(report_of(profile))
    assert one["name"] == other["name"] == "main → next_batch"
    assert one["evidence"].startswith("By time alone, a step is from one end of the wait in main → next_batch")
    assert [row["who"] for row in (one, other)] == ["train (rank 0, thread 100)", "train (rank 1, thread 101)"]
    assert (one["count"], one["median"], one["p90"], one["max"]) == (100, 100 * MS, 120 * MS, 140 * MS)
    assert (one["wall"], one["on_cpu"], one["runnable"]) == (10_000 * MS, 1_500 * MS, 500 * MS)
    assert one["waits"] == [["main → next_batch", 6_000 * MS], ["main → save → fsync", 2_000 * MS]]
    assert (one["reader"], other["reader"]) == ([1, 80 * MS, 12.5], None)


def test_steps_that_the_user_named_need_no_evidence() -> None:
    profile = job(0.3, 0.3, 0.3)
    named = steps(100)
    profile.steps = [named]
    (row,) = steps_data(report_of(profile))
    assert (row["name"], row["evidence"], row["p90"]) == ("train.py:train_step", "", None)


def test_names_are_printable() -> None:
    profile = job(0.3, 0.3, 0.3)
    made = found_by(100)
    assert made.found
    made = replace(made, process=HOSTILE)
    profile.found_steps = [made]
    (row,) = steps_data(report_of(profile))
    assert printable(HOSTILE) in row["who"]


def test_a_page_without_steps() -> None:
    assert steps_data(report_of(job(0.3, 0.3, 0.3))) == []
