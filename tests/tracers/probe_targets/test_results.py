from __future__ import annotations

import pytest
from stallscope.tracers.probe_targets import results


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("cudaMalloc", True),
        ("ncclAllReduce", True),
        ("pncclCommInitRank", True),
        ("ncclGetErrorString", False),
        ("ncclGetLastError", False),
        ("nccl_ranks", False),
        ("MPI_Allreduce", False),  # by default, MPI ends the program
        ("cudaGetLastError", False),
    ],
)
def test_functions_with_errors(name: str, has: bool) -> None:
    assert results.has_errors(name) is has


def test_names_of_errors() -> None:
    assert results.error_name("ncclAllReduce", 4) == "ncclInvalidArgument"
    assert results.error_name("ncclAllReduce", 99) == "ncclResult 99"
    assert results.error_name("cudaMalloc", 0) == results.OTHER_ERRORS
    assert results.error_name("cudaMalloc", 2) == "cudaErrorMemoryAllocation"


def test_a_call_that_goes_on_has_not_failed() -> None:
    assert results.error_name("ncclCommInitRank", 7) == ""
