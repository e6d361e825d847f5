from __future__ import annotations

import pytest
from processes import HALF, MS, SECOND, process, profile, threads
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.model import Profile
from stallscope.converters.summary.core_takers import OTHERS, QUOTA, TRACED, UNCLEAR, Cores, Takers, sentence


def takers(made: Profile, *pids: int, whole_host: bool = False, time: int = SECOND, count: int = 1) -> Takers | None:
    """Takers of the cores of ``count`` threads of these processes, which waited for ``time`` of ten seconds each."""
    return Cores(contention_of(made), whole_host=whole_host).takers(pids, time, 10 * SECOND, count)


def host(**used: float) -> Profile:
    """Processes 1, 2, … on four cores, each with a number of cores that it used."""
    made = profile()
    for pid, (name, cores) in enumerate(used.items(), start=1):
        process(made, pid * 100, name)
        threads(made, pid * 100, name, name, 1, on_cpu=int(cores * 10 * SECOND), wall=10 * SECOND)
    return made


def test_processes_that_had_most_of_the_cores() -> None:
    found = takers(host(victim=0.1, burn=2.5, little=0.1, other=1.0, third=0.3, fourth=0.25), 100, whole_host=True)
    assert found == Takers(TRACED, (("burn", 2.5), ("other", 1.0), ("third", 0.3)), 4)
    assert sentence(found) == "cores had by burn 2.50, other 1.00, third 0.30 of 4"


def test_its_own_threads_are_named_if_these_filled_the_cores() -> None:
    found = takers(host(crowd=3.9), 100)
    assert found == Takers(TRACED, (("crowd", 3.9),), 4)


def test_others_are_only_told_of_with_evidence() -> None:
    made = host(victim=0.5, traced=0.5)
    found = takers(made, 100)
    assert found == Takers(OTHERS, (), 4)
    assert "not traced (top shows them)" in sentence(found)
    # More threads than cores may have had them all at one time, and none at another.
    assert takers(made, 100, count=9) == Takers(UNCLEAR, (), 4)
    made.threads[0].runnable = 45 * SECOND  # they wanted more than there is on average
    assert takers(made, 100, count=9) == Takers(OTHERS, (), 4)


def test_a_wake_up_takes_a_moment() -> None:
    assert takers(host(victim=0.5), 100, time=99 * MS) is None
    assert takers(host(victim=0.5), 100, time=100 * MS) is not None


def test_a_quota_comes_first() -> None:
    made = profile()
    process(made, 7, "demo", limits=(HALF,))
    threads(made, 7, "demo", "demo", on_cpu=4 * SECOND)
    found = takers(made, 7, whole_host=True)
    assert found == Takers(QUOTA, (), 4, "/half")
    assert sentence(found) == "stopped by the quota of control group /half"


def test_only_time_on_the_same_cores_counts() -> None:
    made = profile()
    for pid, name, cpus in ((10, "pinned", "0"), (20, "same", "0"), (30, "wide", "0-3"), (40, "elsewhere", "1-3")):
        process(made, pid, name, cpus=cpus)
        threads(made, pid, name, name, on_cpu=4 * SECOND)
    found = takers(made, 10, whole_host=True)
    assert found == Takers(TRACED, (("same", 0.4), ("pinned", 0.4), ("wide", 0.1)), 1)


@pytest.mark.parametrize("cpus", ["", "0-3"])
def test_nothing_is_known(cpus: str) -> None:
    made = profile(10 if not cpus else 0)
    process(made, 7, "x", cpus=cpus)
    threads(made, 7, "x", "x")
    assert takers(made, 7) is None
    assert takers(made, 8) is None
    assert takers(host(idle=0.01), 100, whole_host=True) is None
