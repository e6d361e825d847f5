"""Sentences on GPUs, and their data."""

from __future__ import annotations

import json

from job_profiles import job
from stallscope.converters.facts.gpus import GpuUse
from stallscope.converters.facts.jobs import Rank
from stallscope.converters.model.gpus import UNKNOWN, Gpu, GpuLimit
from stallscope.converters.scan.gpus import Gpus, gpus_told
from stallscope.converters.scan.report import report_of
from summary_profiles import MS, SECOND


def gpu(minor: int, busy: int = 120, silent: int = 0, failed: int = 0, **limits: int) -> Gpu:
    held = [GpuLimit(reason.replace("_", " "), number) for reason, number in limits.items()]
    memory = (50, 60 << 30, 80 << 30)
    return Gpu(minor, "H100", 10, busy, *memory, 1200, 1980, UNKNOWN, 700_000, 50, 3 * MS, MS, failed, silent, held)


def told(*gpus: Gpu, uses: tuple[GpuUse, ...] = (), names: dict[int, str] | None = None) -> list[str]:
    return gpus_told(gpus, uses, names).lines()


def test_nothing_was_asked() -> None:
    assert told() == []
    assert Gpus().to_json() is None


def test_the_gpu_that_is_limited_most_and_its_rank() -> None:
    use = GpuUse(3, (Rank(100, 5, "environment"),), ())
    assert told(gpu(3, power_cap=8), gpu(4, 900, idle=10), uses=(use,)) == [
        "GPU 3 (rank 5): 12.0 % busy, clocks limited by power cap for 80.0 % of the samples.",
        "The driver tells of 2 GPUs, 12.0 % to 90.0 % busy (100 calls in 6.00 ms, the longest 1.00 ms).",
    ]
    assert told(gpu(3, power_cap=8), gpu(4, power_brake=2))[0].endswith("So are those of 1 other GPU.")


def test_what_is_near() -> None:
    assert len(told(gpu(3, power_cap=1), gpu(4, idle=10))) == 1


def test_who_is_no_rank_is_named_as_it_is() -> None:
    line = told(gpu(3, power_cap=8), uses=(GpuUse(3, (), (7, 8, 9)),), names={7: "a\x1b[2J", 8: "b", 9: "c"})[0]
    assert line.startswith("GPU 3 (a\x1b[2J 7, b 8 and 1 more): ")


def test_a_driver_that_is_silent_or_fails() -> None:
    assert told(gpu(3, UNKNOWN, silent=12 * SECOND, failed=4)) == [
        "The driver tells of 1 GPU (50 calls in 3.00 ms, the longest 1.00 ms, 4 failed). "
        "It has not answered for 12.0 s.",
    ]


def test_the_report_has_them() -> None:
    profile = job(0.1, 0.1, gpus=True)
    profile.gpus = [gpu(1, power_cap=8)]
    report = report_of(profile)
    assert report.gpus.lines()[0].startswith("GPU 1 (rank 1): ")
    data = json.loads(json.dumps(report.to_json()["nvml"]))
    assert (data["calls"], data["time_ns"], data["longest_ns"], data["silent_ns"]) == (50, 3 * MS, MS, 0)
    (each,) = data["gpus"]
    assert (each["gpu"], each["ranks"], each["busy"], each["power_mw"]) == (1, [1], 0.12, None)
    assert each["limited_by"] == {"power cap": 8}
