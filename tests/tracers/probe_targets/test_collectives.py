"""Cookies of functions of communication libraries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stallscope.tracers.probe_targets.collectives import Collectives, WithCuda, cookie, is_library
from stallscope.tracers.probe_targets.wanted import Library

HEADER = Path(__file__).parents[3] / "bpf" / "include" / "call_cookie.h"


def bit(name: str) -> int:
    found = re.search(rf"#define {name} \(1ULL << (\d+)\)", HEADER.read_text())
    assert found
    return 1 << int(found[1])


def field(name: str, value: int) -> int:
    """A value in the bits of a field of the cookie."""
    found = re.search(rf"#define {name}\(cookie\) \(\(cookie\) >> (\d+)", HEADER.read_text())
    assert found
    return value << int(found[1])


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("ncclAllReduce", 0),
        ("ncclCommInitRank", field("COOKIE_MADE", 1)),
        ("ncclCommSplit", field("COOKIE_MADE", 4)),
        ("ncclCommShrink", field("COOKIE_MADE", 4)),
        ("ncclCommInitRankScalable", field("COOKIE_MADE", 1)),
        ("PMPI_Allreduce", 0),
        ("MPI_Iallreduce", field("COOKIE_MADE", 7)),
        ("MPI_Igather_c", field("COOKIE_MADE", 9)),
        ("MPI_Recv", field("COOKIE_MADE", 7)),
        ("MPI_Sendrecv", field("COOKIE_MADE", 12)),
        ("MPI_Wait", field("COOKIE_REQUESTS", 1)),
        ("MPI_Waitall", field("COOKIE_REQUESTS", 2)),
        ("MPI_Test", field("COOKIE_REQUESTS", 1) | bit("COOKIE_IF_CHANGED")),
        ("MPI_Testsome", field("COOKIE_REQUESTS", 2) | bit("COOKIE_IF_CHANGED")),
        ("_ZN4c10d16ProcessGroupGloo7barrierERKNS_14BarrierOptionsE", 0),
        ("_ZN4c10d16ProcessGroupGlooC1Eii", 0),
        ("_ZN4c10d16ProcessGroupGloo7enqueueEv", bit("COOKIE_MADE_SECOND")),
        ("cudaStreamSynchronize", 0),
    ],
)
def test_their_calls_are_kept(name: str, made: int) -> None:
    assert cookie(name) == bit("COOKIE_ARGUMENTS") | made


@pytest.mark.parametrize("name", ["cudaMemcpy", "ncclFoo", "main", ""])
def test_others_are_not(name: str) -> None:
    assert cookie(name) == 0


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("libnccl.so.2", True),
        ("libnccl.so.2.27.5", True),
        ("librccl.so.1", True),
        ("libmpi.so.40", True),
        ("libmpi-5f6e.so.40.30.4", True),
        ("libtorch_cuda.so", True),
        ("libtorch_cpu.so", True),
        ("libnccl.so.2.txt", False),
        ("libncclx.so", False),
        ("libc.so.6", False),
    ],
)
def test_files_that_are_looked_into(name: str, is_one: bool) -> None:
    assert is_library(name) == is_one
    assert Collectives().looks_into(f"/usr/lib/{name}", (1, 2), is_program=False) == is_one


def test_with_what_is_traced_of_cuda_anyway() -> None:
    for name, plain, with_cuda in (
        ("ncclAllReduce", True, True),
        ("cudaStreamSynchronize", True, True),
        ("cudaMemcpy", False, True),
        ("cudaLaunchKernel", False, False),
        ("main", False, False),
    ):
        assert Collectives().wants(name, "/x", (1, 2)) == plain
        assert WithCuda().wants(name, "/x", (1, 2)) == with_cuda
    assert WithCuda().looks_into("/usr/lib/libnccl.so.2", (1, 2), is_program=False)
    assert WithCuda().looks_into("/usr/lib/libcudart.so.12", (1, 2), is_program=False)


def test_a_program_and_a_library_of_the_user_are_looked_into() -> None:
    assert Collectives().looks_into("/srv/train", (1, 2), is_program=True)
    assert Collectives(libraries=(Library("libmine.so"),)).looks_into("/srv/libmine.so", (1, 2), is_program=False)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ncclAllReduce", True),
        ("MPI_Allreduce", True),
        ("PMPI_Allreduce", False),
        ("cudaStreamSynchronize", True),
        ("cudaStreamSynchronize_ptsz", True),
        ("cudaMemcpy", False),
        ("main", False),
    ],
)
def test_functions_that_are_wanted(name: str, wanted: bool) -> None:
    assert Collectives().wants(name, "/usr/lib/libx.so", (1, 2)) == wanted


def test_functions_that_can_throw_have_no_probe_at_their_return() -> None:
    barrier = "_ZN4c10d16ProcessGroupGloo7barrierERKNS_14BarrierOptionsE"
    wanted = Collectives()
    assert wanted.wants(barrier, "/x", (1, 2)) and wanted.is_begin(barrier)
    assert wanted.readable(barrier) == "c10d::ProcessGroupGloo::barrier"
    assert not wanted.is_begin("ncclAllReduce")
    assert wanted.readable("ncclAllReduce") == "ncclAllReduce"
    assert wanted.is_exported("/srv/libtorch_cpu.so", (1, 2))
    assert not wanted.is_exported("/srv/libnccl.so.2", (1, 2)), "they can be linked into a file without being exported"
