from __future__ import annotations

from typing import Any

import pytest
from stallscope.converters.model import Frame, Sample
from stallscope.converters.model.timeline import Span
from stallscope.converters.readers.chrome.v8 import CpuProfile, Profiles, result

GC, PROGRAM = Frame("(garbage collector)"), Frame("(program)")
MAIN, READ = (
    Frame("main", "jit", file="app.js", line=3),
    Frame("(anonymous app.js:8)", "jit", file="/srv/app.js", line=8),
)


def node(number: int, name: str, parent: int = 0, url: str = "", line: int = -1) -> dict[str, Any]:
    call = {"functionName": name, "url": url, "lineNumber": line, "scriptId": "1", "columnNumber": 0}
    return {"id": number, "callFrame": call, "parent": parent}


NODES = [
    node(1, "(root)"),
    node(2, "(garbage collector)", 1),
    node(3, "(program)", 1),
    node(4, "(idle)", 1),
    node(5, "main", 1, "app.js", 2),
    node(6, "", 5, "/srv/app.js", 7),
]


def profile(samples: list[int], deltas: list[int], **more: Any) -> CpuProfile:
    made = CpuProfile()
    made.add({"nodes": NODES, "samples": samples, "timeDeltas": deltas, **more})
    return made


def steps(samples: list[int], deltas: list[int]) -> list[tuple[tuple[Frame, ...], int, int]]:
    return list(profile(samples, deltas).steps({}))


def test_a_sample_lasts_until_the_next_one() -> None:
    assert steps([5, 5, 6, 5], [100, 10, 20, 30]) == [((MAIN,), 30, 2), ((MAIN, READ), 30, 1), ((MAIN,), 0, 1)]


def test_what_v8_does_lies_on_what_it_interrupts() -> None:
    found = steps([6, 2, 3, 2, 6, 4, 2, 3, 1], [0, *range(1, 9)])
    assert [stack for stack, _, _ in found] == [
        (MAIN, READ),
        (MAIN, READ, GC),
        (MAIN, READ, GC, PROGRAM),
        (MAIN, READ, GC),
        (MAIN, READ),
        (),
        (GC,),
        (GC, PROGRAM),
        (),
    ]


def test_children_tell_of_their_parent_too() -> None:
    made = CpuProfile()
    nodes = [{**node(1, "main", url="app.js", line=2), "children": [2]}, node(2, "", url="/srv/app.js", line=7)]
    made.add({"nodes": nodes, "samples": [2, 2], "timeDeltas": [0, 5]})
    assert list(made.steps({})) == [((MAIN, READ), 5, 2)]


def test_the_older_layout() -> None:
    leaf = {"id": 2, "functionName": "", "url": "/srv/app.js", "lineNumber": 8, "hitCount": 1}
    head = {"id": 1, "functionName": "main", "url": "app.js", "lineNumber": 3, "hitCount": 0, "children": [leaf]}
    made = CpuProfile()
    made.add_tree(
        {
            "head": head,
            "startTime": 1,
            "endTime": 2,
            "samples": [1, 2, 2],
            "timestamps": [1_000_010, 1_000_015, 1_000_017],
        }
    )
    assert made.delay == 10
    assert list(made.steps({})) == [((MAIN,), 5, 1), ((MAIN, READ), 2, 2)]


def test_what_is_not_known_goes_on_with_the_stack_and_is_counted() -> None:
    lost: dict[str, int] = {}
    found = list(profile([5, 99, 6, 5], [0, 5, -7, 20]).steps(lost))
    assert found == [((MAIN,), 5, 1), ((MAIN,), 0, 1), ((MAIN, READ), 13, 1), ((MAIN,), 0, 1)]
    assert lost == {"samples without a stack": 1, "times before the last one": 1}


def test_a_circle_of_parents_ends() -> None:
    made = CpuProfile()
    made.add({"nodes": [node(1, "a", 2), node(2, "b", 1)], "samples": [1, 1], "timeDeltas": [0, 1]})
    ((stack, _, _),) = made.steps({})
    assert len(stack) == 10_000


@pytest.mark.parametrize(
    "data",
    [
        {"nodes": [{"id": "1", "callFrame": {}}]},
        {"nodes": [{"id": 1}]},
        {"nodes": [{"id": 1, "callFrame": {"functionName": 7}}]},
        {"nodes": [{"id": 1, "callFrame": {}, "children": [2]}]},
        {"samples": ["1"]},
        {"samples": [True]},
        {"timeDeltas": [1e300]},
        {"timeDeltas": [None]},
        {"samples": 7},
    ],
)
def test_what_is_none(data: dict[str, Any]) -> None:
    with pytest.raises((TypeError, KeyError, ValueError)):
        CpuProfile().add(data)


def event(name: str, time: int, data: Any, **more: Any) -> tuple[dict[str, Any], int]:
    return {"ph": "P", "name": name, "pid": 1, "tid": 2, "id": "0x1", "args": {"data": data}, **more}, time


def test_chunks_are_put_together_in_the_order_of_their_time() -> None:
    profiles = Profiles()
    assert not profiles
    whole = {"nodes": NODES, "samples": [5, 5], "timeDeltas": [0, 1]}
    for each in (
        event("Profile", 10, {"startTime": 1000}),
        event("ProfileChunk", 30, {"cpuProfile": {"samples": [6]}, "timeDeltas": [7]}, tid=3),
        event("ProfileChunk", 20, {"cpuProfile": {"nodes": NODES, "samples": [5]}, "timeDeltas": [2]}, tid=3),
        event("ProfileChunk", 40, None),
        event("CpuProfile", 5, {"cpuProfile": whole}, id=None, tid=9),
    ):
        profiles.add_event(*each)
    assert profiles
    (pid, tid, first), (_, other, second) = profiles.all()
    assert (pid, tid, other) == (1, 2, 9)
    assert (first.start, first.delay, list(first.steps({}))) == (1000, 2, [((MAIN,), 7, 1), ((MAIN, READ), 0, 1)])
    assert list(second.steps({})) == [((MAIN,), 1, 2)]


def test_result() -> None:
    one, other = profile([5, 4, 6, 6], [100, 10, 20, 30], startTime=0), profile([5, 5], [0, 3])
    other.start = 150
    shown = result([((("tid", 1),), one), ((("tid", 2),), other)], timeline=True)
    assert shown.samples == [
        Sample((MAIN,), (10_000, 1), (("tid", 1),)),
        Sample((MAIN, READ), (30_000, 2), (("tid", 1),)),
        Sample((MAIN,), (3_000, 2), (("tid", 2),)),
    ]
    assert shown.comments == ["idle: 20.0 µs"]
    assert shown.timeline is not None
    assert [track.spans for track in shown.timeline.tracks] == [
        [Span(0, 10_000, MAIN), Span(30_000, 60_000, MAIN), Span(30_000, 60_000, READ)],
        [Span(50_000, 53_000, MAIN)],
    ]
    assert result([((), one)], timeline=False).timeline is None
