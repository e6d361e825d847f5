"""A critical path in a file: with what its answer tells, and no event."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

import numpy as np
import pytest
from stallscope.converters import pprof
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.model import scheduling as events
from stallscope.converters.model.critical import NOT_TRACED, CriticalPath, Segment
from stallscope.converters.model.scheduling import NO_STACK, Scheduling
from stallscope.converters.pprof.critical import decoded, encoded
from stallscope.converters.summary.critical import critical_of
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.transforms.critical_path import path_profile
from summary_profiles import READ, SECOND, Tracee, empty

STACK = (Frame("m\udcffain", "native", Module("/x", "ab", 7), 0x10, "x.c", 3), Frame("pipe_read", "kernel"))
PATH = CriticalPath(
    1,
    (
        Segment(-5, 10, 1, 11, "running", NO_STACK),
        Segment(10, 30, 0, 10, "interruptible", 2, (1,)),
        Segment(30, 40, -1, 99, NOT_TRACED, NO_STACK, (1, 0)),
        Segment(40, 100, 1, 11, "interruptible", 2),
    ),
)


def scheduling() -> Scheduling:
    threads = np.array([(10, 10, 0, 0, 0), (11, 10, 0, 1, 0)], events.THREAD)
    return Scheduling(100, threads=threads, names=["app\x1b", "w"], stacks=[(), READ, STACK])


def told(path: CriticalPath, of: Scheduling) -> Any:
    return critical_of(Profile([], critical=path, scheduling=of))


def test_what_is_told_of_it_is_the_same() -> None:
    path, of = decoded(json.loads(json.dumps(encoded(PATH, scheduling()))))
    assert told(path, of) == told(PATH, scheduling())
    assert of.stacks == [STACK], "only what the path needs"
    assert of.count() == 0


def without(*keys: Any, value: Any = None) -> dict[str, Any]:
    """The entry, with another value at a place."""
    entry: Any = json.loads(json.dumps(encoded(PATH, scheduling())))
    at = entry
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return copy.deepcopy(entry)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        without("more"),
        without("thread", value=2),
        without("thread", value=-1),
        without("names", 0, value=1),
        without("threads", 0, value=[1, 2, 3]),
        without("threads", 0, value=[1, 2, 2, 0]),
        without("threads", 0, value=[1 << 31, 2, 0, 0]),
        without("segments", 0, value=[]),
        without("segments", 0, 0, value=11),
        without("segments", 0, 0, value=-(1 << 63)),
        without("segments", 0, 2, value=-2),
        without("segments", 0, 2, value=2),
        without("segments", 0, 4, value="\x1b"),
        without("segments", 0, 4, value=[]),
        without("segments", 0, 5, value=1),
        without("segments", 0, 6, value=[2]),
        without("stacks", 0, value=[2]),
        without("frames", 0, 0, value=1),
        without("frames", 0, 1, value="x"),
        without("frames", 0, 2, value=["x"]),
        without("frames", 0, 3, value=-1),
    ],
)
def test_anything_else_is_refused(entry: Any) -> None:
    with pytest.raises(ValueError, match="critical path"):
        decoded(entry)


def traced() -> Profile:
    profile = empty()
    Tracee(profile, 10, "app", 10, "app").wait(READ, "interruptible", 9 * SECOND, 3)
    profile.critical, profile.scheduling = PATH, scheduling()
    return profile


def saved(profile: Profile) -> bytes:
    file = io.BytesIO()
    pprof.save(profile, file)
    return file.getvalue()


def test_a_file_that_shows_the_path_has_what_was_answered() -> None:
    profile = traced()
    again = pprof.load(io.BytesIO(saved(path_profile(profile, PATH))))
    assert [each.name for each in again.value_types] == ["critical", "segments"]
    assert again.critical is again.scheduling is None, "its samples are the path"
    assert again.answered and again.answered.answered is None
    assert summarize(again.answered).to_json() == summarize(profile).to_json()


def test_a_damaged_one_is_told() -> None:
    data = bytearray(saved(Profile([], answered=None)))
    assert pprof.load(io.BytesIO(bytes(data))).answered is None
    import gzip

    from stallscope.converters.pprof.schema import ANSWERED
    from stallscope.converters.pprof.wire import bytes_tag, sized

    broken = gzip.decompress(bytes(data)) + bytes_tag(ANSWERED) + sized(b"\xff\xff")
    with pytest.raises(StallscopeError, match="damaged"):
        pprof.load(io.BytesIO(broken))


def test_only_the_inner_one_may_have_it() -> None:
    """A file may come from anyone: what is told of a path is no timeline."""
    profile = traced()
    inner = pprof.load(io.BytesIO(saved(path_profile(profile, PATH)))).answered
    assert inner and inner.critical and inner.scheduling
    outer = pprof.load(io.BytesIO(saved(inner)))
    assert outer.critical is outer.scheduling is None
