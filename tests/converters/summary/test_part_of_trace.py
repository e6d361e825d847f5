from __future__ import annotations

from dataclasses import replace

import pytest
from slice_profiles import slices, steady, two_phases
from stallscope.converters.model import Profile
from stallscope.converters.summary.summarize import summarize
from summary_profiles import SECOND, Tracee, empty
from verdict_profiles import LOCK


def first_sentence(profile: Profile) -> str:
    return summarize(profile).answer[0]


def waits_from(second: int, until: int = 10) -> Profile:
    """A thread runs, and waits for a lock from one second on."""
    profile = empty()
    waits = until - second
    Tracee(profile, 1, "app", 1, "app").wait(LOCK, "interruptible", waits * SECOND, 500).run((10 - waits) * SECOND)
    inside = [float(second <= i < until) for i in range(10)]
    profile.slices = [slices({"lock": inside, "cpu": [1 - part for part in inside]})]
    return profile


@pytest.mark.parametrize(
    ("profile", "when"),
    [
        (waits_from(4), "from second 4.0 on"),
        (waits_from(0, 6), "until second 6.0"),
        (waits_from(2, 8), "from second 2.0 to second 8.0"),
    ],
)
def test_a_verdict_that_holds_in_a_part(profile: Profile, when: str) -> None:
    plain = first_sentence(replace(profile, slices=[]))
    assert first_sentence(profile) == f"Nearly only {when}: {plain}"


def test_a_verdict_that_holds_always() -> None:
    assert first_sentence(steady()) == first_sentence(replace(steady(), slices=[]))


def test_a_verdict_that_holds_for_most_of_the_trace() -> None:
    assert not first_sentence(waits_from(2)).startswith("Nearly only")


def test_running_threads() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(4 * SECOND).times.wall = 10 * SECOND
    profile.slices = [slices({"cpu": [0.9] * 4 + [0] * 6, "cores": [0.1] * 4 + [0] * 6, "events": [0] * 4 + [1] * 6})]
    assert first_sentence(profile).startswith("Nearly only until second 4.0: ")


def test_first_of_two_phases() -> None:
    assert first_sentence(two_phases()).startswith("Nearly only from second 4.0 on: 60.0 % of")
