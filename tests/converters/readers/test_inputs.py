from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Labels, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.inputs import joined, names

F = Frame("f")
ONE: Labels = (("pid", 1), ("process", "python3"))
WALL = ValueType("wall", "nanoseconds")


def profile(*all_labels: Labels, **more: object) -> Profile:
    return Profile([WALL], [Sample((F,), (5,), labels) for labels in all_labels], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/x/rank0.json", "rank1.json"], ["rank0.json", "rank1.json"]),
        (["/x/0/t.json", "/x/1/t.json", "u"], ["0/t.json", "1/t.json", "u"]),
        (["a/0/t", "b/0/t", "b/1/t"], ["a/0/t", "b/0/t", "1/t"]),
        (["-", "stdin.json"], ["stdin", "stdin.json"]),
        (["a", "a"], ["a", "a"]),
        (["t", "x/t"], ["t", "x/t"]),
    ],
)
def test_names_are_as_long_as_they_have_to_be(paths: list[str], expected: list[str]) -> None:
    assert names(paths) == expected


def test_each_sample_has_its_input_on_request() -> None:
    found = [("folded", profile(ONE)), ("folded", profile(ONE, ()))]
    merged = joined(["x/a", "x/b"], found, label=True)
    assert [sample.values for sample in merged.samples] == [(5,)] * 3
    assert [sample.label("input") for sample in merged.samples] == ["a", "b", "b"]
    assert worded(merged.comments) == []
    assert all(list(sample.labels) == sorted(sample.labels) for sample in merged.samples)


def test_tracks_have_it_too() -> None:
    timed = profile(ONE, timeline=Timeline([Track(ONE, spans=[Span(0, 5, F)])]))
    merged = joined(["a"], [("speedscope", timed)], label=True)
    assert merged.timeline is not None
    assert merged.timeline.tracks[0].labels == merged.samples[0].labels == (("input", "a"), *ONE)


def test_processes_that_look_like_one_are_told() -> None:
    found = [("folded", profile(ONE, (("process", "other"),))) for _ in range(3)]
    told = "added up: python3-1 of several inputs; --root input,process tells them apart"
    merged = joined(["a", "b", "c"], found)
    assert worded(merged.comments) == [told]
    assert merged.total("wall") == 30
    assert worded(joined(["a", "b", "c"], found, meant=True).comments) == []
    assert worded(joined(["a"], found[:1]).comments) == []
    apart = [("folded", profile(ONE)), ("folded", profile((("pid", 2), ("process", "python3"))))]
    assert worded(joined(["a", "b"], apart).comments) == []


def test_more_than_a_line_has_room_for() -> None:
    many = profile(*[(("pid", pid), ("process", "p")) for pid in range(5)])
    (told,) = worded(joined(["a", "b"], [("folded", many)] * 2).comments)
    assert told.startswith("added up: p-0, p-1, p-2 and 2 more of several inputs")


def test_times_of_several_threads_are_added_up() -> None:
    timed = profile((("tid", 1),), (("tid", 2),), duration_ns=2_000_000)
    (told,) = worded(joined(["a"], [("chrome", timed)]).comments)
    assert told == "added up: the times of 2 tracks (threads, streams of GPUs); the recording took 2.00 ms"
    told = worded(joined(["a", "b"], [("chrome", timed)] * 2).comments)[-1]
    assert told == "added up: the times of 4 tracks (threads, streams of GPUs); the longest recording took 2.00 ms"
    assert joined(["a"], [("chrome", profile(ONE))]).comments == []
    assert joined(["a"], [("folded", timed)]).comments == []


@pytest.mark.parametrize(
    ("paths", "title", "expected"),
    [
        (["x/rank0.json"], "trace", "trace of rank0.json"),
        (["-"], "trace", "trace"),
        (["-", "b"], "trace", "trace of b"),
        (list("abcde"), "trace", "trace of a, b, c and 2 more"),
        (["heap.pb.gz"], "", "heap.pb.gz"),
    ],
)
def test_a_title_names_the_inputs(paths: list[str], title: str, expected: str) -> None:
    found = [("folded", profile(ONE, title=title))] * len(paths)
    assert joined(paths, found, meant=True).title == expected


def test_a_title_of_its_own_stays() -> None:
    assert joined(["x"], [("pprof", profile(ONE, title="off-CPU of 3 processes"))]).title == "off-CPU of 3 processes"
    assert joined(["x"], [("pprof", profile(ONE))]).title == "x"
