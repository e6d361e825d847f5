"""Steps of threads, and the profiles in which they are."""

from __future__ import annotations

from stallscope.converters.model import Frame
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import Found, Maker, Reader, Spent, Steps, StepWait
from summary_profiles import LIBC, MS, kernel, user

LOADER = "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
LOADING = (
    Frame("train", "python", file="train.py", line=5),
    Frame("_BaseDataLoaderIter.__next__", "python", file=LOADER, line=741),
    *user(LIBC, "poll"),
    *kernel("__x64_sys_poll", "do_sys_poll", "poll_schedule_timeout"),
)


def spent(count: int, each: int, *waits: StepWait) -> Spent:
    return Spent(count, count * each, 0, count * each, waits)


def steps(pid: int, each: int = 90 * MS, between: int = 10 * MS, wait: StepWait | None = None) -> Steps:
    """100 steps of a main thread."""
    waits = () if wait is None else (wait,)
    return Steps(
        *("train.py:train_step", "train", pid, "train", pid, spent(100, each), spent(99, between, *waits)),
        median=each, max=each, span=99 * (each + between), slowest=(),
    )  # fmt: skip


def found_by(pid: int, *makers: int, work: int = 80 * MS, timed: bool = False) -> Steps:
    """100 steps of 100 ms that nobody named: 60 ms of each is a wait that ends with threads of these processes, 20 ms
    another one, 15 ms are on a core."""
    place, other = Site(("main", "next_batch"), "futex_wait"), Site(("main", "save", "fsync"), "")
    waits = StepWait(place, 6_000 * MS, 100), StepWait(other, 2_000 * MS, 100)
    spent = Spent(100, 10_000 * MS, 1_500 * MS, 8_000 * MS, waits)
    reader = Reader(tuple(Maker("loader", each, "t", each + 1, 100 * work) for each in makers), 100, 10_000 * MS)
    return Steps(
        *("", "train", pid, "train", pid, spent, Spent(99, 0, 0, 0)),
        *(100 * MS, 140 * MS, 99 * 100 * MS, ()),
        p90=120 * MS,
        found=Found(place, 3 * MS, 6_000 * MS, timed),
        reader=reader if makers else None,
    )
