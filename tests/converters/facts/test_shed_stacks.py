from __future__ import annotations

from stallscope.converters.facts.shed_stacks import is_shed
from stallscope.converters.model import Frame, Profile, Stack
from stallscope.converters.model.losses import NOT_TAKEN
from summary_profiles import EXE, LIBC, SECOND, Tracee, empty, facts_of, kernel, user

KERNEL = kernel("__x64_sys_read", "pipe_read")
LOAD = (*user(EXE, "main", "load"), *user(LIBC, "read"), *KERNEL)
CHECK = (*user(EXE, "main", "check"), *user(LIBC, "read"), *KERNEL)
WRITE = (*user(EXE, "main", "save"), *user(LIBC, "write"), *kernel("__x64_sys_write", "pipe_write"))
SHED: Stack = (Frame(NOT_TAKEN, "other"), *KERNEL)


def profile_of(*waits: tuple[Stack, int, int]) -> Profile:
    profile = empty()
    tracee = Tracee(profile, 1, "app", 1, "app")
    for stack, time, number in waits:
        tracee.wait(stack, "interruptible", time, number)
    return profile


def of(profile: Profile) -> dict[tuple[str, ...], tuple[int, int]]:
    return {place.site.frames: (total.time, total.count) for place, total in facts_of(profile).waits_of((1, 1)).items()}


def test_they_are_told_of_places_with_stacks_in_proportion_to_their_waits() -> None:
    found = of(profile_of((LOAD, SECOND, 30), (CHECK, SECOND, 10), (WRITE, SECOND, 10), (SHED, 8 * SECOND + 3, 81)))
    assert found == {
        ("main", "load", "read"): (5 * SECOND + 1, 90),
        ("main", "check", "read"): (5 * SECOND + 2, 31),
        ("main", "save", "write"): (SECOND, 10),
    }
    assert sum(time for time, _ in found.values()) == 11 * SECOND + 3
    assert sum(number for _, number in found.values()) == 131


def test_many_short_waits_do_not_get_the_time_of_few_long_ones() -> None:
    """Waits of both, of which one in 16 has its stack: 800 of 5 µs, and 160 of 40 ms."""
    profile = profile_of((CHECK, 50 * 5_000, 50), (LOAD, 10 * 40_000_000, 10), (SHED, 6 * SECOND, 900))
    waits = {place.site.frames[1]: total for place, total in facts_of(profile).waits_of((1, 1)).items()}
    assert (waits["load"].count, waits["check"].count) == (160, 800)
    assert waits["check"].time < SECOND // 100
    assert waits["load"].time > 6 * SECOND
    assert waits["check"].max < waits["load"].max, "the longest one is one of those that are long"


def test_without_others_they_stay() -> None:
    facts = facts_of(profile_of((WRITE, SECOND, 10), (SHED, 8 * SECOND, 80)))
    assert [is_shed(place) for place in facts.waits_of((1, 1))] == [False, True]
