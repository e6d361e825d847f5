"""Bytes of calls of MPI. Of those of others: test_told.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collective_calls import ALL_GATHER_V, GATHER, MPI, MPI_BROADCAST, MPI_LARGE, Table
from stallscope.converters.collectives.operations import bytes_of, size_of_type
from stallscope.converters.collectives.signatures import signature_of
from stallscope.converters.model.collectives import UNKNOWN

FLOATS, OTHERS = 0x7F00_0000_1000, 0x7F00_0000_2000
MPICH_DOUBLE = 0x4C00080B
TYPES = {(10, FLOATS): 4, (10, OTHERS): 0}


def size(function: int, *arguments: int) -> int:
    table = Table()
    table.add(10, 0, function, *arguments)
    made = replace(table.made(), types=TYPES)
    signature = signature_of(made.names[function])
    assert signature
    return bytes_of(made, made.calls[0], signature)


@pytest.mark.parametrize(
    ("function", "arguments", "found"),
    [
        (MPI, (1, 2, 100, FLOATS, 5, 0x7000), 400),
        (MPI, (1, 2, 0xABCD_0000_0064, FLOATS, 5, 0x7000), 400),  # an int
        (MPI_LARGE, (1, 2, 1 << 32, FLOATS, 5, 0x7000), 1 << 34),
        (MPI, (1, 2, 100, OTHERS, 5, 0x7000), UNKNOWN),
        (MPI, (1, 2, 100, FLOATS + 8, 5, 0x7000), UNKNOWN),
        (MPI_BROADCAST, (1, 100, MPICH_DOUBLE, 0, 0x44000000), 800),
        (GATHER, (0x100, 100, FLOATS, 2, 300, FLOATS, 0, 0x7000), 400),
        (GATHER, ((1 << 64) - 1, 100, OTHERS, 2, 300, FLOATS, 0, 0x7000), 1200),  # in place at the root
        (ALL_GATHER_V, (1, 2, 3, 4, 5, 6, 7, 0x7000), UNKNOWN),
    ],
)
def test_bytes_of_a_rank(function: int, arguments: tuple[int, ...], found: int) -> None:
    assert size(function, *arguments) == found


def test_types_of_another_process_tell_nothing() -> None:
    assert (size_of_type(TYPES, 10, FLOATS), size_of_type(TYPES, 11, FLOATS)) == (4, 0)
