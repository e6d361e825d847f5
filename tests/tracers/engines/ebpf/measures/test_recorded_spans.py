"""Records of single events, put together. With real calls: tests/live/test_spans.py and test_around.py."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from scheduling_traces import rows
from stallscope.converters.model.scheduling import NO_STACK, OPEN, THREAD, CallName, Scheduling
from stallscope.tracers.engines.ebpf.measures.protocol import Collector, Ended, Recorded
from stallscope.tracers.engines.ebpf.measures.recorded_spans import recorded_by, with_spans
from stallscope.tracers.engines.ebpf.measures.spans import SPAN, CallSpans
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import RUNNING, Origin

ENDED = Ended(1000, 1100, [])
EMPTY = Recorded(Scheduling(100), [], [])
WAIT = Row(Origin(1, 2, 0, 0, 5, 6, 1), "", ())


class Events(Collector):
    def recorded(self, ended: Ended) -> Recorded:
        assert ended is ENDED
        return EMPTY


class Calls(Collector):
    def spans(self) -> CallSpans:
        return CallSpans(rows(SPAN, begin=[1010], end=[1020], tid=[7]), [CallName("f")], 3)


def test_measures_are_put_together() -> None:
    functions = CallSpans(rows(SPAN, begin=[1010, 1500], end=[1050, 1600], tid=[7, 7]), [CallName("f")], 1, 2)
    ioctls = CallSpans(rows(SPAN, begin=[1020], end=[OPEN], tid=[7], level=[8]), [CallName("TCGETS", "ioctl")], 10, 20)
    found = with_spans(EMPTY, [functions, ioctls], ENDED)
    made = found.scheduling
    assert made.calls.tolist() == [(10, 50, 7, 0, 0, NO_STACK), (20, OPEN, 7, 1, 8, NO_STACK)]
    assert made.call_names == [CallName("f"), CallName("TCGETS", "ioctl")]
    assert (made.calls_lost, made.calls_dropped) == (11, 23), "one came after the end"
    assert found.places == []
    assert functions.calls["begin"].tolist() == [1010, 1500], "unchanged"
    assert with_spans(EMPTY, [], ENDED) is EMPTY


def test_steps_of_several_measures_are_nested() -> None:
    """Each of them has levels of its own, or none."""
    step = [CallName("t.py:outer", "step"), CallName("t.py:inner", "step")]
    python = CallSpans(
        rows(SPAN, begin=[1020, 1010, 1052, 1012], end=[1030, 1050, OPEN, 1015], tid=[7, 7, 7, 8], name=[1, 0, 0, 0]),
        step,
    )
    native = CallSpans(rows(SPAN, begin=[1022, 1053], end=[1024, 1054], tid=[7, 7]), [CallName("lib.so:f", "step")])
    calls = with_spans(EMPTY, [python, native], ENDED).scheduling.calls
    of_seven = calls[calls["tid"] == 7]
    assert of_seven[["begin", "end", "level"]].tolist() == [
        (10, 50, 0),
        (20, 30, 1),
        (22, 24, 2),
        (52, OPEN, 0),
        (53, 54, 1),
    ]
    assert calls[calls["tid"] == 8]["level"].tolist() == [0]


def test_calls_come_with_the_events() -> None:
    found = recorded_by([Calls(), Events()], ENDED)
    assert found
    assert found.scheduling.calls["begin"].tolist() == [10]
    assert found.scheduling.calls_lost == 3
    assert recorded_by([Events()], ENDED) is EMPTY
    assert recorded_by([Calls()], ENDED) is None


def test_where_calls_were_made() -> None:
    """Two lives of one address space are one place; a stack in another process is another one."""
    threads = rows(THREAD, tid=[7, 8, 9], tgid=[7, 7, 9], name=[0, 1, 2])
    keys = [Origin(0, 0, 0, tid, tgid, 0, 1) for tid, tgid in ((7, 70), (8, 70), (9, 90))]
    lives: Any = [SimpleNamespace(thread=SimpleNamespace(key=key)) for key in keys]
    recorded = Recorded(Scheduling(100, threads=threads), lives, [WAIT])
    spans = rows(
        SPAN,
        begin=[1001, 1002, 1003, 1004, 1005, 1006],
        end=[1001, 1002, 1003, 1004, 1005, 1006],
        tid=[7, 8, 9, 7, 7, 99],
        ustack=[40, 40, 40, 0, 41, 40],
        life=[1, 2, 3, 1, 1, 4],
    )
    ended = replace(ENDED, alike=lambda: {1: 1, 2: 1, 3: 3})
    found = with_spans(recorded, [CallSpans(spans, [CallName("f")])], ended)
    assert found.places[0] is WAIT
    assert all(row.origin.state == RUNNING and not row.values for row in found.places[1:])
    made = [found.places[i].origin[:1] + found.places[i].origin[4:6] if i > 0 else None
            for i in found.scheduling.calls["stack"].tolist()]  # fmt: skip
    assert made == [(40, 70, 1), (40, 70, 1), (40, 90, 3), None, (41, 70, 1), None]
    assert len(found.places) == 4
