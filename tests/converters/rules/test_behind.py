"""Threads of a client that wait for each other, while one of them talks to a server."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Module, Profile, Stack, ThreadTimes
from stallscope.converters.model.wait_objects import LABEL, PIPE, WRITES, ObjectEnd, WaitObject
from stallscope.converters.rules.causes import cause_of
from stallscope.converters.rules.finding import Finding
from stallscope.converters.rules.for_others import effects
from summary_profiles import LIBC, MS, SECOND, facts_of, kernel, user
from wait_graphs import Link, chained, profile_of, with_extremes

CLIENT, SERVICE = Module("/opt/app/client"), Module("/opt/app/server")
CALL = (*user(CLIENT, "main", "call"), *user(LIBC, "pthread_cond_wait"), *kernel("futex_wait"))
LOOP = (*user(CLIENT, "io_loop"), *user(LIBC, "epoll_wait"), *kernel("do_epoll_wait", "ep_poll"))
NAP = (*user(SERVICE, "serve", "look_up"), *user(LIBC, "clock_nanosleep"), *kernel("do_nanosleep"))
IO: Link = ("client-1", 2, "io")
SERVER: Link = ("server-5", 6, "worker")
OTHER: Link = ("other-8", 8, "other")
TIMER: Link = ("[timer]", 0, "")


def asked(*ends: tuple[Link, int], called_by: Link = IO) -> Profile:
    """A client whose main thread waits for its thread for input and output, and a server whose thread sleeps; of 1 s.
    ``ends``: who ends the waits of the thread for input and output, and for how many ms."""
    waits: list[tuple[int, int, int, Link, Stack]] = [
        (1, 1, 960, called_by, CALL),
        *((1, 2, ms, end, LOOP) for end, ms in ends),
        (5, 6, 950, TIMER, NAP),
        (8, 8, 950, TIMER, NAP),
    ]
    names = {1: "client", 5: "server", 8: "other"}
    profile = with_extremes(
        profile_of(*(chained(pid, tid, ms * MS, end, process=names[pid], own=own) for pid, tid, ms, end, own in waits))
    )
    for pid, tid, thread in ((1, 1, "client"), (1, 2, "io"), (5, 6, "worker"), (8, 8, "other")):
        blocked = sum(ms for _, of, ms, _, _ in waits if of == tid) * MS
        profile.threads.append(
            ThreadTimes(pid, names[pid], tid, thread, SECOND, SECOND - blocked, 0, {"interruptible": blocked})
        )
    return profile


def cause(profile: Profile) -> Finding | None:
    facts = facts_of(profile)
    effect = next(each for each in effects(facts) if (1, 1) in each.threads)
    return cause_of(facts, effect)


def test_the_server_of_a_client_with_a_thread_for_input_and_output() -> None:
    told = cause(asked((SERVER, 900), (TIMER, 50)))
    assert told
    assert (told.kind, told.threads) == ("sleep", ((5, 6),))


@pytest.mark.parametrize(
    "profile",
    [
        asked((SERVER, 400), (TIMER, 550)),  # it ends less than half of the time
        asked((SERVER, 600), (OTHER, 350)),  # another one ends much, too
        asked((SERVER, 900), (TIMER, 50), called_by=TIMER),  # the thread for input and output ends no wait
    ],
)
def test_who_does_not_end_most_is_not_told(profile: Profile) -> None:
    assert cause(profile) is None


def test_without_wakers_nothing_is_known() -> None:
    profile = asked((SERVER, 900), (TIMER, 50))
    profile.samples = [
        sample._replace(
            labels=tuple(label for label in sample.labels if "waker" not in label[0]),
            stack=tuple(frame for frame in sample.stack if frame.kind in ("native", "kernel")),
        )
        for sample in profile.samples
    ]
    assert cause(profile) is None


def test_a_thread_of_its_own_that_works_is_told_first() -> None:
    profile = asked((SERVER, 900))
    own = [each for each in profile.threads if each.tid == 2]
    own[0].blocked["interruptible"] = 0
    own[0].on_cpu = SECOND
    profile.samples = [each for each in profile.samples if each.label("tid") != 2]
    told = cause(profile)
    assert told and told.threads == ((1, 2),)


RECEIVE = (*user(CLIENT, "main", "fetch"), *user(LIBC, "recv"), *kernel("sk_wait_data"))
SERVE = (*user(SERVICE, "serve"), *user(LIBC, "epoll_wait"), *kernel("do_epoll_wait", "ep_poll"))
PROXY: Link = ("proxy-3", 3, "proxy")
CALLER: Link = ("client-1", 1, "client")


def through_a_proxy(*ends: tuple[Link, int], known: bool = True, ended: tuple[tuple[Link, int], ...] = ()) -> Profile:
    """A client that waits for a proxy, whose waits others end for so many ms of 1 s; and a server that sleeps.
    ``ended``: who ends the client's waits, if not only the proxy's main thread."""
    waits: list[tuple[int, int, int, Link, Stack]] = [
        *((1, 1, ms, end, RECEIVE) for end, ms in ended or ((PROXY, 960),)),
        *((3, 3, ms, end, SERVE) for end, ms in ends),
        (5, 6, 950, TIMER, NAP),
        (8, 8, 950, TIMER, NAP),
    ]
    names = {1: "client", 3: "proxy", 5: "server", 8: "other"}
    profile = with_extremes(
        profile_of(*(chained(pid, tid, ms * MS, end, process=names[pid], own=own) for pid, tid, ms, end, own in waits))
    )
    for pid, tid in ((1, 1), (3, 3), (5, 6), (8, 8)):
        blocked = sum(ms for _, of, ms, _, _ in waits if of == tid) * MS
        profile.threads.append(
            ThreadTimes(pid, names[pid], tid, names[pid], SECOND, SECOND - blocked, 0, {"interruptible": blocked})
        )
    profile.objects = [WaitObject(3, PIPE, does=WRITES, ends=[ObjectEnd("proxy", 3)] if known else [])]
    profile.samples = [
        sample._replace(labels=tuple(sorted((*sample.labels, (LABEL, 3))))) if sample.label("pid") == 1 else sample
        for sample in profile.samples
    ]
    return profile


def test_the_server_behind_a_proxy() -> None:
    told = cause(through_a_proxy((SERVER, 700), (CALLER, 250)))
    assert told
    assert (told.kind, told.threads, told.asked_by) == ("sleep", ((5, 6),), {3})


@pytest.mark.parametrize(
    "profile",
    [
        through_a_proxy((SERVER, 400), (CALLER, 550)),  # it waits for its client
        through_a_proxy((SERVER, 500), (OTHER, 450)),  # for two servers
        through_a_proxy((SERVER, 700), (CALLER, 250), known=False),
    ],
)
def test_a_proxy_that_waits_for_others(profile: Profile) -> None:
    told = cause(profile)
    assert told is None or not told.asked_by


UPKEEP: Link = ("proxy-3", 4, "upkeep")


@pytest.mark.parametrize(
    ("ended", "ends", "told"),
    [
        (((PROXY, 960),), ((CALLER, 950),), False),
        (((PROXY, 960),), ((UPKEEP, 950),), True),  # who answers waits for it
        (((UPKEEP, 960),), ((CALLER, 950),), True),  # it answers
        (((PROXY, 400), (TIMER, 560)), ((CALLER, 950),), True),  # of most waits it is not known who has ended them
    ],
)
def test_who_has_nothing_to_do_with_the_answer_is_no_cause(
    ended: tuple[tuple[Link, int], ...], ends: tuple[tuple[Link, int], ...], told: bool
) -> None:
    """A thread of the server that looks after something sleeps all the time."""
    profile = through_a_proxy(*ends, ended=ended)
    sample = chained(3, 4, 950 * MS, TIMER, process="proxy", own=NAP)
    profile.samples.append(sample._replace(values=(*sample.values, 1, sample.values[0])))
    profile.threads.append(ThreadTimes(3, "proxy", 4, "upkeep", SECOND, 50 * MS, 0, {"interruptible": 950 * MS}))
    found = cause(profile)
    assert (found is not None and found.threads == ((3, 4),)) == told


def test_threads_that_are_made_for_each_request() -> None:
    """Each ends few waits; together they end most."""
    links: list[Link] = [("server-5", 60 + i, "worker") for i in range(9)]
    profile = through_a_proxy(*((link, 90) for link in links), (CALLER, 140))
    samples = [chained(5, 60 + i, 100 * MS, TIMER, process="server", own=NAP) for i in range(9)]
    profile.samples += [sample._replace(values=(*sample.values, 1, sample.values[0])) for sample in samples]
    profile.threads += [
        ThreadTimes(5, "server", 60 + i, "worker", 110 * MS, 10 * MS, 0, {"interruptible": 100 * MS}) for i in range(9)
    ]
    told = cause(profile)
    assert told and len(told.threads) == 8  # seven have less than eight tenths of it
