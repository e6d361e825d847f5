"""Calls that were timed: their buckets, quantiles and sums."""

from __future__ import annotations

import pytest
from stallscope.converters.model.calls import BUCKETS, CallTimes, bucket_of, lower_bound, octaves, quantile, together


def histogram(**counts: int) -> tuple[int, ...]:
    """Histogram of ``b4=2``: two calls in bucket 4."""
    latencies = [0] * BUCKETS
    for name, number in counts.items():
        latencies[int(name[1:])] = number
    return tuple(latencies)


def test_buckets_divide_each_factor_of_two_by_four() -> None:
    assert [lower_bound(bucket) for bucket in range(9)] == [0, 320, 384, 448, 512, 640, 768, 896, 1024]
    assert lower_bound(BUCKETS - 1) > 60_000_000_000


def test_quantiles_are_interpolated() -> None:
    latencies = histogram(b4=100)
    assert quantile(latencies, 0.5, 512, 640) == 576
    assert quantile(latencies, 1.0, 512, 640) == 640
    assert quantile(histogram(b4=98, b40=2), 0.99, 512, 400_000) == pytest.approx(lower_bound(40), rel=0.15)


def test_a_quantile_stays_within_the_extremes() -> None:
    assert quantile(histogram(b8=1), 0.5, 1100, 1100) == 1100
    latencies = histogram(b111=4)
    assert quantile(latencies, 0.99, 90_000_000_000, 95_000_000_000) == 94_950_000_000


def test_without_calls_there_is_none() -> None:
    assert quantile((), 0.5, 0, 0) is None
    assert CallTimes("x", "y", 1, "p").quantile(0.5) is None
    assert list(octaves(())) == []


def test_octaves_are_without_gaps() -> None:
    folded = list(octaves(histogram(b0=1, b3=2, b4=5, b12=7)))
    assert folded == [(0, 512, 3), (512, 1024, 5), (1024, 2048, 0), (2048, 4096, 7)]


def test_parts_sum_to_the_whole() -> None:
    call = CallTimes("x", "y", 1, "p", 3, 1000, 100, 500, 600, 150)
    assert (call.on_cpu, call.mean) == (250, 333)
    assert CallTimes("x", "y", 1, "p").mean == 0


def test_calls_of_several_processes() -> None:
    one = CallTimes("x", "y", 1, "p", 3, 1000, 100, 500, 600, 150, histogram(b4=3), {"EIO": 1})
    other = CallTimes("x", "y", 2, "q", 1, 50, 50, 50, 0, 0, histogram(b0=1), {"EIO": 1, "EPERM": 2})
    waiting = CallTimes("x", "y", 3, "r", open_count=1, open_time=9)
    total = together([one, other, waiting])
    assert (total.pid, total.process) == (1, "p")
    assert (total.count, total.total, total.min, total.max) == (4, 1050, 50, 500)
    assert (total.blocked, total.runnable, total.open_count, total.open_time) == (600, 150, 1, 9)
    assert total.latencies == histogram(b0=1, b4=3)
    assert total.errors == {"EIO": 2, "EPERM": 2}


def test_the_bucket_of_a_latency() -> None:
    for latency in (0, 1, 255, 256, 257, 319, 320, 1000, 123_456, 10**9, 1 << 60):
        bucket = bucket_of(latency)
        assert lower_bound(bucket) <= latency
        assert bucket == BUCKETS - 1 or latency < lower_bound(bucket + 1)
