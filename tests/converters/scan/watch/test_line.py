from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from scans import HOSTILE, scanned_host, three_troubles
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile
from stallscope.converters.model.remarks import Shed, TraceCost
from stallscope.converters.scan.conditions.holding import Holding
from stallscope.converters.scan.report import report_of
from stallscope.converters.scan.watch.line import Interval, stamp
from summary_profiles import READ, SECOND, Tracee, empty
from verdict_profiles import FSYNC, whole_host


def interval(profile: Profile) -> Interval:
    return Interval.of(profile, report_of(profile))


def many(number: int) -> Profile:
    """Processes that wait for a disk, each elsewhere."""
    profile = empty()
    for pid in range(1, number + 1):
        stack = (FSYNC[0]._replace(name=f"main{pid}"), *FSYNC[1:])
        process = Tracee(profile, pid, f"{chr(96 + pid)}-app", pid, "app").run(SECOND)
        process.wait(stack, "uninterruptible", 9 * SECOND, 900)
    return profile


def test_a_line_is_complete() -> None:
    profile = three_troubles()
    profile.start_ns = 1_700_000_000 * SECOND
    line = interval(profile).text()
    assert line.startswith(stamp(1_700_000_000))
    assert "10.0 s  io 90.0 %  app (pid 1) in fsync │ folio_wait_bit; peer 90.0 %  client (pid 2) in " in line
    assert "; lock 80.0 %  2 × queue (pid 3, 4) in " in line
    assert "\n" not in line


def test_the_time_has_its_zone() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", stamp(1_700_000_000.7))


def test_who_ends_the_waits_is_told() -> None:
    assert re.search(
        r"train \(pid 100, 101\) in .*, ended by feed \(pid 300\): 100\.0 %", interval(scanned_host()).text()
    )


def test_a_process_that_does_nothing_is_idle() -> None:
    profile = whole_host(empty())
    Tracee(profile, 1, "cron", 1, "cron").wait(READ, "interruptible", 10 * SECOND, 1)
    assert interval(profile).text().endswith("10.0 s  idle  1 process, none at work")


def test_a_few_verdicts_are_told_and_the_others_counted() -> None:
    assert "more" not in interval(many(thresholds.WATCHED)).text()
    made = interval(many(thresholds.WATCHED + 2))
    assert made.text().endswith(" | 2 processes more")
    assert len(made.to_json()["verdicts"]) == thresholds.WATCHED + 2


def test_what_was_kept_and_why_and_what_was_lost() -> None:
    profile = three_troubles()
    profile.lost = {"intervals": 3, "stacks cut at 127 frames": 2, "ns of intervals": 9}
    holding = (Holding("app", 1, "io", ()),)
    made = replace(interval(profile), holding=holding, kept=("x.d", "y\n.pb.gz"), notes=("a note",))
    text = made.text()
    assert text.endswith(" | when: app (pid 1): verdict io | lost: 3 intervals | a note | kept x.d, y\\x0a.pb.gz")
    data = made.to_json()
    assert (data["kept"], data["notes"], data["lost"]) == (["x.d", "y\n.pb.gz"], ["a note"], {"intervals": 3})
    assert [each["pid"] for each in data["when"]] == [1]


def test_what_it_cost_is_told_if_it_is_more_than_the_budget_and_what_is_left_out() -> None:
    profile = three_troubles()
    profile.comments.append(TraceCost(60, 1000, (("waits", 60),), 60_000, 1000))
    made = interval(profile)
    assert "cost" not in made.text()
    assert (made.to_json()["cost"]["share"], made.to_json()["shed"]) == (0.06, [])
    profile.comments[-1] = TraceCost(60, 1000, (("waits", 60),), 50_000, 1000)
    profile.comments.append(Shed("locks", 0, 0, 0, (), 0, 0, 2 * SECOND))
    made = interval(profile)
    more = "tracing cost 6.0 % of the traced processes' time, more than the budget of 5 %"
    assert made.text().endswith(f" | {more} | since 2.00 s before this interval: without locks")
    assert made.to_json()["shed"][0]["at_ns"] == -2 * SECOND


def test_hostile_names_control_nothing() -> None:
    made = interval(scanned_host(name=HOSTILE))
    assert made.text().isprintable()
    json.dumps(made.to_json()).encode()


@pytest.mark.parametrize("name", ["verdicts", "when"])
def test_an_object_is_limited(name: str) -> None:
    limit = {"verdicts": thresholds.WATCHED_JSON, "when": thresholds.HOLDING_JSON}[name]
    found = replace(interval(three_troubles()), holding=tuple(Holding("a", pid, "io", ()) for pid in range(limit + 7)))
    report = replace(found.report, processes=found.report.processes[:1] * (limit + 7))
    data = replace(found, report=report).to_json()
    assert (len(data[name]), data[f"more_{name}"]) == (limit, 7)


def test_versions_and_times() -> None:
    data = interval(three_troubles()).to_json()
    assert (data["watch_version"], data["scan_version"], data["duration_ns"]) == (1, 1, 10 * SECOND)
    assert data["verdicts"][0]["kind"] == "io"
    assert data["idle"] == 0
