from __future__ import annotations

import io
import json
from array import array
from typing import Any

import pytest
from stallscope.converters.model import Frame, Module
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.speedscope.frames import Frames, Sums
from stallscope.converters.readers.speedscope.json import JsonParts


def frames_of(shared: Any) -> Frames:
    frames = Frames()
    frames.read(JsonParts(Source(io.BytesIO(json.dumps(shared).encode()), "x")))
    return frames


def named(*names: str) -> Frames:
    return frames_of({"frames": [{"name": name} for name in names]})


def test_frames_and_their_kinds() -> None:
    table = [
        {"name": "", "file": "a.py", "line": 3, "col": None},
        {"name": "k", "file": "[kernel]"},
        {"name": "k", "file": "[kernel.kallsyms]", "line": 5},
        {"name": "n", "file": None, "line": -1},
    ]
    frames = frames_of({"x": [], "frames": table})
    frames.check()
    assert [frames[i] for i in range(len(frames))] == [
        Frame("[unknown]", "python", file="a.py", line=3),
        Frame("k", "kernel"),
        Frame("k", "kernel", Module("[kernel.kallsyms]")),
        Frame("n"),
    ]


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ([], "shared should be a JSON object"),
        ({}, "shared.frames should be a JSON array"),
        ({"frames": {}}, "shared.frames should be a JSON array"),
        ({"frames": [5]}, "a frame should be a JSON object"),
        ({"frames": [{"name": 5}, 5]}, "a frame's name should be a JSON string"),
        ({"frames": [{"name": "a", "line": 1.5}]}, "a frame's line should be a JSON whole number"),
    ],
)
def test_what_is_wrong(shared: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        frames_of(shared).check()


def test_indices_of_equal_frames_are_made_equal() -> None:
    frames = named("a", "b", "a")
    assert list(frames.indices([2, 1, 0], "p")) == [0, 1, 0]
    assert frames.same(0, 2)
    assert not frames.same(0, 1)
    assert list(frames.indices([], "p")) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 3, "x"], "p has a frame that is not in shared.frames"),
        ([-1], "p has a frame that is not in shared.frames"),
        ([0, "x", 3], "a frame of p should be a JSON whole number"),
        ([True], "a frame of p should be a JSON whole number"),
    ],
)
def test_indices_that_are_none(values: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        named("a", "b", "c").indices(values, "p")


def test_sums_in_the_order_of_what_came_first() -> None:
    sums = Sums(named("a", "b"))
    a, ab, again = sums.stack(array("I", [0])), sums.stack(array("I", [0, 1])), sums.stack(array("I", [0]))
    assert a == again
    one, other = sums.owner((("tid", 1),)), sums.owner(())
    sums.add(one, [(ab, 1), (a, 2.5)])
    sums.add(other, [(a, 4)])
    sums.add(one, [(ab, 8)])
    sums.add_counts(one, [(ab, 3), (ab, 1)])
    frame_a, frame_b = Frame("a"), Frame("b")
    assert list(sums.items()) == [
        ((frame_a, frame_b), (("tid", 1),), 9, 4),
        ((frame_a,), (("tid", 1),), 2.5, 0),
        ((frame_a,), (), 4, 0),
    ]


def test_stacks_below_others() -> None:
    sums = Sums(named("a", "b", "a"))
    a = sums.below(-1, 0)
    ab = sums.below(a, 1)
    assert (sums.below(-1, 2), sums.below(a, 1)) == (a, ab)
    sums.add(sums.owner(()), [(ab, 1), (a, 2)])
    assert [each[0] for each in sums.items()] == [(Frame("a"), Frame("b")), (Frame("a"),)]


def test_roots_of_py_spy_become_labels() -> None:
    sums = Sums(named('process 12:"c l"', "thread (13): n", "f"))
    labels = (("tid", 1),)
    owner = sums.owner(labels)
    told, rest = sums.without_roots(owner, labels, array("I", [0, 1, 2, 0]))
    assert list(rest) == [2, 0]
    sums.add(told, [(sums.stack(rest), 1)])
    assert [each[1] for each in sums.items()] == [(("pid", 12), ("process", "c l"), ("thread", "n"), ("tid", 13))]
    assert sums.without_roots(owner, labels, array("I", [2, 0])) == (owner, array("I", [2, 0]))
    assert list(sums.without_roots(owner, labels, array("I", [0]))[1]) == []
