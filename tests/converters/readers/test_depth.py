"""Stacks that are too deep lose their middle, in whatever format they came."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from stallscope.converters.anonymous import anonymised
from stallscope.converters.model import Frame, Profile, Sample, Stack, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, in_order
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.depth import CUT, DEEPEST, bounded

COUNT = [ValueType("samples", "count")]


def stack(depth: int, name: str = "f") -> Stack:
    return tuple(Frame(f"{name}{i}") for i in range(depth))


def profile(*stacks: Stack, lost: dict[str, int] | None = None) -> Profile:
    return Profile(COUNT, [Sample(each, (3,)) for each in stacks], lost=lost or {})


def test_the_deepest_that_stay_as_they_are() -> None:
    known = profile(stack(DEEPEST), (), lost={"lost events": 0})
    assert bounded(known) is known
    assert (known.samples[0].stack, known.lost) == (stack(DEEPEST), {"lost events": 0})


@pytest.mark.parametrize(("depth", "left_out"), [(4097, "2"), (1_238_662, "1,234,567")])
def test_a_deeper_one_loses_its_middle(depth: int, left_out: str) -> None:
    whole = (stack(5000) * (depth // 5000 + 1))[:depth]
    found = bounded(profile(whole, whole[:9], lost={"lost events": 0}))
    cut = found.samples[0].stack
    assert len(cut) == DEEPEST
    assert (cut[:2047], cut[-2048:]) == (whole[:2047], whole[-2048:])
    assert cut[2047] == Frame(f"[{left_out} frames left out]", "other")
    assert found.samples[1].stack == whole[:9]
    assert found.lost == {"lost events": 0, CUT: 1}


def test_stacks_that_become_equal_are_added_up() -> None:
    middle = [stack(3000, "o") + stack(3000, each) + stack(3000, "i") for each in "xy"]
    found = bounded(profile(*middle))
    assert [sample.values for sample in found.samples] == [(6,)]
    assert found.lost == {CUT: 2}


def test_a_timeline_keeps_its_outermost_levels() -> None:
    whole = stack(5000)
    known = profile(whole)
    timeline = known.timeline = in_order([(whole, (), 2), (whole[:2], (), 3), (whole[:4999], (), 1)], "count")
    assert timeline is not None
    assert bounded(known).timeline is timeline
    spans = timeline.tracks[0].spans
    assert [span.frame for span in spans] == [*whole[:DEEPEST], *whole[2:DEEPEST]]
    assert (spans[0].end, spans[2].end, spans[-1]) == (6, 2, Span(5, 6, whole[DEEPEST - 1]))


def test_a_timeline_of_stacks_that_stay_is_not_touched() -> None:
    timeline = Timeline([Track((), "", [Span(0, 1, Frame("f"))])])
    known = profile(stack(1))
    known.timeline = timeline
    assert bounded(known).timeline is timeline


def test_its_place_is_no_name_that_is_private() -> None:
    found = anonymised(bounded(profile(stack(5000, "zebra"))))
    assert found.samples[0].stack[2047].name == "[905 frames left out]"
    assert found.lost == {CUT: 1}
    assert "zebra" not in repr(found)


def _texts(depth: int) -> dict[str, bytes]:
    frames = b"".join(b"\t%x f%d (/x)\n" % (i + 1, i % 7) for i in range(depth))
    names = b",".join(b'{"name":"f%d"}' % i for i in range(7))
    places = b",".join(b"%d" % (i % 7) for i in range(depth))
    speedscope = (
        b'{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[%b]},"profiles":'
        b'[{"type":"sampled","name":"a","unit":"none","startValue":0,"endValue":1,"samples":[[%b]],"weights":[1]}]}'
    )
    return {
        "folded": b"a;" * depth + b"b 1\n",
        "perf": b"a 1 1.0: 1 cycles:\n" + frames + b"\n",
        "speedscope": speedscope % (names, places),
    }


@pytest.mark.parametrize("name", ["folded", "perf", "speedscope"])
def test_whatever_the_format_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(_texts(10_000)[name]))
    found = detect.read(str(path), ReadOptions(), name)[1]
    assert max(len(sample.stack) for sample in found.samples) == DEEPEST
    assert found.lost[CUT] == 1
