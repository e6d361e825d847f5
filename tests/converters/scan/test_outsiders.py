"""Sentences on processes that are no ranks, and that ranks wait for in a call."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.converters.facts.jobs import Job, Rank
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.scan.outsiders import outsiders
from stallscope.converters.summary.sharing import shared_calls
from summary_profiles import SECOND

TRACE = 10 * SECOND


def told(
    waits: dict[tuple[int, int], float],
    ranks: tuple[int, ...] = (1, 2),
    monitor: str = "dcgm",
    trace: int = TRACE,
    jobs: Sequence[Job] = (),
) -> tuple[str, ...]:
    """``waits``: seconds, by waiter and who was inside; processes 1 and 2 train, 9 is the monitor."""
    made = SharedCall("RM_CONTROL", "/dev/nvidiactl", 100, 90, 250)
    made.waits = {pair: round(time * SECOND) for pair, time in waits.items()}
    names = {1: "train", 2: "train", 9: monitor}
    profile = Profile(
        [ValueType("ioctl", "nanoseconds")],
        calls=[CallTimes("RM_CONTROL", "/dev/nvidiactl", pid, name, 3, 100, 1, 50) for pid, name in names.items()],
        shared=[made],
        processes=[ProcessTimes(pid, names[pid], ranks={"rank": str(pid - 1)}) for pid in ranks],
    )
    return outsiders(shared_calls(profile), trace, jobs)


def test_a_monitor_that_ranks_wait_for_is_told() -> None:
    assert told({(1, 9): 3, (2, 9): 3.1, (1, 2): 2, (2, 1): 1.9}) == (
        "dcgm (9), which is no rank, is inside RM_CONTROL of /dev/nvidiactl and the next to return for 61.0 % of the "
        "time for which 2 ranks wait in it: 6.10 s.",
    )


def test_its_name_decides_nothing() -> None:
    (told_of,) = told({(1, 9): 3}, monitor="rank 0 \x1b[2J")
    assert told_of.startswith("rank 0 \x1b[2J (9), which is no rank, ")


def test_what_is_near() -> None:
    assert told({(1, 9): 0.9, (2, 1): 3}) == (), "23 % of the ranks' waits"
    assert told({(1, 9): 0.4}) == (), "4 % of the rank's time"
    assert told({(9, 1): 5}) == (), "the monitor waits for the ranks"
    assert told({(1, 9): 3}, ranks=()) == (), "nobody is known to be a rank"
    assert told({(1, 9): 3}, ranks=(1, 9)) == (), "it is a rank itself"


def job(*ranks: int, workers: tuple[int, ...] = ()) -> Job:
    return Job(tuple(Rank(pid, number, "memory", "", workers) for number, pid in enumerate(ranks)))


def test_ranks_are_those_of_the_job_whatever_the_environment_says() -> None:
    (told_of,) = told({(1, 9): 3, (2, 9): 3}, ranks=(), jobs=[job(1, 2)])
    assert told_of.startswith("dcgm (9), which is no rank, is inside RM_CONTROL")
    assert "2 ranks wait in it: 6.00 s" in told_of


def test_a_worker_of_a_rank_is_inside() -> None:
    assert told({(1, 9): 3}, ranks=(), jobs=[job(1, 2, workers=(9,))]) == ()
    assert told({(1, 9): 3}, ranks=(1, 2, 9), jobs=[job(1, 2)]) == (), "a rank, and it is not known of which job"


def test_a_rank_of_another_job_is_outside() -> None:
    (told_of,) = told({(1, 9): 3, (1, 2): 1}, ranks=(1, 2, 9), monitor="eval", jobs=[job(1, 2), job(8, 9)])
    assert "(pid 9), which is of another job, is inside RM_CONTROL" in told_of
