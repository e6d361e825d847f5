from __future__ import annotations

import pytest
from stallscope.tracers.probe_targets import cuda


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("cuMemAlloc_v2", "cuMemAlloc"),
        ("cuCtxCreate_v4", "cuCtxCreate"),
        ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
        ("cudaMemcpy_ptds", "cudaMemcpy"),
        ("cuMemcpy2D", "cuMemcpy2D"),
        ("cudaMalloc", "cudaMalloc"),
    ],
)
def test_suffixes(name: str, base: str) -> None:
    assert cuda.base_name(name) == base


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cuMemAlloc_v2", "time"),
        ("cudaGetDeviceProperties_v2", "time"),
        ("cuStreamSynchronize_ptsz", "sync"),
        ("cudaMemcpyAsync_ptsz", "copy"),
        ("cuLaunchKernelEx_ptsz", "launch"),
        ("cuMemAllocPitch_v2", ""),
        ("malloc", ""),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert cuda.kind(name) == kind


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("libcudart.so.12", True),
        ("libcudart-9335f6a2.so.11.0", True),
        ("libcuda.so.1", True),
        ("libcuda.so.595.45.04", True),
        ("libcudnn.so.9", False),
        ("libcudadebugger.so.1", False),
        ("libcuda.so.1.txt", False),
    ],
)
def test_libraries(name: str, is_one: bool) -> None:
    assert cuda.is_library(name) is is_one


def test_errors() -> None:
    assert cuda.error_name("cuMemAlloc_v2", 2) == "CUDA_ERROR_OUT_OF_MEMORY"
    assert cuda.error_name("cudaMalloc", 2) == "cudaErrorMemoryAllocation"
    assert cuda.error_name("cuMemAlloc_v2", 987654) == "CUresult 987654"
    assert cuda.error_name("cudaMalloc", -1) == "cudaError -1"


def test_results_that_are_no_errors() -> None:
    assert cuda.has_errors("cudaMalloc")
    assert cuda.has_errors("cuGetErrorName")
    assert not any(map(cuda.has_errors, ("cudaGetLastError", "cudaGetErrorString", "ncclAllReduce", "custom")))
