from __future__ import annotations

from scans import scanned_host, three_troubles
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
    profile = scanned_host()
    for times in profile.threads:
        times.process = "same"
    profile.samples = [
        sample._replace(labels=tuple((key, "same" if key == "process" else value) for key, value in sample.labels))
        for sample in profile.samples
    ]
    labels = groups_of(report_of(profile)).labels
    assert len(labels) == len(set(labels)) > 1
