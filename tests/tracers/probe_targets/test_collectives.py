"""Cookies of functions of communication libraries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stallscope.tracers.probe_targets.collectives import cookie

HEADER = Path(__file__).parents[3] / "bpf" / "include" / "call_cookie.h"


def bit(name: str) -> int:
    found = re.search(rf"#define {name} \(1ULL << (\d+)\)", HEADER.read_text())
    assert found
    return 1 << int(found[1])


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("ncclAllReduce", ""),
        ("ncclCommInitRank", "COOKIE_MADE_FIRST"),
        ("ncclCommSplit", "COOKIE_MADE_FOURTH"),
        ("PMPI_Allreduce", ""),
        ("cudaStreamSynchronize", ""),
    ],
)
def test_their_calls_are_kept(name: str, made: str) -> None:
    assert cookie(name) == bit("COOKIE_ARGUMENTS") | (bit(made) if made else 0)


@pytest.mark.parametrize("name", ["cudaMemcpy", "ncclFoo", "main", ""])
def test_others_are_not(name: str) -> None:
    assert cookie(name) == 0
