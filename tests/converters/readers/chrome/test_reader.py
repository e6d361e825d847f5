from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, add_up
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.chrome import reader as chrome
from stallscope.converters.readers.chrome import tracks as chrome_tracks

DATA = Path(__file__).resolve().parents[3] / "data" / "chrome"
A, B = Frame("a"), Frame("b")


def read(document: Any, event: str = "") -> Profile:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return chrome.read(Source(io.BytesIO(text), "x"), ReadOptions(event=event))


def call(phase: str, name: str, ts: Any, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "name": name, "ts": ts, "pid": 1, "tid": 2, **more}


def spans(profile: Profile) -> list[list[Span]]:
    assert profile.timeline is not None
    return [track.spans for track in profile.timeline.tracks]


def test_calls_become_a_timeline_and_samples() -> None:
    profile = read([call("X", "a", 100.001, dur=10.5), call("B", "b", 102), call("E", "b", 105.0004)])
    assert profile.value_types == [ValueType("wall", "nanoseconds"), ValueType("count", "count")]
    assert spans(profile) == [[Span(0, 10_500, A), Span(1_999, 4_999, B)]]
    assert profile.samples == [
        Sample((A,), (7_500, 1), (("pid", 1), ("tid", 2))),
        Sample((A, B), (3_000, 1), (("pid", 1), ("tid", 2))),
    ]
    assert profile.duration_ns == 10_500


@pytest.mark.parametrize("name", ["pyspy.json", "mixed.json", "cut.json", "samples.json"])
def test_without_a_timeline_the_samples_are_the_same(name: str) -> None:
    text = (DATA / name).read_bytes()
    whole = read(text)
    short = chrome.read(Source(io.BytesIO(text), "x"), ReadOptions(timeline=False))
    assert short.timeline is None
    assert short.samples == whole.samples
    assert (short.lost, worded(short.comments), short.duration_ns) == (
        whole.lost,
        worded(whole.comments),
        whole.duration_ns,
    )


def test_recording_of_py_spy() -> None:
    profile = read((DATA / "pyspy.json").read_bytes())
    labels = {sample.labels for sample in profile.samples}
    assert {dict(each).get("thread") for each in labels} == {"MainThread", "cruncher", "waiter;one"}
    assert {dict(each)["pid"] for each in labels} == {12916, 12923}
    assert all(frame.kind == "python" for sample in profile.samples for frame in sample.stack)
    assert profile.timeline is not None
    assert profile.samples == add_up(profile.timeline)
    assert profile.lost == {}


def test_what_is_mended_is_counted() -> None:
    profile = read((DATA / "mixed.json").read_bytes())
    assert profile.lost == {
        "events not understood": 2,
        "ends of calls without a begin": 1,
        "calls without an end": 1,
        "calls that overlapped others, shortened": 1,
    }
    assert worded(profile.comments) == [
        "beside what is shown: 1 instant, 1 counter",
        f"x, event 14: expected {chrome.EXPECTED}",
    ]
    step = Frame("step", "python", file="train.py", line=12)
    assert profile.timeline
    main = next(track for track in profile.timeline.tracks if ("tid", 11) in track.labels)
    assert main.labels == (("pid", 10), ("process", "trainer <0>"), ("thread", "main"), ("tid", 11))
    # Times of 16 digits are exact, and a call ends where another one begins that outlasts it.
    assert main.spans == [
        Span(250, 7_250, step),
        Span(1_250, 5_750, Frame("aten::topk"), (("Ev Idx", 7),)),
        Span(1_750, 5_749, Frame("cudaGetDeviceProperties", "api")),
        Span(7_250, 11_750, Frame("outlasts")),
    ]


def test_an_array_that_was_cut() -> None:
    profile = read((DATA / "cut.json").read_bytes())
    assert [s.values[0] for s in profile.samples] == [3_000, 3_000, 4_000]
    assert profile.lost == {"events cut short at the end": 1, "calls without an end": 1}
    assert read(b'[{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 2},\n').lost == {}


def test_samples_without_calls() -> None:
    profile = read((DATA / "samples.json").read_bytes())
    assert profile.timeline is None
    assert profile.value_types == [ValueType("samples", "count"), ValueType("weight", "count")]
    found = {(";".join(f.name for f in s.stack), s.label("process")): s.values for s in profile.samples}
    assert found["main;write", None] == (2, 5)
    assert found["main;read", "app"] == (1, 1)
    assert found["main;0x12", "app"] == (1, 1)
    assert profile.lost == {"frames without a definition": 2, "samples not understood": 1}


def test_samples_beside_calls_are_counted() -> None:
    profile = read([call("X", "a", 1, dur=2), call("P", "cycles", 1, sf=3)])
    assert profile.lost == {}
    assert worded(profile.comments) == ["beside what is shown: 1 sample"]


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"Infinity", b"NaN", b"1e308", b"9" * 400])
def test_numbers_without_end_are_events_not_understood(number: bytes) -> None:
    good = b'{"ph": "X", "name": "a", "ts": 1, "dur": 2}'
    for bad in (
        b'{"ph": "X", "name": "a", "ts": %b, "dur": 2}',
        b'{"ph": "X", "name": "a", "ts": 1, "dur": %b}',
        b'{"ph": "B", "name": "a", "ts": %b}',
        b'{"ph": "P", "sf": 1, "weight": %b}',
    ):
        profile = read(b"[%b, %b]" % (good, bad % number))
        assert profile.lost["events not understood"] == 1
        assert profile.total("wall") == 2000
    profile = read(b'{"traceEvents": [], "samples": [{"sf": 1, "weight": %b}, {"sf": 1}]}' % number)
    assert profile.lost["samples not understood"] == 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"hello", "x, line 1: expected a JSON array or object"),
        (b'[{"ph": "X",\n "ts" 1}' + b"," * 100, "x, line 1: expected JSON"),
        (b'[{"ph": "X"' * 3_000, "nested too deeply|expected JSON"),
        ([call("X", "a", None)], "x, event 1: expected an event of a trace"),
        ([call("X", "a", 1, dur=-1)], "x, event 1: expected an event of a trace"),
        ([call("X", "a", 1, pid=[1])], "x, event 1: expected an event of a trace"),
        ([call("X", "a", 1, tid=2**70)], "x, event 1: expected an event of a trace"),
        ([call("X", "a", float("nan"))], "x, event 1: expected an event of a trace"),
    ],
)
def test_malformed(document: Any, message: str) -> None:
    with pytest.raises(StallscopeError, match=message):
        read(document)


def test_too_many_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_tracks, "MAX_CALLS", 3)
    monkeypatch.setattr(chrome_tracks, "FOLD", 1)
    with pytest.raises(StallscopeError, match="more than 3 calls"):
        read([call("X", "a", i, dur=1) for i in range(9)])


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b'{"traceEvents": [', True),
        (b'\xef\xbb\xbf\n [ {"name": "x", "ph": "B"', True),
        (b'{"schemaVersion": 1, "deviceProperties": [', True),
        (b'[{"name": "x"}]', False),
        (b"[1, 2]", False),
        (b'{"profiles": [], "shared": {}}', False),
        (b"", False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert chrome.sniff(head) is known


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


def test_calls_in_no_order_are_read_again_if_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome, "FOLD", 2)
    monkeypatch.setattr(chrome, "FOLD_PIPED", 2)
    calls = [call("X", "b", ts, dur=1) for ts in (1, 2, 3, 4)] + [call("X", "a", 0, dur=9)]
    text = json.dumps(calls).replace(", {", ", 1, {").encode()
    options = ReadOptions(timeline=False)
    profile = chrome.read(Source(io.BytesIO(text), "x"), options)
    assert profile.samples == [
        Sample((A,), (5_000, 1), (("pid", 1), ("tid", 2))),
        Sample((A, B), (4_000, 4), (("pid", 1), ("tid", 2))),
    ]
    assert profile.lost == {"events not understood": 4}
    with pytest.raises(StallscopeError, match="x has calls in no order, and too many") as error:
        chrome.read(Source(Pipe(text), "x"), options)
    assert "as a file" in error.value.remedy
    monkeypatch.undo()
    assert chrome.read(Source(Pipe(text), "x"), options).samples == profile.samples


ANY = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 99), st.floats(), st.text(max_size=3), st.just([]), st.just({})
)
EVENTS = st.dictionaries(
    st.sampled_from(["ph", "name", "cat", "ts", "dur", "pid", "tid", "args", "sf", "stack", "weight"]), ANY, max_size=11
)
CALLS = st.builds(
    call, st.sampled_from("XBEMPi"), st.sampled_from(["a", "b", ""]), st.integers(0, 20), dur=st.integers(0, 9)
)


@given(st.lists(st.one_of(EVENTS, CALLS), max_size=12))
def test_any_events_nest_or_are_refused(events: list[Any]) -> None:
    try:
        profile = read(events)
    except StallscopeError:
        return
    for track in spans(profile) if profile.timeline else []:
        open_: list[int] = []
        for span in track:
            assert 0 <= span.start <= span.end
            while open_ and open_[-1] <= span.start:
                open_.pop()
            assert not open_ or span.end <= open_[-1]
            open_.append(span.end)
        assert track == sorted(track, key=lambda span: span.start)
    assert all(sample.values[0] >= 0 for sample in profile.samples)


CHUNK = {
    "cpuProfile": {
        "nodes": [{"id": 1, "callFrame": {"functionName": "tick", "url": "a.js", "lineNumber": 4}}],
        "samples": [1, 1],
    },
    "timeDeltas": [0, 6],
}


def test_samples_of_v8_are_shown_instead_of_calls() -> None:
    events = [call("X", "Task", 1, dur=50), {**call("P", "ProfileChunk", 2), "id": "0x1", "args": {"data": CHUNK}}]
    profile = read(events)
    assert [(sample.stack[0].name, sample.values) for sample in profile.samples] == [("tick", (6_000, 2))]
    assert worded(profile.comments) == ["beside the samples: 1 call (--event-filter calls shows them)"]
    calls = read(events, event="calls")
    assert [(sample.stack[0].name, sample.values) for sample in calls.samples] == [("Task", (50_000, 1))]


def test_samples_of_the_document_are_shown_where_calls_take_no_time() -> None:
    frames = {"1": {"name": "main"}}
    samples = [{"ts": time, "tid": 1, "sf": 1} for time in (5, 9)]
    for length, event, shown in ((0, "", "main"), (3, "", "f"), (3, "samples", "main"), (0, "calls", "f")):
        document = {"traceEvents": [call("X", "f", 1, dur=length)], "samples": samples, "stackFrames": frames}
        profile = read(document, event=event)
        assert {sample.stack[0].name for sample in profile.samples} == {shown}
        assert profile.default_value == ("wall" if shown == "main" else "")


def test_another_event_is_no_choice() -> None:
    with pytest.raises(StallscopeError) as caught:
        read([call("X", "f", 1, dur=1)], event="nosuch")
    assert caught.value.remedy == "choose one of: calls, samples"


def test_flow_arrows_are_no_loss() -> None:
    arrows = [call(phase, "ac2g", 1) for phase in "sft"] + [call("?", "what", 1)]
    profile = read([call("X", "f", 1, dur=1), *arrows])
    assert profile.lost == {"events of an unknown kind": 1}
    assert worded(profile.comments) == ["beside what is shown: 3 flow arrows"]


def kineto() -> list[dict[str, Any]]:
    """Events as PyTorch's profiler writes them: one name for the CPU's process and those of all GPUs."""
    events = []
    for pid, label in ((700, "CPU"), (0, "GPU 0"), (3, "GPU 3")):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "python3.8"}})
        events.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}})
    own = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
    return [
        *events,
        {**own, "ts": 0, "dur": 1_000},
        {"ph": "X", "name": "a", "pid": 700, "tid": 1, "ts": 10, "dur": 100},
        {"ph": "X", "name": "b", "cat": "kernel", "pid": 3, "tid": 7, "ts": 20, "dur": 300},
    ]


@pytest.mark.parametrize("timeline", [True, False])
@pytest.mark.parametrize("indent", [None, 1])
def test_the_recording_itself_is_no_call(timeline: bool, indent: int | None) -> None:
    text = json.dumps({"traceEvents": kineto()}, indent=indent).encode()
    profile = chrome.read(Source(io.BytesIO(text), "x"), ReadOptions(timeline=timeline))
    assert {sample.stack[0].name: sample.values[0] for sample in profile.samples} == {"a": 100_000, "b": 300_000}
    assert worded(profile.comments) == [
        "left out: the recording's own span, PyTorch Profiler (0); --event-filter calls shows it"
    ]
    assert profile.duration_ns == 1_000_000
    asked = read(kineto(), "calls")
    assert asked.total("wall") == 1_400_000
    assert worded(asked.comments) == []


def test_the_label_of_a_process_tells_it_from_others_of_its_name() -> None:
    processes = {sample.label("pid"): sample.label("process") for sample in read(kineto()).samples}
    assert processes == {700: "python3.8 CPU", 3: "python3.8 GPU 3"}


def test_a_label_that_tells_nothing_apart_is_no_name() -> None:
    alone = [event for event in kineto() if event["pid"] not in (0, 3)]
    assert {sample.label("process") for sample in read(alone).samples} == {"python3.8"}
    named = [event for event in kineto() if event["name"] != "process_name"]
    assert {sample.label("process") for sample in read(named).samples} == {"CPU", "GPU 3"}


def test_an_object_that_was_cut_between_its_events() -> None:
    event = b'{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 5, "name": "f"}'
    cut = {"traces cut short at the end": 1}
    for text, lost in ((b'{"traceEvents": [%b', cut), (b'{"traceEvents": [%b]', cut), (b"[%b", {}), (b"[%b,", {})):
        profile = read(text % event)
        assert (len(profile.samples), profile.lost) == (1, lost)
    assert read(b'{"traceEvents": [%b]}' % event).lost == {}
