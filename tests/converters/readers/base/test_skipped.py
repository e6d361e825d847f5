from __future__ import annotations

import io

import pytest
from stallscope.converters.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.converters.readers.skipped import Skipped
from stallscope.converters.readers.source import Source


def test_counts_and_first_place() -> None:
    skipped = Skipped("in", "a stack")
    skipped.add("other events")
    skipped.add("bad", 7)
    skipped.add("bad", 9, count=2)
    profile = Profile([])
    skipped.tell(profile)
    assert profile.lost == {"other events": 1, "bad": 3}
    assert profile.comments == ["in, line 7: expected a stack"]


def test_nothing_useful_is_an_error() -> None:
    skipped = Skipped("in", "a stack")
    source = Source(io.BytesIO(b""), "in")
    skipped.check(source, False, "a stack")
    skipped.add("bad", 7)
    skipped.check(source, True, "a stack")
    with pytest.raises(StallscopeError, match="in, line 7: expected a stack"):
        skipped.check(source, False, "a stack")
