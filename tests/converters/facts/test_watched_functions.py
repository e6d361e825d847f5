"""Functions whose calls a trace sees, beside those that have probes."""

from __future__ import annotations

import pytest
from stallscope.converters.collectives.signatures import (
    COLLECTIVE,
    GLOO,
    POINT_TO_POINT,
    SIGNATURES,
    WAITS,
    signature_of,
)
from stallscope.converters.facts.watched_functions import WATCHED


def test_all_in_which_ranks_wait_are_watched() -> None:
    kinds = (COLLECTIVE, POINT_TO_POINT, WAITS)
    mine = {name: of for name, of in SIGNATURES.items() if of.kind in kinds and of.library != GLOO}
    waits = [name for name, of in mine.items() if of.request < 0]  # the others only begin an operation
    assert [name for name in waits if not WATCHED.fullmatch(name)] == []


@pytest.mark.parametrize(
    "name", ["PMPI_Allreduce", "ncclAllReduceConfig", "cudaStreamSynchronize_ptsz", "ncclGroupEnd", "ncclCommInitRank"]
)
def test_all_that_are_watched_have_probes(name: str) -> None:
    assert WATCHED.fullmatch(name) and signature_of(name)


@pytest.mark.parametrize("name", ["MPI_Waitall", "MPI_Wait", "cudaEventSynchronize", "ncclCommGetAsyncError", ""])
def test_others_are_not(name: str) -> None:
    assert not WATCHED.fullmatch(name)
