"""Threads that are in one collective operation for all of a trace."""

from __future__ import annotations

from job_profiles import MEET, job, polling_ranks, stuck
from stallscope.converters.model import Module, Profile
from stallscope.converters.model.collectives import Watched
from stallscope.converters.rules.standing_ranks import Stands, standing_in
from stallscope.converters.summary.judging import read
from summary_profiles import EXE, LIBC, SLEEP, user

CUDART = Module("/opt/cuda/libcudart.so.12")
MPI = Module("/usr/lib/libmpi.so.40")
ALL_REDUCE = (*user(EXE, "main", "step"), *user(MPI, "PMPI_Allreduce"))
PROGRESS = (*ALL_REDUCE, *user(Module("/usr/lib/libopen-pal.so.40"), "opal_progress"))
YIELD = (*PROGRESS, *user(LIBC, "sched_yield"))
RECEIVE = (*user(EXE, "main", "step"), *user(MPI, "PMPI_Recv"))
COMPUTE = user(EXE, "main", "step", "compute")


def found(profile: Profile, pid: int = 100) -> Stands | None:
    return standing_in(read(profile).facts, pid)


def test_one_that_is_blocked() -> None:
    stands = found(stuck())
    assert stands and stands.place and (stands.thread, stands.meets, stands.for_all) == ((100, 100), True, True)
    assert (stands.frames, stands.operation) == (("main", "MPI_Allreduce", "poll"), ("main", "MPI_Allreduce"))
    assert found(stuck(), 101) is None, "it sleeps again and again"
    assert found(job(0.0, 0.0)) is None, "it moved"


def test_one_that_polls_and_made_no_call() -> None:
    stands = found(polling_ranks({PROGRESS: 60, YIELD: 40}))
    assert stands == ((100, 100), ("main", "step", "PMPI_Allreduce"), True, True, None)
    message = found(polling_ranks({RECEIVE: 100}))
    assert message and (message.meets, message.for_all) == (True, False)


def test_a_loop_of_nothing_but_the_operation_does_not_stand() -> None:
    """All of its samples look the same: only the calls tell."""
    made = polling_ranks({PROGRESS: 60, YIELD: 40}, calls=1)
    assert found(made) is None, "it came out, and went in again"
    made.watched = []
    assert found(made) is None, "nobody looked for its calls"
    made.watched = [Watched(101, 0)]
    assert found(made) is None, "of another process"


def test_samples_elsewhere() -> None:
    assert found(polling_ranks({PROGRESS: 999, COMPUTE: 1})) is None
    assert found(polling_ranks({PROGRESS: 50, RECEIVE: 50})) is None, "in two operations, one after the other"
    assert found(polling_ranks({COMPUTE: 100})) is None
    assert found(polling_ranks({PROGRESS: 9})) is None, "too few"
    assert found(polling_ranks({PROGRESS: 10}))


def test_an_operation_whose_calls_are_not_watched() -> None:
    """Nobody knows how often it returned."""
    wait_all = (*user(EXE, "main"), *user(MPI, "PMPI_Waitall"))
    assert found(polling_ranks({wait_all: 100})) is None
    query = (*user(EXE, "main"), *user(CUDART, "cudaEventSynchronize"))
    assert found(polling_ranks({query: 100})) is None


def test_one_that_polls_for_its_gpu() -> None:
    stands = found(polling_ranks({(*user(EXE, "main"), *user(CUDART, "cudaStreamSynchronize")): 100}))
    assert stands and (stands.frames, stands.meets) == (("main", "cudaStreamSynchronize"), False)


def test_it_is_blocked_now_and_then() -> None:
    assert found(polling_ranks({PROGRESS: 100}, waits=MEET)), "in the operation"
    assert found(polling_ranks({PROGRESS: 100}, waits=SLEEP)) is None
