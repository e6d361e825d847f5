"""Profiles of events that were counted."""

from __future__ import annotations

from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.calls import CallTimes

SECOND = 1_000_000_000
MAIN, SELL, SALE = Frame("main", "native"), Frame("sell", "native"), Frame("shop:sale", "api")
READ = Frame("vfs_read", "kernel")


def call(name: str, pid: int, count: int, tids: dict[int, int]) -> CallTimes:
    made = CallTimes(name, "", pid, f"worker-{pid}", count, library="libshop.so")
    made.threads = [
        CallTimes(name, "", pid, f"worker-{pid}", number, library="libshop.so", tid=tid, thread=f"t{tid}")
        for tid, number in tids.items()
    ]
    return made


def profile(*calls: CallTimes, samples: list[Sample] | None = None) -> Profile:
    return Profile(
        [ValueType("events", "count")],
        samples or [],
        title="Events",
        duration_ns=2 * SECOND,
        threads=[ThreadTimes(pid, f"worker-{pid}", pid, "main", SECOND, 0, 0, {}) for pid in (7, 8)],
        calls=list(calls),
        lost={"events": 0},
    )


def sample(stack: tuple[Frame, ...], number: int) -> Sample:
    return Sample(stack, (number,), (("pid", 7), ("process", "worker-7"), ("state", "running"), ("tid", 7)))


def found() -> Profile:
    samples = [sample((MAIN, SELL, SALE), 300), sample((MAIN, SALE, READ), 100)]
    sale, look = call("shop:sale", 7, 300, {7: 200, 9: 100}), call("shop:look", 8, 100, {8: 100})
    return profile(sale, call("shop:sale", 8, 100, {8: 100}), look, samples=samples)
