from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.options import WriteOptions
from stallscope.converters.readers import speedscope
from stallscope.converters.readers.options import ReadOptions
from stallscope.converters.readers.source import Source
from stallscope.converters.writers import speedscope as writer

NAMES = st.text(min_size=1, max_size=8)
FRAMES = st.builds(Frame, NAMES, st.sampled_from(["native", "kernel"]))
LABELS = st.sampled_from([(), (("pid", 7), ("process", "a b")), (("pid", 8), ("process", "worker-3"))])
SAMPLES = st.builds(Sample, st.lists(FRAMES, max_size=5).map(tuple), st.tuples(st.integers(1, 10**12)), LABELS)


def read(document: Any) -> Profile:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return speedscope.read(Source(io.BytesIO(text), "x"), ReadOptions())


def write(profile: Profile) -> bytes:
    file = io.BytesIO()
    writer.write(profile, file, WriteOptions())
    return file.getvalue()


def stacks(text: bytes) -> dict[str, dict[str, int]]:
    """Weights by profile and stack, names spelled out: the table of frames may be in another order."""
    document = json.loads(text)
    frames = [json.dumps(frame, sort_keys=True) for frame in document["shared"]["frames"]]
    return {
        profile["name"]: {
            ";".join(frames[i] for i in sample): weight
            for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
        }
        for profile in document["profiles"]
    }


def evented(*events: tuple[str, int, float]) -> dict[str, Any]:
    listed = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    profile = {"type": "evented", "name": "t", "unit": "seconds", "startValue": 0, "endValue": 9, "events": listed}
    return {"shared": {"frames": [{"name": "a", "file": "a.py", "line": 2}, {"name": "b"}]}, "profiles": [profile]}


def test_events_become_self_times() -> None:
    profile = read(evented(("O", 0, 1), ("O", 1, 1.5), ("C", 1, 3), ("C", 0, 4)))
    a = Frame("a", "python", file="a.py", line=2)
    assert profile.value_types == [ValueType("time", "nanoseconds")]
    assert profile.samples == [Sample((a,), (1_500_000_000,)), Sample((a, Frame("b")), (1_500_000_000,))]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"[]", "the file should be a JSON object"),
        (b'{"shared": {}}', "shared.frames should be a JSON array"),
        (b'{\n"shared" 3}', "x, line 2: expected JSON"),
        (b"[" * 100_000, "nested too deeply|line 1"),
        (b'{"shared": {"frames": []}, "profiles": [{"type": "x"}]}', "neither sampled nor evented"),
        (evented(("O", 5, 1)), "not in shared.frames"),
        (evented(("O", 0, 1), ("C", 1, 2)), "event 2 of profile 1 closes a frame"),
        (evented(("O", 0, 2), ("C", 0, 1)), "event 2 of profile 1 is earlier"),
        (evented(("O", 0, 2)), "ends with 1 frames open"),
        (evented(("O", 0, float("nan"))), "no number"),
    ],
)
def test_malformed(document: Any, message: str) -> None:
    with pytest.raises(StallscopeError, match=message):
        read(document)


def test_other_units_are_left_out_and_counted() -> None:
    document = evented(("O", 0, 0), ("C", 0, 1))
    document["profiles"].append({**document["profiles"][0], "unit": "bytes"})
    profile = read(document)
    assert profile.total("time") == 10**9
    assert profile.lost == {"profiles in another unit": 1}
    assert profile.samples[0].labels == (("thread", "t"),)


@given(st.lists(SAMPLES, max_size=12))
def test_round_trip_of_what_our_writer_writes(samples: list[Sample]) -> None:
    profile = Profile([ValueType("off-cpu", "nanoseconds")], samples, title="t", lost={"x": 2, "y": 0})
    text = write(profile)
    again = read(text)
    assert stacks(write(again)) == stacks(text)
    assert again.lost == profile.lost
    assert again.total("time") == profile.total("off-cpu")
