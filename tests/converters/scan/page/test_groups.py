from __future__ import annotations

from dataclasses import replace

from scans import scanned_host, three_troubles
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.scan.page.groups import OTHERS, groups_of
from stallscope.converters.scan.report import report_of


def test_each_row_is_a_group() -> None:
    report = report_of(three_troubles())
    groups = groups_of(report)
    assert len(groups.labels) == len(set(groups.labels)) == len(report.processes)
    assert groups.labels[0].endswith(f": {report.processes[0].kind}")
    for i, row in enumerate(report.processes):
        assert {groups.of(pid) for pid in row.pids} == {i}
    queue = next(label for label in groups.labels if "queue" in label)
    assert queue.startswith("2 × queue: ")
    assert groups.label(3) == groups.label(4) == queue


def test_others_are_in_none() -> None:
    groups = groups_of(report_of(three_troubles()))
    assert groups.label(4711) == groups.label("x") == OTHERS
    assert groups.of(None) == len(groups.rows)


def test_equal_labels_get_numbers() -> None:
    report = report_of(three_troubles())
    row = next(row for row in report.processes if row.name == "queue")
    report = replace(report, processes=(row, replace(row, pids=(7, 8)), replace(row, pids=(9,))))
    two = f"2 × queue: {row.kind}"
    assert groups_of(report).labels == (f"{two} (1)", f"{two} (2)", f"queue (9): {row.kind}")


def test_ranks_are_told_with_the_name() -> None:
    profile = scanned_host()
    profile.processes = [ProcessTimes(pid, "train", ranks={"rank": str(pid - 100)}) for pid in (100, 101)]
    groups = groups_of(report_of(profile))
    assert groups.ranks == {100: 0, 101: 1}
    assert groups.names[101] == "train [rank 1]"
    assert groups.names[200] == "saver"
