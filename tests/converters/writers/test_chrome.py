from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.writers import chrome
from stallscope.converters.writers.base.options import WriteOptions

OFF_CPU, COUNT = ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")
HOSTILE = "<script>alert(1)</script>;x\"\\\u2028\x1b[2J\udcff\n'&"
MAIN, CALL = Frame("main"), Frame(HOSTILE, "python", Module("/opt/x\n.so"), 16, "t\x1b.py", 7)


def labels(pid: int, process: str, tid: int, thread: str) -> Labels:
    return (("pid", pid), ("process", process), ("thread", thread), ("tid", tid))


A, B = labels(1, "python", 1, "main"), labels(1, "python", 2, HOSTILE)


def document(profile: Profile, **options: Any) -> Any:
    """Numbers with a fraction stay exact."""
    file = io.BytesIO()
    chrome.write(profile, file, WriteOptions(**options))
    text = file.getvalue().decode("ascii")
    assert text.replace("\n", "").isprintable()
    return json.loads(text, parse_float=Decimal)


def timed(*tracks: Track, unit: str = "nanoseconds") -> Profile:
    timeline = Timeline(list(tracks), unit)
    return Profile([ValueType("wall", unit), COUNT], add_up(timeline), timeline=timeline)


def slices(content: Any) -> list[tuple[Any, ...]]:
    """(pid, tid, name, ts, dur) of the complete events."""
    events = [event for event in content["traceEvents"] if event["ph"] == "X"]
    return [(e["pid"], e["tid"], e["name"], e["ts"], e["dur"]) for e in events]


def metadata(content: Any) -> set[tuple[Any, ...]]:
    events = [event for event in content["traceEvents"] if event["ph"] == "M"]
    return {(e["name"], e["pid"], e.get("tid"), *e["args"].values()) for e in events}


# A timeline


def test_spans_are_complete_events_exact_to_the_nanosecond() -> None:
    far = 9_007_199_254_740_993  # the first whole number that a double cannot hold
    spans = [Span(0, 2_000, MAIN), Span(1, 1_500, CALL, (("bytes", 5), ("who\n", HOSTILE))), Span(far, far + 1, MAIN)]
    content = document(timed(Track(A, spans=spans)))
    assert slices(content) == [
        (1, 1, "main", 0, 2),
        (1, 1, printable(HOSTILE), Decimal("0.001"), Decimal("1.499")),
        (1, 1, "main", Decimal("9007199254740.993"), Decimal("0.001")),
    ]
    call = next(event for event in content["traceEvents"] if event["name"] == printable(HOSTILE))
    assert call["cat"] == "python"
    assert call["args"] == {
        "module": "/opt/x\\x0a.so",
        "file": "t\\x1b.py",
        "line": 7,
        "bytes": 5,
        "who\\x0a": printable(HOSTILE),
    }
    assert content["displayTimeUnit"] == "ns"
    assert "positions" not in content["otherData"]


@pytest.mark.parametrize(("unit", "micros"), [("microseconds", 3), ("milliseconds", 3_000), ("seconds", 3_000_000)])
def test_units_of_time_become_microseconds(unit: str, micros: int) -> None:
    assert slices(document(timed(Track(A, spans=[Span(0, 3, MAIN)]), unit=unit)))[0][3:] == (0, micros)


def test_processes_and_threads_are_named() -> None:
    span = [Span(0, 1, MAIN)]
    content = document(timed(Track(A, spans=span), Track(B, spans=span), Track(labels(5, "b", 6, "t"), "given", span)))
    assert metadata(content) == {
        ("process_name", 1, None, "python"),
        ("thread_name", 1, 1, "main"),
        ("thread_name", 1, 2, printable(HOSTILE)),
        ("process_name", 5, None, "b"),
        ("thread_name", 5, 6, "given"),
    }


def test_every_track_has_a_place_of_its_own() -> None:
    """Tracks without ids, with ids that are taken, and with ids that no kernel gives."""
    span = [Span(0, 1, MAIN)]
    owners: list[Labels] = [
        A,
        A,
        (("process", "x"),),
        (("process", "x"), ("thread", "t")),
        (("process", "y"),),
        (),
        (("pid", 1 << 22), ("tid", (1 << 22) + 1)),
        (("pid", 1 << 40), ("tid", -3)),
    ]
    content = document(timed(*(Track(each, spans=span) for each in owners)))
    places = [(pid, tid) for pid, tid, *_ in slices(content)]
    assert len(set(places)) == len(owners)
    assert places[0] == (1, 1)
    assert places[1][0] == 1
    assert places[2][0] == places[3][0] != places[4][0]
    assert places[6] == (1 << 22, (1 << 22) + 1)
    assert all(0 <= number < 1 << 31 for place in places for number in place)
    others = {pid for i, (pid, _) in enumerate(places) if i != 6}
    assert 1 << 22 not in others


def test_what_is_known_of_the_recording_goes_with_it() -> None:
    profile = timed(Track(A, spans=[Span(0, 1, MAIN)]))
    profile.title, profile.host, profile.lost, profile.comments = HOSTILE, "node", {"a\n": 3}, ["said\x1b"]
    assert document(profile)["otherData"] == {
        "exporter": "stallscope",
        "title": printable(HOSTILE),
        "host": "node",
        "lost": {"a\\x0a": 3},
        "comments": ["said\\x1b"],
    }
    assert document(profile, title="mine")["otherData"]["title"] == "mine"


# No timeline


def untimed() -> Profile:
    same = Frame(HOSTILE, "python", Module("/opt/x\n.so"), 99, "t\x1b.py", 8)
    return Profile(
        [OFF_CPU, COUNT],
        [
            Sample((MAIN, CALL), (2_500, 2), A),
            Sample((MAIN,), (1_000, 1), A),
            Sample((MAIN, same, MAIN), (500, 7), B),
            Sample((Frame("else"),), (1, 9), labels(8, "other", 8, "main")),
            Sample((Frame("nothing"),), (0, 1), A),
        ],
    )


def test_stacks_are_laid_end_to_end_and_the_trace_says_so() -> None:
    content = document(untimed())
    by_name = [(pid, name, ts, dur) for pid, _, name, ts, dur in slices(content)]
    assert by_name == [
        (1, "main", 0, 4),
        (1, printable(HOSTILE), 1, 3),
        (1, "main", Decimal("3.5"), Decimal("0.5")),
        (8, "else", 0, Decimal("0.001")),
    ]
    note = content["otherData"]["positions"]
    assert note == "stacks end to end: widths are off-cpu (time), positions are not times"
    assert {entry[1:] for entry in metadata(content) if entry[0] == "process_labels"} == {
        (1, None, note),
        (8, None, note),
    }
    assert {entry[3] for entry in metadata(content) if entry[0] == "thread_name"} == {"all threads"}


def test_one_track_per_thread() -> None:
    content = document(untimed(), per_thread=True)
    assert [each for each in slices(content) if each[0] == 1] == [
        (1, 1, "main", 0, Decimal("3.5")),
        (1, 1, printable(HOSTILE), 1, Decimal("2.5")),
        (1, 2, "main", 0, Decimal("0.5")),
        (1, 2, printable(HOSTILE), 0, Decimal("0.5")),
        (1, 2, "main", 0, Decimal("0.5")),
    ]


def test_one_track_for_each_value_of_other_labels() -> None:
    profile = untimed()
    profile.samples = [s._replace(labels=tuple(sorted((*s.labels, ("state", "D"))))) for s in profile.samples[:1]]
    profile.samples += [Sample((MAIN,), (3000, 1), A), Sample((MAIN,), (4000, 1), B)]
    own = Decimal(profile.samples[0].values[0]) / 1000
    for roots, expected in (
        (("process", "state"), {("python", "D"): own, ("python", "[unknown state]"): 7}),
        (("state",), {("", "D"): own, ("", "[unknown state]"): 7}),
        (("thread", "state"), {("", "main D"): own, ("", "main [unknown state]"): 3, ("", HOSTILE): 4}),
        (("process", "thread"), {("python", "main"): own + 3, ("python", HOSTILE): 4}),
        ((), {("", "all threads"): own + 7}),
    ):
        content = document(profile, roots=roots)
        processes = {entry[1]: entry[3] for entry in metadata(content) if entry[0] == "process_name"}
        threads = {entry[1:3]: entry[3] for entry in metadata(content) if entry[0] == "thread_name"}
        widths: dict[tuple[str, str], Decimal] = {}
        for pid, tid, name, _, width in slices(content):
            if name == "main":
                who = processes.get(pid, ""), threads[pid, tid]
                widths[who] = widths.get(who, Decimal(0)) + width
        wanted = {
            (a, printable(f"{b} [unknown state]" if b == HOSTILE and "state" in roots else b)): w
            for (a, b), w in expected.items()
        }
        assert widths == wanted, roots


def test_a_value_that_is_no_time_is_one_microsecond_each() -> None:
    content = document(untimed(), value="count")
    assert [(name, dur) for *_, name, _, dur in slices(content)][:1] == [("main", 10)]
    assert "1 µs shown is 1 of its unit, count" in content["otherData"]["positions"]


def test_a_timeline_in_another_unit_than_the_value_is_not_its_timeline() -> None:
    content = document(timed(Track(A, spans=[Span(10, 20, MAIN), Span(30, 40, MAIN)])), value="count")
    assert [each[2:] for each in slices(content)] == [("main", 0, 2)]


def test_nothing_and_a_value_that_is_not_there() -> None:
    assert document(Profile([OFF_CPU]))["traceEvents"] == []
    with pytest.raises(StallscopeError):
        document(Profile([OFF_CPU]), value="x")


@pytest.mark.parametrize("count", [1, 999, 1000, 1001, 2500])
def test_pieces_join_to_one_document(count: int) -> None:
    spans = [Span(i, i + 1, Frame(f"f{i}")) for i in range(count)]
    assert [each[2] for each in slices(document(timed(Track(A, spans=spans))))] == [f"f{i}" for i in range(count)]


def test_what_is_written_of_a_timeline_is_read_again(tmp_path: Path) -> None:
    spans = [Span(0, 2_000, MAIN), Span(1, 1_500, CALL), Span(1, 700, MAIN), Span(3_000, 3_001, MAIN)]
    content = timed(Track(A, spans=spans), Track(labels(2, "other", 3, "t"), spans=spans[:2]))
    path = tmp_path / "x.trace.json"
    with path.open("wb") as file:
        chrome.write(content, file, WriteOptions())
    name, again = detect.read(str(path), ReadOptions())
    assert name == "chrome"
    assert self_times(again) == self_times(content)


def self_times(content: Profile) -> dict[tuple[object, ...], int]:
    """(labels, names) → time."""
    return {
        (sample.labels, *(printable(frame.name) for frame in sample.stack)): sample.values[0]
        for sample in content.samples
        if sample.values[0]
    }


FRAMES = st.sampled_from([Frame(name, kind, module) for name in "abc" for kind in ("native", "kernel")
                          for module in (None, Module("/m"))])  # fmt: skip
SAMPLES = st.builds(
    Sample,
    st.lists(FRAMES, min_size=1, max_size=5).map(tuple),
    st.tuples(st.integers(-1, 10**6), st.integers(0, 5)),
    st.sampled_from([A, B, ()]),
)


@settings(deadline=None)
@given(st.lists(SAMPLES, max_size=12))
def test_self_times_of_the_slices_are_the_values_of_the_stacks(samples: list[Sample]) -> None:
    expected: dict[tuple[str, ...], Decimal] = {}
    for sample in samples:
        if sample.values[0] > 0:
            names = tuple(frame.name for frame in sample.stack)
            expected[names] = expected.get(names, Decimal(0)) + sample.values[0]
    found: dict[tuple[str, ...], Decimal] = {}
    open_: list[tuple[Any, Decimal]] = []
    path: list[str] = []
    for pid, tid, name, ts, dur in slices(document(Profile([OFF_CPU, COUNT], samples))):
        while open_ and (open_[-1][0] != (pid, tid) or open_[-1][1] <= ts):
            open_.pop()
            path.pop()
        if open_:
            assert ts + dur <= open_[-1][1]  # it nests
            found[tuple(path)] -= dur * 1000
        open_.append(((pid, tid), ts + dur))
        path.append(name)
        found[tuple(path)] = found.get(tuple(path), Decimal(0)) + dur * 1000
    assert {names: value for names, value in found.items() if value} == expected
