from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.states import RUNNING
from stallscope.converters.scan.compare.comparing import compare
from summary_profiles import SECOND


def running(name: str, ns: int, line: int = 1, script: str = "") -> Profile:
    """A process that runs in a function of Python, which has the kernel do something."""
    profile = Profile([ValueType("wall", "nanoseconds")], duration_ns=10 * SECOND)
    frames = (Frame("main"), Frame(name, "python", file="train.py", line=line), Frame("do_syscall_64", "kernel"))
    labels = (("pid", 7), ("process", "python"), ("state", RUNNING), ("tid", 7))
    profile.samples = [Sample(frames, (ns,), labels), Sample(frames, (ns,), (*labels[:2], ("state", "interruptible")))]
    profile.processes = [ProcessTimes(7, "python", script=script)] if script else []
    return profile


def test_functions_that_run() -> None:
    """Leaves out waits, and frames of the kernel; tells what grows and what shrinks, the most first."""
    made = compare([running("step", SECOND)], [running("step", 4 * SECOND, line=9)])
    (moved,) = made.functions
    assert moved[:3] == ("python", None, "step")
    assert (moved.before, moved.after, moved.difference) == pytest.approx((0.1, 0.4, 0.3))
    both = compare([running("old", SECOND)], [running("new", 4 * SECOND)]).functions
    assert [(each.name, round(each.difference, 6)) for each in both] == [("new", 0.4), ("old", -0.1)]
    assert not compare([running("step", SECOND)], [running("step", SECOND)]).functions


def test_functions_of_runs_that_overlap_are_left_out() -> None:
    """One run of three has as much as one of the other side."""
    before = [running("step", ns * SECOND) for ns in (1, 1, 3)]
    assert compare(before, [running("step", ns * SECOND) for ns in (4, 5, 6)]).functions
    assert not compare(before, [running("step", ns * SECOND) for ns in (3, 5, 6)]).functions


def test_several_runs_are_no_longer_than_one() -> None:
    assert not compare([running("step", SECOND)], [running("step", SECOND)] * 3).functions


def test_scripts_are_told_apart() -> None:
    made = compare([running("f", SECOND, script="a.py")], [running("f", SECOND, script="b.py")])
    assert {each.process for each in made.functions} == {"python a.py", "python b.py"}


def calling(total: int, unfinished: int = 0) -> Profile:
    profile = Profile([ValueType("wall", "nanoseconds")], duration_ns=10 * SECOND)
    profile.calls = [
        CallTimes("ncclAllReduce", "", pid, "train", 10, total, 1, total, open_time=unfinished) for pid in (7, 8)
    ]
    profile.processes = [ProcessTimes(pid, "train", ranks={"rank": str(pid - 7)}) for pid in (7, 8)]
    return profile


def test_calls() -> None:
    """Finished and unfinished ones, by rank."""
    made = compare([calling(SECOND)], [calling(2 * SECOND, unfinished=SECOND)])
    assert [each[:3] for each in made.calls] == [("train", 0, "ncclAllReduce"), ("train", 1, "ncclAllReduce")]
    assert [each.before for each in made.calls] == pytest.approx([0.1, 0.1])
    assert [each.after for each in made.calls] == pytest.approx([0.3, 0.3])
    assert not compare([calling(SECOND)], [calling(SECOND)]).calls
