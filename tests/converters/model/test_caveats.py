"""Beginnings of a summary."""

from __future__ import annotations

from stallscope.converters.model import Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.caveats import caveat, without_caveats
from stallscope.converters.model.samples import Frame
from stallscope.converters.summary.summarize import summarize

MS = 1_000_000


def test_caveats_are_sentences() -> None:
    assert without_caveats(["a note", caveat("half is lost"), "another"]) == (
        ("Careful: half is lost.",), ("a note", "another"),
    )  # fmt: skip


def test_a_summary_begins_with_them() -> None:
    columns = [ValueType("off-cpu", "nanoseconds"), *(ValueType(name, "count") for name in ("count", "min", "max"))]
    labels = (("pid", 1), ("process", "x"), ("state", "interruptible"), ("thread", "x"), ("tid", 1))
    samples = [Sample((Frame("main"), Frame("pause")), (900 * MS, 1, 900 * MS, 900 * MS), labels)]
    times = [ThreadTimes(1, "x", 1, "x", 1000 * MS, 100 * MS, 0, {"interruptible": 900 * MS})]
    profile = Profile(
        columns, samples, duration_ns=1000 * MS, threads=times, comments=["a note", caveat("half is lost")]
    )
    summary = summarize(profile)
    assert summary.answer[0] == "Careful: half is lost."
    assert len(summary.answer) > 1
    assert summary.comments == ("a note",)
