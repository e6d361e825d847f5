from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.speedscope import reader as speedscope
from stallscope.converters.writers import speedscope as writer
from stallscope.converters.writers.base.options import WriteOptions

DATA = Path(__file__).resolve().parents[3] / "data" / "speedscope"
NAMES = st.text(min_size=1, max_size=8)
FRAMES = st.builds(Frame, NAMES, st.sampled_from(["native", "kernel"]))
LABELS = st.sampled_from([(), (("pid", 7), ("process", "a b")), (("pid", 8), ("process", "worker-3"))])
SAMPLES = st.builds(Sample, st.lists(FRAMES, max_size=5).map(tuple), st.tuples(st.integers(1, 10**12)), LABELS)


def read(document: Any, *, timeline: bool = True) -> Profile:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return speedscope.read(Source(io.BytesIO(text), "x"), ReadOptions(timeline=timeline))


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
    b = Frame("b")
    assert profile.value_types == [ValueType("time", "nanoseconds"), ValueType("count", "count")]
    assert profile.samples == [Sample((a,), (1_500_000_000, 1)), Sample((a, b), (1_500_000_000, 1))]
    assert profile.timeline == Timeline(
        [Track((), "t", [Span(10**9, 4 * 10**9, a), Span(1_500_000_000, 3 * 10**9, b)])], "nanoseconds"
    )


def test_evented_beside_sampled_has_no_timeline() -> None:
    document = evented(("O", 0, 1), ("O", 1, 1.5), ("C", 1, 3), ("C", 0, 4))
    document["profiles"].append({"type": "sampled", "name": "s", "unit": "seconds", "samples": [[1]], "weights": [2]})
    profile = read(document)
    assert profile.timeline is None
    assert profile.value_types == [ValueType("time", "nanoseconds")]
    a, b = Frame("a", "python", file="a.py", line=2), Frame("b")
    assert profile.samples == [
        Sample((a,), (1_500_000_000,), (("thread", "t"),)),
        Sample((a, b), (1_500_000_000,), (("thread", "t"),)),
        Sample((b,), (2_000_000_000,), (("thread", "s"),)),
    ]


def test_tracks_share_their_clock() -> None:
    document = evented(("O", 0, 101), ("C", 0, 102))
    document["profiles"][0]["startValue"] = 100
    document["profiles"].append({**document["profiles"][0], "name": "u", "startValue": 101})
    timeline = read(document).timeline
    assert timeline is not None
    a = Frame("a", "python", file="a.py", line=2)
    assert [(t.labels, t.spans) for t in timeline.tracks] == [
        ((("thread", name),), [Span(10**9, 2 * 10**9, a)]) for name in "tu"
    ]


def test_a_timeline_comes_back_from_our_writer() -> None:
    a, b = Frame("a"), Frame("b")
    labels = (("pid", 7), ("process", "p q"), ("thread", "t"), ("tid", 8))
    timeline = Timeline([Track(labels, spans=[Span(5, 20, a), Span(5, 9, b), Span(9, 9, b), Span(30, 31, a)])])
    values = [ValueType("time", "nanoseconds"), ValueType("count", "count")]
    again = read(write(Profile(values, add_up(timeline), timeline=timeline)))
    assert again.timeline == timeline
    assert again.samples == add_up(timeline)


def test_recording_of_py_spy() -> None:
    profile = read((DATA / "pyspy.speedscope.json").read_bytes())
    assert {(s.label("pid"), s.label("tid"), s.label("thread")) for s in profile.samples} >= {
        (12902, 12907, "waiter;one"),
        (12909, 12911, "cruncher"),
    }
    assert {str(s.label("process")).split()[0] for s in profile.samples} == {"/usr/bin/python3"}
    assert all(frame.kind == "python" for s in profile.samples for frame in s.stack)
    assert profile.total("time") == 5_300_000_000


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


def test_without_a_timeline_the_samples_are_the_same() -> None:
    events = [("O", 0, 1), ("O", 1, 2), ("C", 1, 4), ("O", 1, 4), ("C", 1, 9), ("C", 0, 10)]
    document = evented(*events)
    document["profiles"].append({**document["profiles"][0], "name": "u"})
    document["profiles"].append({**document["profiles"][0], "startValue": 1})
    document["shared"]["frames"].append({"name": "b"})
    document["profiles"][2]["events"] = [{**e, "frame": 2 * e["frame"]} for e in document["profiles"][0]["events"]]
    profile = read(document, timeline=False)
    assert profile.timeline is None
    assert profile.samples == read(document).samples
    assert [sample.values for sample in profile.samples] == [
        (4 * 10**9, 2),
        (14 * 10**9, 4),
        (2 * 10**9, 1),
        (7 * 10**9, 2),
    ]


def test_a_call_without_a_length_stays_below_its_caller() -> None:
    document = evented(("O", 0, 0), ("O", 1, 5), ("C", 1, 5), ("C", 0, 5))
    a, b = Frame("a", "python", file="a.py", line=2), Frame("b")
    assert read(document, timeline=False).samples == [Sample((a,), (5 * 10**9, 1)), Sample((a, b), (0, 1))]


@pytest.mark.parametrize("timeline", [True, False])
def test_members_may_come_in_any_order(timeline: bool) -> None:
    for name in ("tiny", "evented", "pyspy"):
        document = json.loads((DATA / f"{name}.speedscope.json").read_text())
        turned = {key: document[key] for key in reversed(document)}
        turned["profiles"] = [{key: each[key] for key in reversed(each)} for each in document["profiles"]]
        assert read(turned, timeline=timeline) == read(document, timeline=timeline)


def test_of_a_member_that_comes_twice_the_last_one_counts() -> None:
    text = (
        b'{"shared": {"frames": [{"name": "x"}]}, "profiles": [5], "shared": {"frames": [{"name": "a"}]}, "profiles": ['
    )
    text += b'{"type": "sampled", "samples": [[9]], "weights": [1], "samples": [[0], [0]], "weights": [1, 2]}]}'
    assert read(text).samples == [Sample((Frame("a"),), (3,))]


def test_what_is_wrong_with_a_profile_that_is_not_shown_does_not_count() -> None:
    document = evented(("O", 0, 0), ("C", 0, 1))
    document["profiles"].append({"type": "evented", "unit": "bytes", "events": [{"type": "O", "frame": 99, "at": 1}]})
    assert read(document, timeline=False).lost == {"profiles in another unit": 1}


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
    # A blank name is read as one that is not known.
    named = [
        s._replace(stack=tuple(f if printable(f.name).strip() else f._replace(name="[unknown]") for f in s.stack))
        for s in samples
    ]
    assert stacks(write(again)) == stacks(write(replace(profile, samples=named)))
    assert again.lost == profile.lost
    assert again.total("time") == profile.total("off-cpu")


@pytest.mark.parametrize("name", ["tiny", "evented"])
def test_a_file_that_is_cut_is_told_as_cut(name: str) -> None:
    text = (DATA / f"{name}.speedscope.json").read_bytes().rstrip().replace(b'"a"', '"\u00e9"'.encode())
    for end in range(1, len(text), 7):
        line = text[:end].count(b"\n") + 1
        with pytest.raises(StallscopeError, match=f"x is cut short: it ends in line {line}, within its JSON"):
            read(text[:end])
    with pytest.raises(StallscopeError, match="x is cut short: it ends in line 1,"):
        read('{"profiles": [{"name": "\u00e9'.encode()[:-1])
