from __future__ import annotations

import pytest
from scans import HOSTILE, scanned_host
from stallscope.converters.base.text import printable
from stallscope.converters.scan.page import tables
from stallscope.converters.scan.report import report_of
from stallscope.converters.summary.waits_for import Blocking, Named
from summary_profiles import MS, SECOND

SUMMARY = report_of(scanned_host()).summary


def test_the_matrix_has_all_waiting() -> None:
    made = tables.matrix(SUMMARY.blocking, {100: "train [rank 0]"})
    assert made is not None
    assert sum(time for _, _, time in made["cells"]) == made["total"] == 32 * SECOND
    names = {(made["names"][victim], made["names"][end]) for victim, end, _ in made["cells"]}
    assert {("saver (200)", "feed (300)"), ("train [rank 0] (100)", "feed (300)")} <= names


def test_a_large_matrix_is_cut() -> None:
    nodes = tuple(Named("process", f"p{i}", "", i + 1, 0, True, 100 - i, 0) for i in range(90))
    ends = {(i, (i + 1) % 90): 100 - i for i in range(90)}
    made = tables.matrix(Blocking("process", sum(ends.values()), 0, nodes, ends), {})
    assert made is not None
    assert made["names"][-1] == "27 others"
    assert len(made["names"]) == tables.NODES + 1 == 64
    assert sum(time for _, _, time in made["cells"]) == sum(ends.values())


@pytest.mark.parametrize("blocking", [None, Blocking("process", 0, 0, (), {})])
def test_no_matrix(blocking: Blocking | None) -> None:
    assert tables.matrix(blocking, {}) is None


def test_locks_calls_and_what_is_shared() -> None:
    (lock,) = tables.locks(SUMMARY.locks)
    assert (lock["time"], lock["waits"], lock["mean"], lock["contention"]) == (90 * MS, 30, 3 * MS, True)
    assert lock["holders"] == [["train / saver (10)", 88 * MS]]
    (call,) = tables.calls(SUMMARY.calls)
    assert (call["calls"], call["total"], call["processes"]) == (80, 3 * SECOND // 2, 2)
    assert sum(each["calls"] for _, each in call["each"]) == 80
    (shared,) = tables.shared(SUMMARY.shared)
    assert shared["factor"] == pytest.approx(2.5)
    assert shared["shared"] == 0.5
    assert shared["turns"][0][1] == SECOND


def test_cores_and_threads() -> None:
    rows = tables.cores(SUMMARY)
    assert sum(row["threads"] for row in rows) == 2
    profile = scanned_host()
    made = tables.threads(profile, {200: "python save.py"})
    assert made["number"] == len(made["rows"]) == 4
    assert {row[1] for row in made["rows"]} >= {"python save.py (200)", "train (100)"}
    for _, _, _, wall, on_cpu, runnable, blocked, _ in made["rows"]:
        assert wall == on_cpu + runnable + blocked


def test_losses() -> None:
    found = tables.losses({"intervals": 3, "ns of intervals": 5, "wake-ups": 0, "stacks cut at 127 frames": 2})
    assert found == [["intervals", 3, 5, True], ["stacks cut at 127 frames", 2, None, False]]


def test_hostile_names_are_printable() -> None:
    summary = report_of(scanned_host(name=HOSTILE)).summary
    (lock,), (call,) = tables.locks(summary.locks), tables.calls(summary.calls)
    assert printable(HOSTILE) in lock["name"]
    assert call["name"] == printable(HOSTILE)
