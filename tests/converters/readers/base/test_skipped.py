from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.skipped import Skipped
from stallscope.converters.readers.base.source import Source


def test_counts_and_first_place() -> None:
    skipped = Skipped("in", "a stack")
    skipped.add("other events")
    skipped.add("bad", 7)
    skipped.add("bad", 9, count=2)
    profile = Profile([])
    skipped.tell(profile)
    assert profile.lost == {"other events": 1, "bad": 3}
    assert worded(profile.comments) == ["in, line 7: expected a stack"]


def test_nothing_useful_is_an_error() -> None:
    skipped = Skipped("in", "a stack")
    source = Source(io.BytesIO(b""), "in")
    skipped.check(source, False, "a stack")
    skipped.add("bad", 7)
    skipped.check(source, True, "a stack")
    with pytest.raises(StallscopeError, match="in, line 7: expected a stack"):
        skipped.check(source, False, "a stack")


def test_empty_lines_and_comments_are_no_lines_that_were_understood() -> None:
    skipped = Skipped("in", "a stack")
    for line in range(10):
        skipped.add("bad", line + 1)
    source = Source(io.BytesIO(b"# x\n\n" * 20 + b"bad\n" * 10 + b"good\n" * 5), "in")
    assert list(source.chunks())
    with pytest.raises(StallscopeError, match="10 of its 55 lines are not understood"):
        skipped.check(source, True, "a stack")
    source = Source(io.BytesIO(b"bad\n" * 10 + b"good\n" * 11), "in")
    assert list(source.chunks())
    skipped.check(source, True, "a stack")
