"""Waits for events of threads for which others wait."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.wait_kinds import EVENTS, SLEEP
from stallscope.converters.model import Frame, Profile, Stack, ValueType
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from stallscope.converters.summary.judging import read
from summary_profiles import EPOLL, EXE, LIBC, SECOND, Tracee, empty, kernel, user
from verdict_profiles import FSYNC

SERVES = (*user(EXE, "main", "serve"), *EPOLL)
ASKS = (*user(EXE, "main", "ask"), *user(LIBC, "recv"), *kernel("__x64_sys_recvfrom", "sk_wait_data"))


def profile_of(timer: int, client: int, *, asks: Stack = ASKS, waits: int = 100, pid: int = 2) -> Profile:
    """A server, of whose waits for events timers end ``timer`` tenths of a second, the client the rest of ten seconds;
    and a client that waits ``client`` tenths for it. ``waits``: number of the server's."""
    profile = empty()
    profile.value_types = [*profile.value_types, ValueType("blocked", "nanoseconds")]
    Tracee(profile, 1, "server", 1, "server").wait(SERVES, "interruptible", 10 * SECOND, waits)
    Tracee(profile, pid, "client", 2, "client").wait(asks, "interruptible", client * SECOND // 10, 9).run(
        (100 - client) * SECOND // 10
    )
    profile.samples = [each._replace(values=(*each.values, 0)) for each in profile.samples]
    served, asked, *_ = [each for each in profile.samples if each.label("state") == "interruptible"]
    ends = ((served, timer, "[timer]"), (served, 100 - timer, f"client-{pid}"), (asked, client, "server-1"))
    for sample, tenths, waker in ends:
        tid = 1 if waker == "server-1" else 2
        named = (*sample.labels, ("waker", waker), *((("waker_tid", tid),) if waker[0] != "[" else ()))
        stack = (*sample.stack, SEPARATOR, Frame("send", WAKER), Frame(waker, WAKER))
        values = (*[0] * (len(sample.values) - 1), tenths * SECOND // 10)
        profile.samples.append(sample._replace(stack=stack, values=values, labels=tuple(sorted(named))))
    return profile


def kind(profile: Profile) -> str:
    ((place, _),) = read(profile).facts.waits_of((1, 1)).items()
    return place.kind


@pytest.mark.parametrize(("timer", "client"), [(96, 51), (100, 100)])
def test_timers_of_who_is_waited_for_are_sleeps(timer: int, client: int) -> None:
    assert kind(profile_of(timer, client)) == SLEEP


@pytest.mark.parametrize(
    "profile",
    [
        profile_of(94, 80),  # others end much of it: it waits for work
        profile_of(100, 49),  # hardly anybody waits for it
        profile_of(100, 90, waits=2),
        profile_of(100, 90, asks=FSYNC),  # the other one waits for a disk
        profile_of(100, 90, pid=1),  # a thread of its own
    ],
)
def test_others_wait_for_events(profile: Profile) -> None:
    assert kind(profile) == EVENTS
