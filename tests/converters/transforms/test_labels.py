from __future__ import annotations

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Labels, Profile, Sample, ValueType
from stallscope.converters.transforms import merge_processes
from stallscope.converters.transforms.labels import Without, check_roots, root_name


def test_merged_processes_keep_their_names_and_times() -> None:
    stack = (Frame("main"), Frame("topk"))
    samples = [
        Sample(stack, (10 * pid, pid), (("pid", pid), ("process", "demo"), ("state", "other"), ("tid", pid + 1)))
        for pid in (1, 2)
    ]
    kinds = [ValueType("off-cpu", "nanoseconds"), ValueType("longest", "nanoseconds", "max")]
    profile = Profile(kinds, samples, title="of 2 × demo", lost={"stacks": 3})
    merged = merge_processes(profile)
    assert merged.samples == [Sample(stack, (30, 2), (("process", "demo"), ("state", "other")))]
    assert (merged.title, merged.lost) == (profile.title, profile.lost)
    assert profile.samples[0].label("pid") == 1  # the profile that was given stays as it was


def test_without_forgets_the_keys_and_keeps_the_order() -> None:
    assert Without(["b", "z"])[("a", 1), ("b", 2), ("c", 3)] == (("a", 1), ("c", 3))


@pytest.mark.parametrize(
    ("labels", "key", "name"),
    [
        ((("pid", 7), ("process", "python3")), "process", "python3-7"),
        ((("process", "python3"),), "process", "python3"),
        ((("pid", 0),), "process", "[unknown]-0"),
        ((("thread", "w"), ("tid", 8)), "thread", "w-8"),
        ((("pid", 7), ("state", "D")), "state", "D"),
        ((("pid", 7),), "pid", "7"),
        ((("pid", 7),), "state", ""),
        ((("thread", "stream 7 "), ("tid", 7)), "thread", "stream 7"),
        ((("thread", "thread 3113936 (python3.8)"), ("tid", 3113936)), "thread", "thread 3113936 (python3.8)"),
        ((("pid", 3), ("process", "python3.8 GPU 3")), "process", "python3.8 GPU 3"),
        ((("pid", 3), ("process", "python3")), "process", "python3-3"),
        ((("thread", "worker-7"), ("tid", 7)), "thread", "worker-7-7"),
        ((("thread", "7 of 8"), ("tid", 7)), "thread", "7 of 8-7"),
        ((("tid", -1029147072),), "thread", "[unknown] -1029147072"),
        ((), "process", ""),
    ],
)
def test_what_stands_under_the_stacks(labels: Labels, key: str, name: str) -> None:
    assert root_name(labels, key) == name


def test_a_root_that_is_nowhere_is_an_error_that_says_what_is() -> None:
    profile = Profile([], [Sample((), (), (("pid", 1),)), Sample((), (), (("state", "D"),))])
    check_roots(profile, ["state", "process", "pid"])
    with pytest.raises(StallscopeError) as caught:
        check_roots(profile, ["state", "thread"])
    assert "'thread'" in caught.value.cause
    assert caught.value.remedy == "choose among: pid, state"
    with pytest.raises(StallscopeError, match="no labels"):
        check_roots(Profile([], [Sample((), ())]), ["state"])
