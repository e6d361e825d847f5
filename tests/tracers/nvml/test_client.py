"""The process that asks the driver about GPUs, with a stand-in for the library: build/workloads/libnvidia-ml.so.1."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.gpus import UNKNOWN, Gpu
from stallscope.tracers.nvml.client import Nvml, summed

LIBRARY = str(Path(__file__).resolve().parents[3] / "build/workloads/libnvidia-ml.so.1")
SECOND = 1_000_000_000


def gpus(looks: int = 1, **variables: str) -> list[Gpu]:
    """The GPUs after so many looks at each."""
    asked = Nvml.begin(LIBRARY, variables)
    try:
        while len(asked._lines()) < 1 + looks:
            time.sleep(0.01)
        return asked.gpus()
    finally:
        asked.close()


def refused(library: str = LIBRARY, seconds: float = 15, **variables: str) -> StallscopeError:
    with pytest.raises(StallscopeError) as caught:
        Nvml.begin(library, variables, seconds)
    assert "leave out --nvml" in caught.value.remedy
    return caught.value


def test_what_gpus_do_and_what_it_cost() -> None:
    first, second = gpus()
    assert (first.minor, second.minor) == (7, 6), "they are not numbered like their devices"
    assert first.name == "NVIDIA H100 80GB HBM3"
    assert (first.busy, second.busy, first.copying) == (120, 900, 50)
    assert (first.memory_used, first.memory) == (60 << 30, 80 << 30)
    assert (first.clock, first.clock_most, first.power, first.power_limit) == (1200, 1980, UNKNOWN, 700_000)
    assert [(each.reason, each.samples) for each in first.limits] == [("power cap", first.samples)]
    assert [each.reason for each in second.limits] == ["idle"]
    assert first.calls == 5 * first.samples, "utilisation, memory, clock, power, reasons"
    assert 0 < first.call_most <= first.call_time
    assert (first.failed, first.silent) == (0, 0), "what is not supported has not failed"


def test_a_driver_that_hangs_later_is_told() -> None:
    asked = Nvml.begin(LIBRARY, {"NVML_HANG": "2", "NVML_GPUS": "2"})
    try:
        while len(asked._lines()) < 2:
            time.sleep(0.01)
        time.sleep(3.2)
        (first, _) = asked.gpus()
        assert first.samples == 1
        assert first.silent > 3 * SECOND
    finally:
        began = time.monotonic()
        asked.close()
        assert time.monotonic() - began < 5


def test_a_driver_that_hangs_at_once() -> None:
    assert "has not answered within 0.5 s" in refused(seconds=0.5, NVML_HANG="0").cause


def test_errors_of_the_driver() -> None:
    assert "is not loaded" in refused(NVML_INIT="9").cause
    assert "different versions" in refused(NVML_INIT="18").cause
    assert "error 999" in refused(NVML_INIT="999").cause
    assert "has no GPU" in refused(NVML_GPUS="0").cause
    assert "no usable libnvidia-ml.so.1" in refused("libnvidia-ml-of-nobody.so.1").cause


def test_a_library_without_the_functions() -> None:
    assert "no usable libnvidia-ml.so.1" in refused("libc.so.6").cause


def test_looks_that_fail() -> None:
    first = gpus(NVML_ERROR="15")[0]
    assert (first.busy, first.memory, first.clock, first.limits) == (UNKNOWN, UNKNOWN, UNKNOWN, [])
    assert first.failed == 4 * first.samples


def test_hostile_names_are_kept_as_they_are_and_short() -> None:
    (first, _) = gpus(NVML_NAME="\x1b[2J</script>\udcff")
    assert first.name == "\x1b[2J</script>\udcff"
    (first, _) = gpus(NVML_NAME="x" * 300)
    assert first.name == "x" * 96


def test_only_looks_within_the_trace_count() -> None:
    about = {"gpus": [{"minor": 3, "name": "A"}]}
    looks = [{"at": at * SECOND, "looks": [{"busy": at, "cost": [1, 2, 2, 0]}]} for at in range(1, 6)]
    (gpu,) = summed([about, *looks], 2 * SECOND, 4 * SECOND)
    assert (gpu.samples, gpu.busy, gpu.calls, gpu.call_time, gpu.silent) == (3, 30, 3, 6, 0)
    (gpu,) = summed([about, *looks], 2 * SECOND, 20 * SECOND)
    assert gpu.silent == 15 * SECOND
    (gpu,) = summed([about], 0, SECOND)
    assert (gpu.samples, gpu.busy, gpu.calls) == (0, UNKNOWN, 0)


def test_lines_of_nonsense() -> None:
    about = {"gpus": [{"minor": "x", "name": 5}]}
    (gpu,) = summed([about, {"at": "x"}, {"at": 1, "looks": [{"busy": "x", "limits": -5, "cost": []}]}], 0, SECOND)
    assert (gpu.minor, gpu.name, gpu.busy, gpu.limits) == (UNKNOWN, "5", UNKNOWN, [])
