from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from stallscope.converters.model import Frame, Labels
from stallscope.converters.readers.chrome_samples import Samples

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
        ((MAIN, READ), (2, 4), (("tid", 1),)),
        ((MAIN, Frame("[unknown]")), (1, 1), (("tid", 1),)),
    ]
    assert samples.count == 3
    assert not +lost


@pytest.mark.parametrize("frames", [{}, {"1": 7}, {"1": {"name": "x", "parent": 1}}, {"1": {"name": "x", "parent": 2}}])
def test_broken_chains_begin_unknown_and_are_counted(frames: dict[str, Any]) -> None:
    samples, lost = Samples(), Counter[str]()
    samples.add_event({"sf": 1})
    samples.add_member("stackFrames", frames)
    ((stack, _, _),) = samples.sums(labels, lambda kind, count: lost.update({kind: count}))
    assert stack[0] == Frame("[unknown]")
    assert len(stack) <= 2
    assert +lost == {"frames that were not defined": 1}


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
