from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.model.processes import (
    LATENCY_BUCKETS,
    CpuLimit,
    cpu_list,
    cpu_set,
    latency_bound,
    latency_bucket,
    percentile_bucket,
)


@pytest.mark.parametrize(
    ("ns", "bucket"),
    [(0, 0), (1023, 0), (1024, 1), (2047, 1), (2048, 2), ((1 << 32) - 1, 22), (1 << 32, 23), (1 << 63, 23)],
)
def test_buckets(ns: int, bucket: int) -> None:
    assert latency_bucket(ns) == bucket


@given(st.integers(0, 1 << 40))
def test_a_wait_is_shorter_than_its_bound_and_as_long_as_the_one_below(ns: int) -> None:
    bucket = latency_bucket(ns)
    bound = latency_bound(bucket)
    assert ns < bound if bound is not None else bucket == LATENCY_BUCKETS - 1
    assert bucket == 0 or ns >= (latency_bound(bucket - 1) or 0)


@given(st.lists(st.integers(0, 1 << 34), min_size=1, max_size=300))
def test_so_many_percent_are_shorter_than_the_bound(waits: list[int]) -> None:
    latencies = [0] * LATENCY_BUCKETS
    for ns in waits:
        latencies[latency_bucket(ns)] += 1
    bucket = percentile_bucket(latencies, 99)
    assert bucket is not None
    assert sum(latencies[: bucket + 1]) * 100 >= 99 * len(waits)
    assert sum(latencies[:bucket]) * 100 < 99 * len(waits)


@pytest.mark.parametrize("latencies", [(), (0,) * LATENCY_BUCKETS])
def test_no_waits_have_no_percentile(latencies: tuple[int, ...]) -> None:
    assert percentile_bucket(latencies, 99) is None


@given(st.frozensets(st.integers(0, (1 << 16) - 1), max_size=50))
def test_lists_of_cores_come_back(cpus: frozenset[int]) -> None:
    assert cpu_set(cpu_list(cpus)) == cpus


def test_lists_of_cores_are_written_as_taskset_does() -> None:
    assert cpu_list({8, 1, 0, 2, 10, 11}) == "0-2,8,10-11"
    assert cpu_list(set()) == ""


@pytest.mark.parametrize("text", ["x", "1-x", "-1", "3-2", "1-2-3", "0-65536", "9" * 5000])
def test_what_is_no_list_of_cores(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        cpu_set(text)


def test_a_quota_in_cores() -> None:
    assert CpuLimit("/x", 50_000, 100_000).cores == 0.5
