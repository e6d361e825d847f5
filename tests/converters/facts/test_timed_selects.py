from __future__ import annotations

import pytest
from stallscope.converters.facts.wait_kinds import EVENTS as FOR_EVENTS
from stallscope.converters.facts.wait_kinds import SLEEP
from stallscope.converters.model import Frame, Profile, Stack, ValueType
from stallscope.converters.model.wait_objects import EVENTS, LABEL, WaitObject
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from summary_profiles import EPOLL, EXE, LIBC, SECOND, Tracee, empty, facts_of, kernel, user

SELECT = (*user(EXE, "main", "limit"), *user(LIBC, "select"), *kernel("__x64_sys_select", "do_select"))
LOOP = (*user(EXE, "main", "loop"), *EPOLL)


def profile_of(stack: Stack, ended_by: dict[str, int], waits: int = 100, on: int = 0) -> Profile:
    """Waits in one place of a trace that knows what waits are on, and ns of them by who ended them."""
    profile = empty()
    profile.value_types = [*profile.value_types, ValueType("blocked", "nanoseconds")]
    Tracee(profile, 1, "app", 1, "app").wait(stack, "interruptible", sum(ended_by.values()), waits)
    (first,) = profile.samples
    labels = tuple(sorted((*first.labels, *(((LABEL, on),) if on else ()))))
    profile.samples = [first._replace(values=(*first.values, 0), labels=labels)]
    for waker, time in ended_by.items():
        named = tuple(sorted((*labels, ("waker", waker))))
        ended = (*stack, SEPARATOR, Frame("send", WAKER), Frame(waker, WAKER))
        profile.samples.append(first._replace(stack=ended, values=(0, 0, 0, 0, time), labels=named))
    profile.objects = [WaitObject(5, EVENTS)]
    return profile


def kind(profile: Profile) -> str:
    ((place, _),) = facts_of(profile).waits_of((1, 1)).items()
    return place.kind


def test_select_for_nothing_is_a_sleep() -> None:
    assert kind(profile_of(SELECT, {"[timer]": 99 * SECOND // 10, "app-7": SECOND // 10})) == SLEEP


@pytest.mark.parametrize(
    "profile",
    [
        profile_of(SELECT, {"[timer]": 10 * SECOND}, on=5),  # it is on descriptors
        profile_of(SELECT, {"[timer]": 9 * SECOND, "app-7": SECOND}),  # somebody ends it
        profile_of(SELECT, {"[still waiting]": 10 * SECOND}),
        profile_of(SELECT, {"[timer]": 10 * SECOND}, waits=2),
        profile_of(LOOP, {"[timer]": 10 * SECOND}),  # epoll always has descriptors
    ],
)
def test_others_are_none(profile: Profile) -> None:
    assert kind(profile) == FOR_EVENTS


def test_a_trace_that_does_not_know_what_waits_are_on() -> None:
    profile = profile_of(SELECT, {"[timer]": 10 * SECOND})
    profile.objects = []
    assert kind(profile) == FOR_EVENTS
