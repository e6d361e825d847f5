"""The host of a page as plain data."""

from __future__ import annotations

import json

import pytest
from host_profiles import busy_host
from scans import HOSTILE, scanned_host
from stallscope.converters.base.text import printable
from stallscope.converters.scan.page.host import host_data
from stallscope.converters.scan.report import report_of
from summary_profiles import MS, SECOND


def test_all_of_a_host() -> None:
    profile = busy_host()
    data = host_data(profile, report_of(profile))
    assert [(each["resource"], each["where"], each["some"]) for each in data["pressure"]] == [
        ("cpu", "", 7 * SECOND),
        ("io", "", 3 * SECOND),
        ("memory", "", 0),
        ("io", "/job_1.slice", 9 * SECOND),
    ]
    assert data["taken"][1] == ["soft", 4 * SECOND, 70_000, 0.1]
    assert data["taken"][2][2] is None
    assert [each[1] for each in data["sources"]] == ["NET_RX", "28 PCI-MSIX mlx5_comp0"]
    assert [(each["core"], each["hard"], each["soft"], each["stolen"]) for each in data["cores"]] == [
        (3, 2 * SECOND, 4 * SECOND, 0),
        (1, 0, 0, SECOND // 2),
    ]
    assert {each["kind"]: round(each["factor"], 1) for each in data["contended"]} == {
        "file lock": 2.5,
        "call": 2.5,
        "lock": 3.9,
    }
    assert data["made"] == [
        {"name": "train (100)", "began": 40, "rate": 4.0, "ended": 30, "on_cpu": 40 * MS, "runnable": 40 * MS}
    ]
    assert data["pools"][0] == {
        "name": "train (100)",
        "thread": "w",
        "runs": "",
        "threads": 40,
        "ended": 30,
        "fed_in": "",
        "made_in": "main → next_epoch",
        "on_cpu": 40 * MS,
        "runnable": 40 * MS,
    }
    assert data["quotas"] == [{"cgroup": "/job_1.slice", "cores": 2.0, "stopped": 40, "periods": 100}]
    assert data["neighbours"] == [{"name": "backup", "pid": 77, "on_cpu": 3 * SECOND, "used": 0.3, "may": "0-3"}]
    (gpu,) = data["gpus"]
    assert (gpu["busy"], gpu["power"], gpu["limits"]) == (0.85, 650, [["power cap", 0.8]])


def test_nothing_of_a_host() -> None:
    profile = scanned_host(events=False)
    profile.shared = []
    profile.threads = [each for each in profile.threads if each.tid == each.pid]
    data = host_data(profile, report_of(profile))
    assert not any(data.values())


@pytest.mark.parametrize("cells", [200])
def test_tables_are_bounded(cells: int) -> None:
    profile = busy_host()
    profile.pressure = []
    profile.threads = [each for each in profile.threads if not each.creator]
    many = range(cells)
    profile.interrupts += [type(each)("hard", f"s{i}", 0, 9, 10) for i in many for each in profile.interrupts[:1]]
    profile.neighbours = [type(each)(f"n{i}", i + 1, 5) for i in many for each in profile.neighbours]
    data = host_data(profile, report_of(profile))
    assert (len(data["sources"]), len(data["neighbours"])) == (100, 100)


def test_every_text_is_printable() -> None:
    profile = busy_host(name=HOSTILE)
    text = json.dumps(host_data(profile, report_of(profile)), ensure_ascii=False)
    assert text == printable(text)
    assert "<img" in text
