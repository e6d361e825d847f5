from __future__ import annotations

import json

from scans import three_troubles
from slice_profiles import two_phases
from stallscope.converters.scan.report import report_of
from summary_profiles import SECOND
from verdict_profiles import FSYNC, one


def test_findings_tell_what_the_answer_does_not() -> None:
    report = report_of(three_troubles())
    assert len(report.summary.answer) == 2
    assert report.findings
    assert not set(report.findings) & set(report.summary.answer)


def test_a_single_trouble_has_no_findings() -> None:
    assert report_of(one(FSYNC, 9 * SECOND, state="uninterruptible")).findings == ()


def test_json_has_processes_and_the_summary() -> None:
    text = json.dumps(report_of(three_troubles()).to_json())
    made = json.loads(text)
    assert made["scan_version"] == 1
    assert made["summary"]["version"] == 3
    by_name = {each["name"]: each for each in made["processes"]}
    assert set(by_name) == {"app", "client", "queue"}
    assert by_name["app"]["kind"] == "io"
    assert by_name["app"]["frames"] == ["main", "save", "fsync"]
    assert by_name["app"]["share"] == 0.9
    assert by_name["app"]["ended_by"] is None
    assert by_name["queue"]["pids"] == [3, 4]


def test_names_in_json_can_be_parsed() -> None:
    profile = one(FSYNC, 9 * SECOND, state="uninterruptible", runs=SECOND)
    for times in profile.threads:
        times.process = "a\udcff"
    profile.samples = [
        sample._replace(labels=tuple((key, "a\udcff" if key == "process" else value) for key, value in sample.labels))
        for sample in profile.samples
    ]
    assert json.dumps(report_of(profile).to_json(), ensure_ascii=False).encode()


def test_json_has_slices() -> None:
    (row,) = report_of(two_phases()).to_json()["processes"]
    assert row["slices"]["kinds"] == ["io"] * 4 + ["lock"] * 6
    assert all(each["slices"] is None for each in report_of(three_troubles()).to_json()["processes"])


def test_hostile_slices_in_json() -> None:
    profile = two_phases()
    profile.slices[0].spent[0].frames = ("a\udcff",)
    assert json.dumps(report_of(profile).to_json(), ensure_ascii=False).encode()
