"""Functions in which a rank waits, and each of whose calls a trace with probes on them sees.

They are among those of `collectives.signatures`, from which this package must not import: a test compares them.
"""

from __future__ import annotations

import re

WATCHED = re.compile(
    r"nccl(AllReduce|Broadcast|Reduce|AllGather|ReduceScatter|AlltoAll|Gather|Scatter)(Config)?|"
    r"nccl(Bcast|Send|Recv|GroupEnd)|ncclCommInitRank(Config|Scalable)?|"
    r"P?MPI_(Allreduce|Bcast|Reduce|Allgatherv?|Alltoall|Reduce_scatter(_block)?|Gather|Scatter)(_c)?|P?MPI_Barrier|"
    r"P?MPI_(Send|[SBR]send|Recv|Sendrecv)(_c)?|"
    r"(cuda(Stream|Device)|cu(Stream|Ctx))Synchronize(_ptsz|_ptds)?"
)
"""Names of these functions. Those of Gloo are none: a thread of its own waits, and theirs have no probe at the end."""
