"""Calls kept one by one. With real calls: tests/live/test_spans.py."""

from __future__ import annotations

import numpy as np
import pytest
from stallscope.converters.model.scheduling import OPEN, CallName
from stallscope.tracers.engines.ebpf.measures import spans
from stallscope.tracers.engines.ebpf.measures.spans import RECORD, CallSpans, GoingOn, Spans
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import Origin
from stallscope.tracers.measures.span_options import SpanOptions

SIZE = 1 << 12


def add(to: Spans, *pairs: tuple[int, int]) -> None:
    begins, ends = (np.array(column) for column in zip(*pairs, strict=True))
    to.add(begin=begins, end=ends, tid=np.full(len(begins), 7), name=np.full(len(begins), 3), ustack=9, life=5)


def begins(found: CallSpans) -> list[int]:
    return sorted(found.calls["begin"].tolist())


def named(number: int) -> CallName:
    return CallName(f"function {number}")


def test_the_newest_are_those_that_ended_last() -> None:
    kept = Spans(SpanOptions(2))
    add(kept, (10, 90), (20, 30))
    add(kept, (40, 50), (60, 70))
    found = kept.finish(named, (), 5)
    assert (begins(found), found.dropped, found.lost, found.names) == ([10, 60], 2, 5, [CallName("function 3")])


def test_the_first_ones() -> None:
    kept = Spans(SpanOptions(3, "first"))
    add(kept, (10, 90), (20, 30))
    add(kept, (40, 50), (60, 70))
    found = kept.finish(named, (), 0)
    assert (begins(found), found.dropped) == ([10, 20, 40], 1)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_BLOCK", 10)
    kept = Spans(SpanOptions(25))
    for i in range(100):
        add(kept, *((10 * i + j, 10 * i + j + 1) for j in range(10)))
        assert kept._stored <= 25 + 10
    found = kept.finish(named, (), 0)
    assert begins(found) == list(range(975, 1000))
    assert found.dropped == 975


def test_the_level_of_calls_without_one() -> None:
    kept = Spans(SpanOptions(2), 8)
    add(kept, (10, 90))
    assert kept.finish(named, (), 0).calls["level"].tolist() == [8]


def test_short_ones_are_counted_and_left_out() -> None:
    kept = Spans(SpanOptions(10, over=5))
    add(kept, (0, 5), (10, 16), (20, 20))
    assert begins(kept.finish(named, (), 0)) == [10]
    assert kept.short == 2
    assert list(SpanOptions(10, over=5).remarks("call", kept.short)) == [
        "the timeline has no span for 2 calls of at most 5 ns (--span-over)"
    ]
    assert list(SpanOptions(10, over=5).remarks("call", 0)) == []


def test_calls_that_go_on_are_kept_beyond_the_limit() -> None:
    kept = Spans(SpanOptions(1))
    add(kept, (10, 20), (30, 40))
    found = kept.finish(named, [GoingOn(5, Origin(8, 1, 0, 7, 6, 4, 1), 9, 2)], 0)
    assert found.calls.tolist() == [(30, 40, 9, 7, 0, 5, 0), (5, OPEN, 8, 7, 1, 4, 2)]
    assert [each.name for each in found.names] == ["function 3", "function 9"]


def test_layout_is_that_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        assert opened.find_map("call_spans").max_entries == 4096
        assert opened.find_map("call_span_counts").value_size == 8
    finally:
        opened.close()
    assert RECORD.itemsize % 8 == 0
