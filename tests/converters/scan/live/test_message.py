from __future__ import annotations

import json
from dataclasses import replace

from scans import HOSTILE, scanned_host, three_troubles
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Frame, Profile
from stallscope.converters.model.remarks import Shed
from stallscope.converters.scan.conditions.holding import Holding
from stallscope.converters.scan.live.message import Message, message_of, read
from stallscope.converters.scan.report import report_of
from stallscope.converters.scan.watch.line import Interval
from summary_profiles import SECOND, Tracee
from verdict_profiles import FSYNC, one


def sent(profile: Profile, **changes: object) -> Message:
    interval = replace(Interval.of(profile, report_of(profile)), **changes)  # type: ignore[arg-type]
    return read(json.loads(json.dumps(message_of(interval))))


def test_rows_come_with_their_evidence() -> None:
    message = sent(three_troubles())
    first = message.rows[0]
    assert (first.name, first.pids, first.kind, first.share) == ("app", [1], "io", 0.9)
    assert first.where == "fsync → folio_wait_bit"
    assert first.told.startswith("90.0 % of the time of the main thread of app")
    assert first.stack == ["main", "save", "fsync"]
    assert "folio_wait_bit" in first.kernel
    assert first.threads == [["app", "1", "10.0 %", "0.0 %", "90.0 %", "fsync → folio_wait_bit"]]
    assert message.head == "4 processes, 4 threads, 0.40 cores used"
    assert message.answer[0].startswith("90.0 %")


def test_who_ends_the_waits() -> None:
    assert any(row.ended == "feed (pid 300): 100.0 % of the waits" for row in sent(scanned_host()).rows)


def test_notes() -> None:
    profile = three_troubles()
    profile.lost = {"intervals": 1}
    holding = (Holding("app", 1, "io", ()),)
    message = sent(profile, holding=holding, kept=("a.d",), notes=("full",))
    assert message.notes == ["when: app (pid 1): verdict io", "kept a.d", "full", "lost: 1 interval"]
    profile.comments.append(Shed("locks", SECOND, 0, 0, (), 0))
    assert sent(profile).notes == ["lost: 1 interval", "from second 1.0 on: without locks"]


def test_threads_frames_and_rows_are_limited() -> None:
    deep = (*(Frame(f"f{i}") for i in range(100)), *FSYNC)
    profile = one(deep, 9 * SECOND, state="uninterruptible", runs=SECOND)
    for tid in range(2, thresholds.LIVE_THREADS + 5):
        Tracee(profile, 1, "app", tid, "worker").run(tid)
    row = sent(profile).rows[0]
    assert (len(row.threads), row.more_threads) == (thresholds.LIVE_THREADS, 4)
    assert row.threads[0][1] == "1", "the main thread comes first"
    assert len(row.stack) == thresholds.LIVE_STACK
    assert row.stack[-1] == "fsync"
    interval = Interval.of(profile, report_of(profile))
    rows = interval.report.processes * (thresholds.LIVE_PROCESSES + 1)
    made = replace(interval, report=replace(interval.report, processes=rows))
    assert len(message_of(made)["rows"]) == thresholds.LIVE_PROCESSES


def test_hostile_names_survive_as_they_are() -> None:
    assert any(row.name.startswith(HOSTILE) for row in sent(scanned_host(name=HOSTILE)).rows)
