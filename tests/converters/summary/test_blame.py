"""One sentence on who makes others wait."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Profile, ThreadTimes
from stallscope.converters.model.waits_for import THREAD, Node, waits_for
from stallscope.converters.summary.blame import Blame
from stallscope.converters.summary.wakers import Wakers
from summary_profiles import MS, SECOND
from wait_graphs import Link, chained, profile_of

HOLDER: Link = ("dcgm-exporter-812", 813, "collector")
TIMER: Link = ("[timer]", 0, "")


def ranks(ms: int, *chain: Link, number: int = 8, other: int = 39) -> Profile:
    """Ranks of which each waits ``ms`` for this chain, and ``other`` ms for its own timer."""
    profile = profile_of()
    for pid in range(20, 20 + number):
        profile.samples.append(chained(pid, pid, ms * MS, *chain, process=f"rank-{pid}"))
        profile.samples.append(chained(pid, pid, other * MS, TIMER, process=f"rank-{pid}"))
        blocked = {"interruptible": (ms + other) * MS}
        profile.threads.append(ThreadTimes(pid, f"rank-{pid}", pid, "rank", SECOND, 0, 0, blocked))
    return profile


def sentence(profile: Profile, idle: set[Node] = frozenset()) -> str:  # type: ignore[assignment]
    return Blame(waits_for(profile), set(idle), profile.threads).sentence(profile, Wakers())


def test_a_neighbour_that_is_not_traced() -> None:
    assert sentence(ranks(61, HOLDER)) == (
        "61.0 % of what the 8 processes rank-* wait for ends with dcgm-exporter (pid 812, not traced), in "
        "write_dcgm-exporter-812: 488 ms each second, all together."
    )


def test_through_another_rank() -> None:
    """Whoever woke them."""
    between: Link = ("rank-20-20", 20, "rank")
    assert "ends with dcgm-exporter (pid 812, not traced)" in sentence(ranks(61, between, HOLDER))


def test_what_it_waits_for_itself() -> None:
    assert sentence(ranks(61, HOLDER, TIMER)).endswith("; for 100.0 % of that, it waits for a timer itself.")
    assert "itself" not in sentence(ranks(61, HOLDER))


def test_who_is_blamed_waits_for_somebody_else() -> None:
    """A main process that waits for its slow worker, and the others until it takes what they have."""
    profile = ranks(61, ("main-9", 9, "main"), number=3)
    profile.threads.append(ThreadTimes(9, "main", 9, "main", SECOND, 0, 0, {"interruptible": 900 * MS}))
    slow, other = (chained(9, 9, 800 * MS, ("slow-30", 30, "slow"), process="main") for _ in range(2))
    profile.samples += [slow, chained(9, 9, 100 * MS, ("rank-20-20", 20, "rank"), process="main")]
    told = sentence(profile, {Node(THREAD, 9, 9)})
    assert told.endswith("; it is blocked for 90.0 % of its own time, and 88.9 % of that ends with slow (pid 30).")
    profile.samples[-2] = other._replace(values=(600 * MS, 1))  # it works for a third of the time
    assert "own time" not in sentence(profile, {Node(THREAD, 9, 9)})


def test_a_disk() -> None:
    assert "ends with [interrupt nvme0q1]: 488 ms" in sentence(ranks(61, ("[interrupt nvme0q1]", 0, "")))


def test_a_thread_of_the_same_process() -> None:
    profile = ranks(61, ("rank-20-20", 21, "loader"), number=1)
    assert sentence(profile).startswith("61.0 % of what the main thread of rank-20 waits for ends with its own thread ")
    assert "loader (tid 21), in write_rank-20-20: 61.0 ms each second." in sentence(profile)


def test_one_of_the_ranks() -> None:
    assert "ends with rank-20 (pid 20), in" in sentence(ranks(61, ("rank-20-20", 20, "rank")))


@pytest.mark.parametrize(
    "profile",
    [
        ranks(29, HOLDER, other=71),
        ranks(30, HOLDER, other=10),
        ranks(61, TIMER),
        ranks(61, ("[still waiting]", 0, "")),
        ranks(61, ("[softirq NET_RX]", 0, "")),
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


def test_several_neighbours_of_a_name() -> None:
    profile = ranks(31, HOLDER)
    profile.samples += ranks(30, ("dcgm-exporter-912", 913, "collector")).samples[::2]
    assert "ends with 2 processes dcgm-exporter (not traced)" in sentence(profile)
