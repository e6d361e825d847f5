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
        ("main", "load", "read"): (7 * SECOND + 2, 90),
        ("main", "check", "read"): (3 * SECOND + 1, 31),
        ("main", "save", "write"): (SECOND, 10),
    }
    assert sum(time for time, _ in found.values()) == 11 * SECOND + 3
    assert sum(number for _, number in found.values()) == 131


def test_without_others_they_stay() -> None:
    facts = facts_of(profile_of((WRITE, SECOND, 10), (SHED, 8 * SECOND, 80)))
    assert [is_shed(place) for place in facts.waits_of((1, 1))] == [False, True]
