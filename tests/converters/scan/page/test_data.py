from __future__ import annotations

import json

from scans import HOSTILE, scanned_host, three_troubles
from stallscope.converters.base.text import printable
from stallscope.converters.model import Profile
from stallscope.converters.scan.page.data import page_data
from stallscope.converters.scan.page.groups import groups_of
from stallscope.converters.scan.report import Report, report_of
from summary_profiles import SECOND


def made(profile: Profile) -> tuple[Report, dict]:  # type: ignore[type-arg]
    report = report_of(profile)
    return report, page_data(profile, report, groups_of(report))


def test_numbers_are_those_of_the_report() -> None:
    report, data = made(scanned_host())
    times = report.summary.to_json()["times"]
    assert (data["wall"], data["on_cpu"], data["runnable"]) == (
        times["wall_ns"],
        times["on_cpu_ns"],
        times["runnable_ns"],
    )
    assert data["processes_number"] == 4
    assert data["threads_number"] == 4
    assert data["duration"] == 10 * SECOND
    assert data["cores_number"] == 4
    assert data["lost"][0][:2] == ["intervals", 3]
    assert data["notes"] == ["a note"]


def test_findings_and_the_next_command() -> None:
    report, data = made(three_troubles())
    assert data["findings"] == list(report.findings)
    assert report.summary.next_step
    assert data["next"][0] == report.summary.next_step.command


def test_every_text_is_printable() -> None:
    def texts(value: object) -> list[str]:
        if isinstance(value, str):
            return [value]
        if isinstance(value, dict):
            return [text for each in (*value.keys(), *value.values()) for text in texts(each)]
        return [text for each in value for text in texts(each)] if isinstance(value, list | tuple) else []

    _, data = made(scanned_host(name=HOSTILE))
    assert texts(json.loads(json.dumps(data)))
    assert [text for text in texts(data) if text != printable(text)] == []
