"""One sentence on who makes others wait."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from stallscope.converters.model import Frame, Module, Profile, ThreadTimes
from stallscope.converters.model.waits_for import THREAD, Node, waits_for
from stallscope.converters.phrases.ends_with import ends_with
from stallscope.converters.rules.ends_with import Blame, EndsWith
from summary_profiles import EPOLL, MS, SECOND
from wait_graphs import APP, Link, chained, profile_of

HOLDER: Link = ("dcgm-exporter-812", 813, "collector")
TIMER: Link = ("[timer]", 0, "")
NETWORK: Link = ("[softirq NET_RX]", 0, "")


def ranks(ms: int, *chain: Link, number: int = 8, other: int = 5, sleeps: int = 39) -> Profile:
    """Ranks of which each waits ``ms`` for this chain, ``other`` for the network, and ``sleeps`` for its own timer."""
    profile = profile_of()
    for pid in range(20, 20 + number):
        profile.samples.append(chained(pid, pid, ms * MS, *chain, process=f"rank-{pid}"))
        profile.samples.append(chained(pid, pid, sleeps * MS, TIMER, process=f"rank-{pid}"))
        profile.samples.append(chained(pid, pid, other * MS, NETWORK, process=f"rank-{pid}"))
        blocked = {"interruptible": (ms + other + sleeps) * MS}
        profile.threads.append(ThreadTimes(pid, f"rank-{pid}", pid, "rank", SECOND, 0, 0, blocked))
    return profile


def sentence(profile: Profile, idle: Collection[Node] = ()) -> str:
    found = told(profile, idle)
    return ends_with(found, profile.duration_ns) if found else ""


def told(profile: Profile, idle: Collection[Node] = ()) -> EndsWith | None:
    for verdict in Blame(waits_for(profile), set(idle), profile).find():
        assert isinstance(verdict.detail, EndsWith)
        return verdict.detail
    return None


def test_a_neighbour_that_is_not_traced() -> None:
    assert sentence(ranks(61, HOLDER)) == (
        "92.4 % of what the 8 processes rank-* wait for others (6.6 % of their time) ends with dcgm-exporter (pid "
        "812, not traced), in write_dcgm-exporter-812: 488 ms each second, all together."
    )


def test_whom_it_would_help_to_trace_and_whose_path() -> None:
    profile = ranks(61, HOLDER)
    profile.samples.append(chained(22, 22, MS, HOLDER, process="rank-22"))
    found = told(profile)
    assert found
    assert (found.untraced, found.victim) == ((812,), 22)
    profile = ranks(61, ("rank-20-20", 20, "rank"))
    found = told(profile)
    assert found and found.untraced == ()


def test_own_timers_are_no_waits_for_others() -> None:
    """Own timers do not count, however long they are; and if waits for others are a small part of the time, nobody is
    blamed for them."""
    assert sentence(ranks(60, HOLDER, sleeps=900)).startswith("92.3 % of what the 8 processes rank-* wait for others")
    assert sentence(ranks(30, HOLDER, sleeps=900, other=0)) == ""


def test_a_lock_that_is_asked_for_again() -> None:
    """The lock may be one as Python's: threads wait for it for 5 ms at a time, until their own timer ends that."""
    profile = ranks(60, HOLDER, other=0, sleeps=0)
    own = (Frame("main"), Frame("take_gil", module=Module("/usr/bin/python3.11")), Frame("futex_wait", "kernel"))
    profile.samples += [chained(pid, pid, 20 * MS, TIMER, own=own, process=f"rank-{pid}") for pid in range(20, 28)]
    assert sentence(profile).startswith("75.0 % of what the 8 processes rank-* wait for others (8.0 % of their time)")


def test_through_another_rank() -> None:
    """The first waker in the chain is named, whoever woke them."""
    between: Link = ("rank-20-20", 20, "rank")
    assert "ends with dcgm-exporter (pid 812, not traced)" in sentence(ranks(61, between, HOLDER))


def test_a_disk() -> None:
    assert "ends with [interrupt nvme0q1]: 488 ms" in sentence(ranks(61, ("[interrupt nvme0q1]", 0, "")))


def test_a_thread_of_the_same_process() -> None:
    profile = ranks(61, ("rank-20-20", 21, "loader"), number=1)
    assert sentence(profile).startswith(
        "92.4 % of what the main thread of rank-20 waits for others (6.6 % of its time) ends with its own thread "
    )
    assert "loader (tid 21), in write_rank-20-20: 61.0 ms each second." in sentence(profile)


def test_one_of_the_ranks() -> None:
    assert "ends with rank-20 (pid 20), in" in sentence(ranks(61, ("rank-20-20", 20, "rank")))


@pytest.mark.parametrize(
    "profile",
    [
        ranks(29, HOLDER, other=71, sleeps=0),
        ranks(30, HOLDER),
        ranks(61, TIMER),
        ranks(61, ("[still waiting]", 0, "")),
        ranks(61, NETWORK),
        profile_of(*(chained(20, tid, 61 * MS, ("rank-20-20", 20, "rank")) for tid in (21, 22))),
    ],
    ids=["little of the wait", "little of the time", "timer", "nobody", "network", "work"],
)
def test_nobody_is_blamed(profile: Profile) -> None:
    if not profile.threads:
        profile.threads = [ThreadTimes(20, "rank-20", tid, "w", SECOND, 0, 0, {}) for tid in (21, 22)]
    if profile.samples[0].values[0] == 30 * MS:
        for times in profile.threads:
            times.wall = 100 * SECOND
    assert sentence(profile) == ""


def test_idle_threads_are_no_victims() -> None:
    profile = ranks(61, HOLDER)
    assert sentence(profile, {Node(THREAD, pid, pid) for pid in range(20, 28)}) == ""


def served(ms: int, *chain: Link, asks: int) -> Profile:
    """A server that waits ``ms`` for events that this chain ends, and 50 ms for a backend; its client waits ``asks`` ms
    for it."""
    profile = profile_of(
        chained(20, 20, ms * MS, *chain, process="server", own=(Frame("main"), *EPOLL)),
        chained(20, 20, 50 * MS, ("backend-9", 9, "backend"), process="server"),
        chained(30, 30, asks * MS, ("server-20", 20, "server"), process="client"),
    )
    for pid, process, time in ((20, "server", ms + 50), (30, "client", asks)):
        profile.threads.append(ThreadTimes(pid, process, pid, process, SECOND, 0, 0, {"interruptible": time * MS}))
    return profile


CLIENT: Link = ("client-30", 30, "client")


def blamed(profile: Profile, loops: Collection[Node] = ()) -> dict[tuple[str, str], int]:
    """Time of the waits by who waits, and for whom."""
    blame = Blame(waits_for(profile), set(), profile, frozenset(loops))
    return {(case.group.process, case.culprit.name): case.time for case in blame._cases}


def test_waits_for_events_that_clients_end_are_for_work() -> None:
    assert blamed(served(400, CLIENT, asks=500)) == {("server", "backend"): 50 * MS, ("client", "server"): 500 * MS}


@pytest.mark.parametrize(
    ("asks", "loops"),
    [(300, ()), (500, (Node(THREAD, 20, 20),))],
    ids=["it waits less for the server", "nothing else goes on"],
)
def test_other_waits_for_events_are_for_others(asks: int, loops: Collection[Node]) -> None:
    assert blamed(served(400, CLIENT, asks=asks), loops)["server", "client"] == 400 * MS


def test_a_terminal_is_read_for_work() -> None:
    profile = served(400, ("kworker/u8:1-7", 7, ""), asks=10)
    first = profile.samples[0]
    kernel = Module("[kernel.kallsyms]")
    stack = tuple(each._replace(module=kernel) if each.module == APP else each for each in first.stack)
    profile.samples[0] = first._replace(stack=stack)
    profile.threads.append(ThreadTimes(7, "kworker/u8:1", 7, "kworker/u8:1", SECOND, 0, 0, {}))
    assert blamed(profile) == {("server", "backend"): 50 * MS}


def test_a_server_is_not_blocked_by_who_waits_for_it() -> None:
    profile = served(990, CLIENT, asks=999)
    profile.samples[1] = chained(20, 20, 10 * MS, ("backend-9", 9, "backend"), process="server")
    assert sentence(profile).endswith("ends with server (pid 20), in write_server-20: 999 ms each second.")


def test_several_neighbours_of_a_name() -> None:
    profile = ranks(31, HOLDER)
    profile.samples += ranks(30, ("dcgm-exporter-912", 913, "collector")).samples[::3]
    assert "ends with 2 processes dcgm-exporter (pid 812, 912, not traced)" in sentence(profile)


def test_a_thread_of_the_kernel_does_what_others_have_asked_for() -> None:
    profile = ranks(61, HOLDER)
    assert told(profile)
    modules = {APP: Module("[kernel.kallsyms]")}
    for i, sample in enumerate(profile.samples):
        stack = tuple(each._replace(module=modules.get(each.module, each.module)) for each in sample.stack)
        profile.samples[i] = sample._replace(stack=stack)
    assert told(profile) is None


def test_those_whom_it_is_about() -> None:
    profile = ranks(61, HOLDER)
    for pid in (90, 91):
        profile.samples.append(chained(pid, pid, 9 * SECOND, ("disk-5", 5, "disk"), process="other"))
        times = ThreadTimes(pid, "other", pid, "other", 10 * SECOND, SECOND, 0, {"interruptible": 9 * SECOND})
        profile.threads.append(times)
    blame = Blame(waits_for(profile), set(), profile)
    for pids, name in ((frozenset[int](), "disk"), (frozenset((20, 21)), "dcgm-exporter"), (frozenset((90,)), "disk")):
        (verdict,) = blame.find(pids)
        assert isinstance(verdict.detail, EndsWith) and verdict.detail.name == name
    assert blame.find(frozenset((7,))) == []
