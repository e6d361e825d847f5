from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from stallscope.converters.model import Frame, Labels
from stallscope.converters.readers.chrome.samples import Samples

MAIN, READ = Frame("main"), Frame("read")


def labels(pid: Any, tid: Any) -> Labels:
    return (("tid", tid),)


def test_stacks_of_parents_and_of_names() -> None:
    samples, lost = Samples(), Counter[str]()
    for event in ({"sf": 2, "tid": 1}, {"sf": "2", "tid": 1, "weight": "2.6"}, {"stack": ["main", ""], "tid": 1}):
        samples.add_event(event)
    samples.add_member("stackFrames", {"1": {"name": "main"}, "2": {"name": "read", "parent": "1"}})
    found = list(samples.sums(labels, lambda kind, count: lost.update({kind: count})))
    assert found == [
        ((MAIN, READ), (2, 4, 0), (("tid", 1),)),
        ((MAIN, Frame("[unknown]")), (1, 1, 0), (("tid", 1),)),
    ]
    assert samples.count == 3
    assert not +lost


def test_a_stack_lasts_until_the_threads_next_sample() -> None:
    samples = Samples()
    samples.add_member("stackFrames", {"1": {"name": "main"}, "2": {"name": "read", "parent": 1}})
    for time, thread, stack in (("5", 1, 1), (6, 2, 2), ("7.5", 1, 2), (7, 1, 1), ("11.5", 1, 1), (8, 2, 1)):
        samples.add_member("samples", {"ts": time, "tid": thread, "sf": stack})
    found = {(stack[-1].name, dict(who)["tid"]): values for stack, values, who in samples.sums(labels, lambda *_: None)}
    assert found == {
        ("main", 1): (3, 3, 2500 + 4500),
        ("read", 1): (1, 1, 0),
        ("read", 2): (1, 1, 2000),
        ("main", 2): (1, 1, 0),
    }
    assert samples.timed == samples.count == 6


@pytest.mark.parametrize("frames", [{}, {"1": 7}, {"1": {"name": "x", "parent": 1}}, {"1": {"name": "x", "parent": 2}}])
def test_broken_chains_begin_unknown_and_are_counted(frames: dict[str, Any]) -> None:
    samples, lost = Samples(), Counter[str]()
    samples.add_event({"sf": 1})
    samples.add_member("stackFrames", frames)
    ((stack, _, _),) = samples.sums(labels, lambda kind, count: lost.update({kind: count}))
    assert stack[0] == Frame("[unknown]")
    assert len(stack) <= 2
    assert +lost == {"frames without a definition": 1}


@pytest.mark.parametrize(
    "event", [{}, {"sf": True}, {"sf": 1, "weight": "x"}, {"sf": 1, "weight": -1}, {"sf": 1, "tid": []}]
)
def test_no_samples(event: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Samples().add_event(event)


def test_members_that_are_no_samples_are_counted() -> None:
    samples, lost = Samples(), Counter[str]()
    for value in (7, {"sf": [1]}, None):
        samples.add_member("samples", value)
    samples.add_member("metadata", {"x": 1})
    assert list(samples.sums(labels, lambda kind, count: lost.update({kind: count}))) == []
    assert +lost == {"samples not understood": 3}
