from __future__ import annotations

import pytest
from compare_profiles import run
from stallscope.converters.model import Profile
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.scan.compare.intervals import Key, intervals_of
from summary_profiles import MS, SECOND


def test_rates_of_all_threads_are_added_up() -> None:
    made = intervals_of(run(100, slices=2, pids=(7, 8)))
    assert made.number == 2
    assert made.rates[Key("train", None, "lock", ("step", "train"), "futex_wait")] == pytest.approx([0.206, 0.196])
    assert made.rates[Key("train", None, "cpu")] == pytest.approx([1.794, 1.804])


def test_a_thread_that_begins_later_has_0_before() -> None:
    profile = run(100, slices=3)
    profile.slices.append(ThreadSlices("late", "late", 9, 9, SECOND, 2, [SliceSpent("cpu", (SECOND,))]))
    assert intervals_of(profile).rates[Key("late", None, "cpu")] == [0, 0, 1]


def test_ranks_are_apart() -> None:
    profile = run(100, slices=2, pids=(7, 8))
    profile.processes = [ProcessTimes(pid, "train", ranks={"rank": str(i)}) for i, pid in enumerate((7, 8))]
    assert {key.rank for key in intervals_of(profile).rates} == {0, 1}


@pytest.mark.parametrize(("rest", "number"), [(490, 2), (510, 3)])
def test_a_short_last_slice_is_left_out(rest: int, number: int) -> None:
    profile = Profile([], duration_ns=2 * SECOND + rest * MS)
    spent = SliceSpent("cpu", (SECOND, SECOND, rest * MS))
    profile.slices = [ThreadSlices("a", "a", 1, 1, SECOND, 0, [spent])]
    assert intervals_of(profile).rates[Key("a", None, "cpu")] == pytest.approx([1.0] * number)


def test_no_slices() -> None:
    assert intervals_of(Profile([], duration_ns=SECOND)).number == 0


def test_lines_of_a_file_are_no_part_of_a_place() -> None:
    one, other = (intervals_of(run(100, place=(f"train.py:{line} step", "futex"))) for line in (41, 52))
    assert one == other
    assert Key("train", None, "lock", ("step", "futex"), "futex_wait") in one.rates
