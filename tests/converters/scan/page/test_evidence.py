from __future__ import annotations

import json

import pytest
from scans import HOSTILE, scanned_host, three_troubles
from slice_profiles import two_phases
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.model.slices import SliceSpent
from stallscope.converters.rules.verdict import KINDS
from stallscope.converters.scan.page import evidence
from stallscope.converters.scan.page.groups import groups_of
from stallscope.converters.scan.report import Report, report_of
from summary_profiles import SECOND


def made(profile: Profile) -> tuple[Report, list[dict]]:  # type: ignore[type-arg]
    report = report_of(profile)
    return report, evidence.rows(profile, report.facts, groups_of(report))


@pytest.mark.parametrize("profile", [three_troubles, scanned_host])
def test_figures_are_those_of_the_report(profile: type[Profile]) -> None:
    report, rows = made(profile())
    assert len(rows) == len(report.processes)
    for row, each in zip(rows, report.to_json()["processes"], strict=True):
        assert [int(pid) for pid in row["pids"]] == each["pids"]
        assert (row["name"], row["kind"], row["time"], row["on_cpu"]) == (
            each["name"],
            each["kind"],
            each["time_ns"],
            each["on_cpu_ns"],
        )
        assert (row["place"], row["kernel"]) == (each["frames"], each["kernel_wait"])
        assert row["share"] == pytest.approx(each["share"], abs=1e-6)
        assert row["meaning"] == KINDS[row["kind"]]


def test_a_verdict_has_its_sentence_rule_and_stacks() -> None:
    _, rows = made(three_troubles())
    row = next(row for row in rows if row["name"] == "app")
    assert row["told"].startswith("90.0 % of the time")
    assert row["rule"]
    assert row["finding"]["count"] == 500
    assert row["finding"]["places"][0]["stack"][-1] == "bpf_prog_6deef7357e7b4530_x"
    assert any("fsync │ libc.so.6" in frame for frame in row["finding"]["places"][0]["stack"])


def test_waits_and_times_are_of_all_threads_of_a_group() -> None:
    _, rows = made(three_troubles())
    row = next(row for row in rows if row["name"] == "queue")
    assert row["number"] == 2
    assert row["waits"][0]["kind"] == "lock"
    assert row["waits"][0]["time"] == 8 * SECOND
    assert row["times"]["on_cpu"] == 2 * SECOND
    assert row["times"]["threads"] == 2


def test_frames_tell_lines_or_modules() -> None:
    module = Module("/usr/lib/libc.so.6")
    assert evidence.frame_text(Frame("read", module=module)) == "read │ libc.so.6"
    assert evidence.frame_text(Frame("f", "python", None, 0, "a.py", 7)) == "f │ a.py:7"
    assert evidence.frame_text(Frame("f\x1b")) == "f\\x1b"


def test_no_name_is_unprintable() -> None:
    _, rows = made(scanned_host(name=HOSTILE))
    texts = [row["name"] for row in rows] + [frame for row in rows for frame in row["place"]]
    assert printable(HOSTILE) in texts
    assert json.dumps(rows) == json.dumps(rows, ensure_ascii=False).replace("×", "\\u00d7").replace(
        "│", "\\u2502"
    ).replace("→", "\\u2192").replace("…", "\\u2026")


def test_slices_of_a_row() -> None:
    profile = two_phases()
    profile.slices[0].spent += [SliceSpent(kind, (1,) * 10) for kind in ("cpu", "cores", "peer", "child")]
    profile.slices[0].spent[0].frames = ("main", "\x1b[2J")
    _, (row,) = made(profile)
    found = row["slices"]
    assert (found["length"], found["first"], found["kinds"]) == (SECOND, 0, ["io"] * 4 + ["lock"] * 6)
    assert found["parts"][0][0] == ["io", SECOND]
    assert len(found["parts"][0]) == 5
    assert found["parts"][0][-1] == ["others", 1]
    assert found["told"] == printable(found["told"])
    assert json.loads(json.dumps(found)) == found
    assert made(three_troubles())[1][0]["slices"] is None
