from __future__ import annotations

import random
from dataclasses import replace

import pytest
from slice_profiles import LOADS, kinds_of_phases, series, slices
from stallscope.converters.facts.slices import only_in, phases_of, series_of, slices_by_thread
from stallscope.converters.model.slices import ThreadSlices
from stallscope.converters.scan.over_time import WEIGHTS
from summary_profiles import SECOND

STEPS = {"io": [1.0] * 4 + [0.0] * 6, "lock": [0.0] * 4 + [1.0] * 6}


def test_threads_are_added_up_where_they_lived() -> None:
    one, other = slices({"cpu": [1, 1, 1]}, first=1), slices({"cpu": [0.5], "lock": [0.5]}, tid=2, first=3)
    both = series_of([one, other])
    assert both
    assert (both.first, both.number) == (1, 3)
    assert both.kinds == {"cpu": (SECOND, SECOND, SECOND * 3 // 2), "lock": (0, 0, SECOND // 2)}
    assert both.decisive({}) == ["cpu", "cpu", "cpu"]


def test_slices_of_different_lengths_are_not_added_up() -> None:
    assert series_of([slices({"cpu": [1]}), slices({"cpu": [1]}, tid=2, length=2 * SECOND)]) is None
    assert series_of([]) is None
    assert series_of([ThreadSlices("app", "app", 1, 1, SECOND, 0)]) is None


def test_a_slice_in_which_nobody_lived() -> None:
    both = series_of([slices({"cpu": [1]}), slices({"lock": [1]}, tid=2, first=2)])
    assert both
    assert both.decisive({}) == ["cpu", "", "lock"]


def test_the_last_slice_may_be_shorter() -> None:
    made = series({"cpu": [1, 1, 0.25]})
    assert (made.begin, made.end) == (0, 2 * SECOND + SECOND // 4)
    late = series({"cpu": [0.25, 1]}, first=3)
    assert (late.begin, late.end) == (3 * SECOND + SECOND * 3 // 4, 5 * SECOND)


def test_sleep_counts_less() -> None:
    assert series({"sleep": [0.6], "lock": [0.4]}).decisive(WEIGHTS) == ["lock"]
    assert series({"sleep": [0.7], "lock": [0.3]}).decisive(WEIGHTS) == ["sleep"]


def test_phases() -> None:
    first, second = phases_of(series(STEPS), WEIGHTS)
    assert (first.kind, first.begin, first.end, first.share) == ("io", 0, 4 * SECOND, 1.0)
    assert (second.kind, second.begin, second.end) == ("lock", 4 * SECOND, 10 * SECOND)
    assert first.place
    assert first.place.frames == LOADS


def test_a_change_within_a_slice() -> None:
    shares = {"io": [1, 1, 1, 0.3, 0, 0, 0, 0], "lock": [0, 0, 0, 0.7, 1, 1, 1, 1]}
    first, second = phases_of(series(shares), WEIGHTS)
    assert first.end == second.begin == 3 * SECOND + 300_000_000


def test_three_phases_and_four() -> None:
    def steps(*kinds: str) -> dict[str, list[float]]:
        return {kind: [float(kind == each) for each in kinds for _ in range(3)] for kind in kinds}

    assert kinds_of_phases(steps("cpu", "io", "lock")) == ["cpu", "io", "lock"]
    assert kinds_of_phases(steps("cpu", "io", "lock", "peer")) == []


def test_what_does_not_change_has_no_phases() -> None:
    assert kinds_of_phases({"io": [0.9] * 10, "cpu": [0.1] * 10}) == []
    assert kinds_of_phases({"io": [1]}) == []


def test_a_slight_change_is_none() -> None:
    """The kind with most time changes, but hardly its share."""
    shares = {"io": [0.6] * 5 + [0.4] * 5, "lock": [0.4] * 5 + [0.6] * 5}
    assert kinds_of_phases(shares) == []
    shares = {"io": [0.8] * 5 + [0.2] * 5, "lock": [0.2] * 5 + [0.8] * 5}
    assert kinds_of_phases(shares) == ["io", "lock"]


def test_noise_has_no_phases() -> None:
    """Shares at random, so that what a slice mostly has changes all the time: nearly never a phase."""
    found = 0
    for seed in range(300):
        chance = random.Random(seed)
        parts = [chance.random() for _ in range(10)]
        found += bool(kinds_of_phases({"io": parts, "lock": [1 - part for part in parts]}))
    assert found <= 9


@pytest.mark.parametrize("seed", range(10))
def test_phases_are_seen_through_noise(seed: int) -> None:
    chance = random.Random(seed)
    parts = [chance.uniform(0.75, 1) for _ in range(5)] + [chance.uniform(0, 0.25) for _ in range(5)]
    assert kinds_of_phases({"io": parts, "lock": [1 - part for part in parts]}) == ["io", "lock"]


def test_one_slice_that_differs_is_no_phase() -> None:
    assert kinds_of_phases({"io": [1, 1, 1, 1, 0, 1, 1, 1, 1, 1], "lock": [0] * 4 + [1] + [0] * 5}) == []


def test_a_single_slice_at_the_begin_is_left_out() -> None:
    shares = {"cpu": [1] + [0] * 9, "io": [0] + [1] * 4 + [0] * 5, "lock": [0] * 5 + [1] * 5}
    first, second = phases_of(series(shares), WEIGHTS)
    assert (first.kind, first.begin, second.kind) == ("io", SECOND, "lock")


def test_only_in_a_part() -> None:
    made = series(STEPS)
    assert only_in(made, {"lock"}) == (4 * SECOND, 10 * SECOND)
    assert only_in(made, {"io"}) == (0, 4 * SECOND)
    assert only_in(made, {"io", "lock"}) is None
    assert only_in(made, {"peer"}) is None


def test_the_part_is_found_within_slices() -> None:
    shares = {"io": [0, 0, 0.4, 1, 1, 0.7, 0, 0, 0, 0], "cpu": [1, 1, 0.6, 0, 0, 0.3, 1, 1, 1, 1]}
    assert only_in(series(shares), {"io"}) == (2_600_000_000, 5_700_000_000)


@pytest.mark.parametrize("parts", [[0.5] * 10, [0.9] * 8 + [0.1] * 2, [1, 0] * 5, [0.3] * 5 + [0.2] * 5])
def test_what_holds_for_most_of_the_trace_holds_in_no_part(parts: list[float]) -> None:
    assert only_in(series({"io": parts, "cpu": [1 - part for part in parts]}), {"io"}) is None


def test_a_thread_that_lives_for_a_part_does_the_same_as_long_as_it_lives() -> None:
    assert only_in(series({"io": [1] * 4}, first=6), {"io"}) is None


def test_a_thread_with_several_slices_has_none() -> None:
    one, other = slices({"cpu": [1]}), slices({"cpu": [1]}, tid=2)
    assert slices_by_thread([one, other, replace(one, first=4)]) == {(1, 2): other}
