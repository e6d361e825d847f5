"""Names of Gloo's functions, as PyTorch's library exports them."""

from __future__ import annotations

import pytest
from stallscope.tracers.probe_targets.gloo import MANGLED, function_of, is_library

TENSORS = "ERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE"


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        (f"9allreduce{TENSORS}", "allreduce"),
        ("15_allgather_baseERN2at6TensorES3_RKNS_16AllgatherOptionsE", "_allgather_base"),
        ("31allgather_into_tensor_coalescedERSt6vector", "allgather_into_tensor_coalesced"),
        ("7barrierERKNS_14BarrierOptionsE", "barrier"),
        ("7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkE", "enqueue"),
        ("9AsyncWork14finishWorkGlooEv", "AsyncWork::finishWorkGloo"),
        ("9AsyncWork19finishWorkGlooErrorERKNSt15__exception_ptr13exception_ptrE", "AsyncWork::finishWorkGlooError"),
        ("C1ERKN3c1013intrusive_ptrINS_5StoreEEEii", "ProcessGroupGloo"),
        ("C2ERKN3c1013intrusive_ptrINS_5StoreEEEii", "ProcessGroupGloo"),
    ],
)
def test_functions(mangled: str, name: str) -> None:
    assert function_of(MANGLED + mangled) == f"c10d::ProcessGroupGloo::{name}"


@pytest.mark.parametrize(
    "mangled",
    [
        f"{MANGLED}9allreduce{TENSORS}.cold",
        f"{MANGLED}9allreduce",
        f"{MANGLED}9allreduceIiEvv",
        f"{MANGLED}7runLoopEi",
        f"{MANGLED}7OptionsC1ENSt6chrono8durationE",
        f"{MANGLED}99allreduceE",
        f"{MANGLED}D1Ev",
        MANGLED,
        f"_ZZN4c10d16ProcessGroupGloo9allreduce{TENSORS}ENKUlvE_clEv",
        f"_ZN4c10d16ProcessGroupNCCL9allreduce{TENSORS}",
        "ncclAllReduce",
        "",
    ],
)
def test_others(mangled: str) -> None:
    assert function_of(mangled) == ""


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("libtorch_cpu.so", True), ("libtorch_cpu-1a2b.so.2", True), ("libtorch.so", False), ("libtorch_cpu.txt", False)],
)
def test_files(name: str, is_one: bool) -> None:
    assert is_library(name) == is_one
