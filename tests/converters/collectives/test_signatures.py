from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.collectives import signatures
from stallscope.converters.collectives.signatures import NCCL_TYPES, SIGNATURES, signature_of


def test_arguments_of_an_all_reduce() -> None:
    """(sendbuff, recvbuff, count, datatype, op, comm, stream) of NCCL; (…, comm) of MPI."""
    nccl, mpi = signature_of("ncclAllReduce"), signature_of("PMPI_Allreduce")
    assert nccl and (nccl.count, nccl.type, nccl.comm, nccl.stream, nccl.peer) == (2, 3, 5, 6, -1)
    assert mpi and (mpi.name, mpi.count, mpi.comm, mpi.stream) == ("MPI_Allreduce", 2, 5, -1)


def test_waits_for_a_stream() -> None:
    waits = signature_of("cudaStreamSynchronize_ptsz")
    assert waits and waits == signature_of("cudaStreamSynchronize")
    assert (waits.kind, waits.stream) == (signatures.WAITS, 0)


def test_mpi_with_large_counts() -> None:
    plain, large = signature_of("MPI_Allreduce"), signature_of("PMPI_Allreduce_c")
    assert plain and large and large == replace(plain, name="MPI_Allreduce_c")
    assert (plain.has_int_count, large.has_int_count) == (True, False)
    assert signature_of("MPI_Barrier_c") is None


def test_graphs_of_the_runtime_and_of_the_driver() -> None:
    for name in ("cudaStreamBeginCapture_ptsz", "cuStreamBeginCapture_v2", "cuStreamBeginCapture_v2_ptsz"):
        begins = signature_of(name)
        assert begins and begins.kind == signatures.BEGINS_CAPTURE
    launch = signature_of("cuGraphLaunch_ptsz")
    assert launch and launch.kind == signatures.LAUNCHES_GRAPH


def test_a_unique_id_takes_no_register() -> None:
    made = signature_of("ncclCommInitRank")
    assert made and (made.made, made.size, made.rank) == (0, 1, 2)
    assert made.id == 6, "it is the first argument on the stack"


def test_functions_of_version_2_32() -> None:
    """Declarations of its nccl.h: a configuration comes last, and several ids are passed by their address."""
    for name in ("AllReduce", "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"):
        plain, configured = signature_of(f"nccl{name}"), signature_of(f"nccl{name}Config")
        assert plain and configured == replace(plain, name=f"nccl{name}Config")
    scalable, shrink = signature_of("ncclCommInitRankScalable"), signature_of("ncclCommShrink")
    assert scalable and (scalable.made, scalable.size, scalable.rank, scalable.id) == (0, 1, 2, -1)
    assert shrink and (shrink.comm, shrink.made, shrink.color) == (0, 3, -1)


@pytest.mark.parametrize("name", ["cudaMalloc", "PMPI_Wtime", "PncclAllReduce", ""])
def test_others_are_none(name: str) -> None:
    assert signature_of(name) is None


_WITHOUT = (
    *(signatures.BEGINS_GROUP, signatures.ENDS_GROUP, signatures.MAKES, signatures.WAITS, signatures.FINISHES),
    *(signatures.BEGINS_CAPTURE, signatures.ENDS_CAPTURE, signatures.LAUNCHES_GRAPH, signatures.COMPLETES),
)


def test_each_collective_has_a_communicator() -> None:
    for each in SIGNATURES.values():
        assert each.comm >= 0 or each.kind in _WITHOUT
        assert (each.count >= 0) == (each.type >= 0)
    assert NCCL_TYPES[9] == ("bfloat16", 2)
