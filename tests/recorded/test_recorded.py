"""Answers on captures of programs with a known trouble. See README.md."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from record import CAPTURES, ROOT
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.rules.verdict import IDLE, STILL
from stallscope.converters.scan.report import report_of
from stallscope.converters.summary.showing import answer_of, show

KEPT = sorted(CAPTURES.glob("*.pb.gz"))
LARGEST = 300_000
"""Bytes of a capture in the repository."""


def load(path: Path) -> Profile:
    with path.open("rb") as file:
        return pprof.load(file)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.removesuffix(".pb.gz"))
def test_the_answer_is_as_it_was(path: Path) -> None:
    text = io.StringIO()
    show(answer_of(load(path)), text, as_json=False)
    golden = path.with_name(path.name.replace(".pb.gz", ".answer.txt"))
    if os.environ.get("STALLSCOPE_BLESS") == "1":
        golden.write_text(text.getvalue())
    assert text.getvalue() == golden.read_text()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.removesuffix(".pb.gz"))
def test_a_scan_says_the_same(path: Path) -> None:
    """A scan has the first sentence of the answer, and a row for a process that this is on."""
    profile = load(path)
    report, said = report_of(profile), answer_of(profile)
    assert report.summary.answer == said.answer
    verdicts = report.summary.judged.verdicts
    if verdicts and verdicts[0].kind not in (IDLE, STILL):
        first = verdicts[0]
        on = first.finding.pids if first.finding else first.pids
        assert any(not on.isdisjoint(row.pids) for row in report.processes if row.kind != IDLE)


def test_captures_are_small_and_neutral() -> None:
    assert KEPT
    assert {path.name.replace(".pb.gz", ".answer.txt") for path in KEPT} == {
        path.name for path in CAPTURES.glob("*.answer.txt")
    }
    for path in KEPT:
        profile = load(path)
        assert path.stat().st_size <= LARGEST, path.name
        assert profile.host in ("", "host")
        texts = [
            profile.title,
            *worded(profile.comments),
            *(f"{f.module}{f.file}" for s in profile.samples for f in s.stack),
        ]
        assert not [text for text in texts if ROOT in text]
