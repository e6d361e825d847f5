"""Remarks in a file."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.remarks import BufferFull, Comment, FramesNameless, Kept, OfSide
from stallscope.converters.pprof.remarks import encoded, put_back

COMMENTS: list[Comment] = [
    "first\x1b",
    FramesNameless((("\udcff.so", 2),), 1),
    "the ring buffer was full: raise --buffer",
    BufferFull(),
    OfSide("before", Kept(1, 2, "x", ("a", "b"))),
    OfSide("after", "text"),
    "last",
]


def test_comments_come_back_in_their_order() -> None:
    file = io.BytesIO()
    pprof.save(Profile([ValueType("x", "count")], title="t", comments=COMMENTS), file)
    assert pprof.load(io.BytesIO(file.getvalue())).comments == COMMENTS


@pytest.mark.parametrize(
    "entry",
    [
        {},
        [1],
        [[0]],
        [[-1, {"code": "buffer-full"}]],
        [[1, {"code": "buffer-full"}]],
        [[True, {"code": "buffer-full"}]],
        [[0, "buffer-full"]],
        [[0, {"code": "other"}]],
        [[0, {"code": ["kept"]}]],
        [[0, {"code": "buffer-full", "more": 1}]],
        [[0, {"code": "switches-unseen"}]],
        [[0, {"code": "switches-unseen", "number": "1"}]],
        [[0, {"code": "switches-unseen", "number": True}]],
        [[0, {"code": "switches-unseen", "number": 1 << 64}]],
        [[0, {"code": "waits-hidden", "command": 1}]],
        [[0, {"code": "waits-hidden", "command": "x" * 5000}]],
        [[0, {"code": "kept", "left": 1, "whole": 1, "value": "x", "steps": "ab"}]],
        [[0, {"code": "frames-nameless", "places": [["x", "y"]], "elsewhere": 0}]],
        [[0, {"code": "frames-nameless", "places": [["x"]], "elsewhere": 0}]],
        [[0, {"code": "events-lost", "lost": 1, "taken": 1, "sampled": 1, "careful": True}]],
        [[0, {"code": "of-side", "side": "x", "comment": 1}]],
        [[0, {"code": "buffer-full"}]] * 1025,
    ],
)
def test_anything_else_is_refused(entry: Any) -> None:
    with pytest.raises(ValueError, match="remarks"):
        put_back(json.loads(json.dumps(entry)), [])


def test_a_deep_one_is_refused() -> None:
    deep: Comment = BufferFull()
    for _ in range(9):
        deep = OfSide("before", deep)
    with pytest.raises(ValueError, match="remarks"):
        put_back(json.loads(json.dumps(encoded([deep]))), [])
