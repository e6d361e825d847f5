from __future__ import annotations

from typing import Any

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.readers.chrome.frames import Frames, arguments, arguments_in


@pytest.mark.parametrize(
    ("event", "frame"),
    [
        ({"name": "f"}, Frame("f")),
        ({}, Frame("[unknown]")),
        ({"name": 3}, Frame("3")),
        ({"name": "f", "args": {"filename": "a.py", "line": 4}}, Frame("f", "python", file="a.py", line=4)),
        ({"name": "f", "args": {"filename": "a.c", "line": -1}}, Frame("f", "native", file="a.c")),
        ({"name": "f", "args": {"filename": 7}}, Frame("f")),
        ({"name": "f", "args": [1]}, Frame("f")),
        (
            {"name": "torch/x.py(3): f(1): g", "cat": "python_function"},
            Frame("f(1): g", "python", file="torch/x.py", line=3),
        ),
        ({"name": "f (/a (b).py:12)", "cat": "FEE"}, Frame("f", "python", file="/a (b).py", line=12)),
        ({"name": "f (/a.py:12)", "cat": "fee"}, Frame("f", "python", file="/a.py", line=12)),
        ({"name": "cudaMemcpy", "cat": "cuda_runtime"}, Frame("cudaMemcpy", "api")),
        ({"name": "gemm", "cat": "kernel"}, Frame("gemm", "other")),
    ],
)
def test_frames(event: dict[str, Any], frame: Frame) -> None:
    frames = Frames([])
    assert frames.of({"name": "other"}) == (0, {})
    assert frames.of(event) == frames.of(dict(event)) == (1, {})
    assert frames.frames[1] == frame


def test_only_py_spy_s_roots_are_labels() -> None:
    assert Frames([]).of({"name": "thread (7): a", "cat": "py-spy"})[1] == {"tid": 7, "thread": "a"}
    assert Frames([]).of({"name": "thread (7): a", "cat": "x"})[1] == {}
    assert Frames([]).of({"name": "thread (7): a", "cat": "py-spy", "args": {"filename": "x.py"}})[1] == {}


def test_a_frame_knows_the_name_of_its_events() -> None:
    name_of: list[int] = []
    frames = Frames(name_of)
    for category in ("python_function", "", "kernel"):
        frames.of({"name": "a.py(3): f", "cat": category})
    frames.of({"name": "g"})
    assert name_of == [frames.name("a.py(3): f")] * 3 + [frames.name("g")]
    assert [frame.name for frame in frames.frames] == ["f", "a.py(3): f", "a.py(3): f", "g"]


def test_arguments_are_small_and_sorted() -> None:
    args = {"b": 2, "a": "x" * 500, "line": 3, "filename": "f", "c": None, "d": [1], "e": True, "g": 2**70}
    assert arguments({"args": args}) == (("a", "x" * 200), ("b", 2))
    assert arguments({"args": {str(i): i for i in range(99)}})[:2] == (("0", 0), ("1", 1))
    assert len(arguments({"args": {str(i): i for i in range(99)}})) == 16
    assert arguments({}) == arguments({"args": "x"}) == ()


def test_arguments_in_the_text_behind_the_times() -> None:
    assert arguments_in(b' "args": {"n": 3, "line": 4, "t": "x"}, "id": 1.5 ') == (("n", 3), ("t", "x"))
    assert arguments_in(b' "args": {"n": }') == ()
    assert arguments_in(b"") == ()
