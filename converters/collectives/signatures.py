"""Functions of communication libraries, and which of their arguments says what.

NCCL's are those of its documentation ("NCCL API"), with the numbers of its header nccl.h; RCCL has the same names.
Those of MPI are of the standard (MPI 4.1, chapters 3 and 6). Those of Gloo are of PyTorch's process group
(torch/csrc/distributed/c10d/ProcessGroupGloo.hpp). Arguments are counted from 0, integers and pointers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

COLLECTIVE, POINT_TO_POINT, MAKES = "collective", "point-to-point", "makes"
BEGINS_GROUP, ENDS_GROUP = "begins a group", "ends a group"
BEGINS_CAPTURE, ENDS_CAPTURE, LAUNCHES_GRAPH = "begins a capture", "ends a capture", "launches a graph"
ENDS, ASKS, WAITS = "ends", "asks", "waits"
ENQUEUES, FINISHES = "enqueues", "finishes"
COMPLETES = "completes"
"""Kinds of functions: in which all ranks of a communicator meet; between two of them; that make communicators; that
begin and end a group of calls; that begin and end the capture of a graph, and that launch one; that end communicators;
that ask for their state; that wait until what was enqueued is done; that hand an operation to a thread that does it;
that this thread calls when it is done; that wait for operations that other calls have begun, or ask for them."""

NCCL, MPI, CUDA, GLOO = "NCCL", "MPI", "CUDA", "Gloo"
BARRIER = "barrier"
"""The only operation without data."""
SEND, RECEIVE = "send", "receive"
GROUPED = "grouped collective"
"""Different operations that a group launches together."""
IN_PLACE = (-1, 1)
"""MPI_IN_PLACE instead of a buffer (MPI 4.1, 6.2.2), in the mpi.h of MPICH and of Open MPI."""

_TYPES = (
    *(("int8", 1), ("uint8", 1), ("int32", 4), ("uint32", 4), ("int64", 8), ("uint64", 8), ("float16", 2)),
    *(("float32", 4), ("float64", 8), ("bfloat16", 2), ("float8e4m3", 1), ("float8e5m2", 1)),
)
NCCL_TYPES: Mapping[int, tuple[str, int]] = dict(enumerate(_TYPES))
"""Name and bytes of an element, by ncclDataType_t."""


@dataclass(frozen=True)
class Signature:
    """One function. -1: it has no such argument."""

    name: str
    kind: str
    what: str
    """``all-reduce``"""
    library: str = NCCL
    comm: int = -1
    count: int = -1
    type: int = -1
    peer: int = -1
    """Root of the operation, or the other rank of a message."""
    stream: int = -1
    rank: int = -1
    size: int = -1
    """Number of ranks of a communicator that is made."""
    made: int = -1
    """Pointer to the communicator that is made."""
    id: int = -1
    """First word of a unique id that is passed by value."""
    color: int = -1
    """Number of the part of a communicator that is split."""
    own: int = -1
    """Buffer of this rank's part, to which ``count`` and ``type`` belong: `IN_PLACE`, and only at the root, where the
    next ones are of all parts and tell both instead."""
    root_count: int = -1
    root_type: int = -1

    @property
    def has_int_count(self) -> bool:
        """Whether the count is an int: what is in the upper half of a register is no part of it."""
        return self.library == MPI and not self.name.endswith(_LARGE)

    tag: int = -1
    status: int = -1
    """Pointer to what tells from whom a message came."""
    request: int = -1
    """Pointer to the handle of an operation that the call only begins."""
    requests: int = -1
    """Pointer to the handles of operations that the call completes. If it is not the first argument, that is their
    number."""
    work: int = -1
    """Pointer to the object of an operation that is handed over or done."""
    has_root: bool = False
    """Whether one rank differs from the others: an operation can be done on it before all have begun it."""


def _nccl(name: str, what: str, arguments: str, kind: str = COLLECTIVE) -> Signature:
    """``arguments``: names of the fields, in order; others are ``_``."""
    at = {field: i for i, field in enumerate(arguments.split()) if field != "_"}
    return Signature(f"nccl{name}", kind, what, NCCL, has_root="peer" in at, **at)


def _mpi(name: str, what: str, arguments: str, kind: str = COLLECTIVE) -> Signature:
    at = {field: i for i, field in enumerate(arguments.split()) if field != "_"}
    return Signature(f"MPI_{name}", kind, what, MPI, has_root="peer" in at, **at)


def _completes(name: str, arguments: str) -> Signature:
    return _mpi(name, "completion", arguments, COMPLETES)


def _gloo(
    name: str, what: str, arguments: str = "_ comm", kind: str = COLLECTIVE, *, has_root: bool = False
) -> Signature:
    """A method. The first argument of one that returns an object is where this is to be."""
    at = {field: i for i, field in enumerate(arguments.split()) if field != "_"}
    return Signature(f"{GLOO_CLASS}::{name}", kind, what, GLOO, has_root=has_root, **at)


def _wait(name: str, stream: int = -1) -> Signature:
    return Signature(name, WAITS, "synchronisation", CUDA, stream=stream)


def _graph(name: str, kind: str) -> Signature:
    return Signature(name, kind, "graph", CUDA)


GLOO_CLASS = "c10d::ProcessGroupGloo"
_COLLECTIVES = (
    _nccl("AllReduce", "all-reduce", "_ _ count type _ comm stream"),
    _nccl("Broadcast", "broadcast", "_ _ count type peer comm stream"),
    _nccl("Bcast", "broadcast", "_ count type peer comm stream"),
    _nccl("Reduce", "reduce", "_ _ count type _ peer comm stream"),
    _nccl("AllGather", "all-gather", "_ _ count type comm stream"),
    _nccl("ReduceScatter", "reduce-scatter", "_ _ count type _ comm stream"),
    _nccl("AlltoAll", "all-to-all", "_ _ count type comm stream"),
    _nccl("Gather", "gather", "_ _ count type peer comm stream"),
    _nccl("Scatter", "scatter", "_ _ count type peer comm stream"),
)
_ALL = (
    *_COLLECTIVES,
    _nccl("Send", SEND, "_ count type peer comm stream", POINT_TO_POINT),
    _nccl("Recv", RECEIVE, "_ count type peer comm stream", POINT_TO_POINT),
    _nccl("GroupStart", "group", "", BEGINS_GROUP),
    _nccl("GroupEnd", "group", "", ENDS_GROUP),
    *(replace(each, name=f"{each.name}Config") for each in _COLLECTIVES if each.name != "ncclBcast"),
    # The unique id is passed by value, on the stack: it takes no register.
    _nccl("CommInitRank", "init", "made size rank _ _ _ id", MAKES),
    _nccl("CommInitRankConfig", "init", "made size rank _ _ _ id", MAKES),
    _nccl("CommInitRankScalable", "init", "made size rank", MAKES),
    _nccl("CommSplit", "split", "comm color _ made", MAKES),
    _nccl("CommShrink", "shrink", "comm _ _ made", MAKES),
    _nccl("CommFinalize", "finalize", "comm", ENDS),
    _nccl("CommDestroy", "destroy", "comm", ENDS),
    _nccl("CommAbort", "abort", "comm", ENDS),
    _nccl("CommRevoke", "revoke", "comm", ENDS),
    _nccl("CommGetAsyncError", "state", "comm", ASKS),
    _mpi("Allreduce", "all-reduce", "_ _ count type _ comm"),
    _mpi("Bcast", "broadcast", "_ count type peer comm"),
    _mpi("Reduce", "reduce", "_ _ count type _ peer comm"),
    # What a rank sends need not be told where it is in place already.
    _mpi("Allgather", "all-gather", "_ _ _ _ count type comm"),
    _mpi("Alltoall", "all-to-all", "_ _ _ _ count type comm"),
    _mpi("Reduce_scatter_block", "reduce-scatter", "_ _ count type _ comm"),
    _mpi("Gather", "gather", "own count type _ root_count root_type peer comm"),
    _mpi("Scatter", "scatter", "_ root_count root_type own count type peer comm"),
    # Each rank has counts of its own.
    _mpi("Reduce_scatter", "reduce-scatter", "_ _ _ _ _ comm"),
    _mpi("Allgatherv", "all-gather", "_ _ _ _ _ _ _ comm"),
    _mpi("Barrier", BARRIER, "comm"),
    _mpi("Iallreduce", "all-reduce", "_ _ count type _ comm request"),
    _mpi("Ibcast", "broadcast", "_ count type peer comm request"),
    _mpi("Ireduce", "reduce", "_ _ count type _ peer comm request"),
    _mpi("Iallgather", "all-gather", "_ _ _ _ count type comm request"),
    _mpi("Ialltoall", "all-to-all", "_ _ _ _ count type comm request"),
    _mpi("Ireduce_scatter_block", "reduce-scatter", "_ _ count type _ comm request"),
    _mpi("Igather", "gather", "own count type _ root_count root_type peer comm request"),
    _mpi("Iscatter", "scatter", "_ root_count root_type own count type peer comm request"),
    _mpi("Ireduce_scatter", "reduce-scatter", "_ _ _ _ _ comm request"),
    _mpi("Iallgatherv", "all-gather", "_ _ _ _ _ _ _ comm request"),
    _mpi("Ibarrier", BARRIER, "comm request"),
    *(_mpi(each, SEND, "_ count type peer tag comm", POINT_TO_POINT) for each in ("Send", "Ssend", "Bsend", "Rsend")),
    *(
        _mpi(each, SEND, "_ count type peer tag comm request", POINT_TO_POINT)
        for each in ("Isend", "Issend", "Ibsend", "Irsend")
    ),
    _mpi("Recv", RECEIVE, "_ count type peer tag comm status", POINT_TO_POINT),
    _mpi("Irecv", RECEIVE, "_ count type peer tag comm request", POINT_TO_POINT),
    _mpi("Sendrecv", SEND, "_ count type peer tag _ _ _ _ _ comm status", POINT_TO_POINT),
    _completes("Wait", "requests"),
    *(_completes(each, "_ requests") for each in ("Waitall", "Waitany", "Waitsome")),
    _completes("Test", "requests"),
    *(_completes(each, "_ requests") for each in ("Testall", "Testany", "Testsome")),
    _gloo("allreduce", "all-reduce"),
    _gloo("allreduce_coalesced", "all-reduce"),
    _gloo("broadcast", "broadcast", has_root=True),
    _gloo("reduce", "reduce", has_root=True),
    _gloo("allgather", "all-gather"),
    _gloo("_allgather_base", "all-gather"),
    _gloo("allgather_coalesced", "all-gather"),
    _gloo("allgather_into_tensor_coalesced", "all-gather"),
    _gloo("gather", "gather", has_root=True),
    _gloo("scatter", "scatter", has_root=True),
    _gloo("reduce_scatter", "reduce-scatter"),
    _gloo("_reduce_scatter_base", "reduce-scatter"),
    _gloo("reduce_scatter_tensor_coalesced", "reduce-scatter"),
    _gloo("alltoall", "all-to-all"),
    _gloo("alltoall_base", "all-to-all"),
    _gloo("barrier", BARRIER),
    _gloo("ProcessGroupGloo", "init", "made _ rank size", MAKES),
    _gloo("enqueue", "hand over", "comm work", ENQUEUES),
    _gloo("AsyncWork::finishWorkGloo", "done", "work", FINISHES),
    _gloo("AsyncWork::finishWorkGlooError", "done", "work", FINISHES),
    _wait("cudaStreamSynchronize", 0),
    _wait("cuStreamSynchronize", 0),
    _wait("cudaDeviceSynchronize"),
    _wait("cuCtxSynchronize"),
    *(_graph(f"{each}StreamBeginCapture", BEGINS_CAPTURE) for each in ("cuda", "cu")),
    *(_graph(f"{each}StreamBeginCaptureToGraph", BEGINS_CAPTURE) for each in ("cuda", "cu")),
    *(_graph(f"{each}StreamEndCapture", ENDS_CAPTURE) for each in ("cuda", "cu")),
    *(_graph(f"{each}GraphLaunch", LAUNCHES_GRAPH) for each in ("cuda", "cu")),
)
_LARGE = "_c"
"""Suffix of MPI's functions whose counts have 64 bits (MPI 4.1, 2.5.8: MPI_Count)."""
_LARGE_COUNTS = tuple(
    replace(each, name=each.name + _LARGE)
    for each in _ALL
    if each.library == MPI and each.what != BARRIER and each.kind != COMPLETES
)
_SECOND = Signature(
    "second part of MPI_Sendrecv",
    POINT_TO_POINT,
    RECEIVE,
    MPI,
    count=6,
    type=7,
    peer=8,
    tag=9,
    comm=10,
    status=11,
)
SIGNATURES: Mapping[str, Signature] = {each.name: each for each in (*_ALL, *_LARGE_COUNTS)}
"""All functions, by name; those of MPI's profiling interface (PMPI_…) are the same."""


def halves(of: Signature) -> tuple[Signature, ...]:
    """Parts of what a function of messages does: one that sends and receives has two parts."""
    return (of, _SECOND) if of.name.removesuffix(_LARGE) == "MPI_Sendrecv" else (of,)


def signature_of(name: str) -> Signature | None:
    """The signature of a function; None if it is none of these. CUDA's have other names for streams of threads, and
    those of its driver for later versions."""
    name = name.removesuffix("_ptsz").removesuffix("_ptds").removesuffix("_v2")
    return SIGNATURES.get(name.removeprefix("P") if name.startswith("PMPI_") else name)
