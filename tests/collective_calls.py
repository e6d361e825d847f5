"""Tables of calls for tests."""

from __future__ import annotations

import numpy as np
from stallscope.converters.collectives.records import FIELDS, CallTable
from stallscope.converters.collectives.told import Trace
from stallscope.converters.collectives.told import told as told_of
from stallscope.converters.model.collectives import Collectives

NAMES = (
    *("ncclCommInitRank", "ncclAllReduce", "ncclCommSplit", "ncclCommDestroy"),
    *("cudaStreamSynchronize", "ncclBroadcast", "MPI_Allreduce", "other"),
    *("cudaDeviceSynchronize", "ncclCommShrink", "ncclCommInitRankScalable"),
    *("MPI_Gather", "MPI_Scatter", "MPI_Allgather", "MPI_Allgatherv", "MPI_Barrier"),
    *("ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv"),
    *("cudaStreamBeginCapture", "cuStreamBeginCapture_v2", "cudaStreamEndCapture", "cuStreamEndCapture"),
    *("cudaGraphLaunch", "cuGraphLaunch", "MPI_Bcast", "MPI_Allreduce_c"),
    *("MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Sendrecv", "MPI_Iallreduce", "MPI_Wait", "MPI_Waitall"),
)
INIT, REDUCE, SPLIT, DESTROY, SYNC, BROADCAST, MPI, OTHER, DEVICE, SHRINK, SCALABLE, *_MORE = range(len(NAMES))
GATHER, SCATTER, ALL_GATHER, ALL_GATHER_V, BARRIER, START, END, SEND, RECEIVE, *_GRAPHS = _MORE
CAPTURE, DRIVER_CAPTURE, CAPTURED, DRIVER_CAPTURED, LAUNCH, DRIVER_LAUNCH, MPI_BROADCAST, MPI_LARGE, *_MPI = _GRAPHS
MPI_SEND, MPI_RECV, MPI_ISEND, MPI_IRECV, MPI_SENDRECV, MPI_IREDUCE, MPI_WAIT, MPI_WAITALL = _MPI
MS = 1_000_000
COMM, STREAM = 0x5000, 0x77


class Table:
    """Calls, put in one after the other. The thread's id is that of the process."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int, int, tuple[int, ...]]] = []

    def add(self, pid: int, began: int, function: int, *arguments: int, ended: int = -2, made: int = 0) -> None:
        """``ended``: 1 µs later, unless it is given."""
        given = (*arguments, *[0] * (12 - len(arguments)))
        self.rows.append((began, began + 1000 if ended == -2 else ended, pid, function, made, given))

    def init(self, pid: int, rank: int, *, identity: int = 7, made: int = COMM, size: int = 2) -> None:
        self.add(pid, rank, INIT, 1, size, rank, 0, 0, 0, identity, 9, made=made)

    def reduce(self, pid: int, began: int, *, comm: int = COMM, count: int = 1024) -> None:
        """An all-reduce of floats."""
        self.add(pid, began, REDUCE, 1, 2, count, 7, 0, comm, STREAM)

    def steps(self, pid: int, late: int, *, comm: int = COMM, count: int = 1024, of: int = 8) -> None:
        """Steps of 10 ms with an all-reduce, ``late`` after their begin, which is done 1 ms before their end."""
        for step in range(of):
            self.reduce(pid, step * 10 * MS + late, comm=comm, count=count)
            self.add(pid, step * 10 * MS + late + 2000, SYNC, STREAM, ended=step * 10 * MS + 9 * MS)

    def made(self, lost: int = 0) -> CallTable:
        calls = np.zeros(len(self.rows), np.dtype(list(FIELDS)))
        for row, (began, ended, pid, function, made, arguments) in zip(calls, sorted(self.rows), strict=True):
            row["began"], row["ended"], row["pid"], row["function"], row["made"] = began, ended, pid, function, made
            row["arguments"], row["tid"] = arguments, pid
        return CallTable(calls, NAMES, lost)


def told(table: CallTable, trace: Trace) -> list[Collectives]:
    """The communicators of more than one rank."""
    return told_of(table, trace).communicators
