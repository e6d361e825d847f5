from __future__ import annotations

import io

import pytest
from rich.console import Console
from stallscope.converters.model.copies import Copies
from stallscope.converters.summary.copies_table import copies_table, size_text

H2D, D2H = "host to device", "device to host"


def lines(*copies: Copies, top: int = 5) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=200).print(copies_table(copies, top))
    return [" ".join(line.split()) for line in file.getvalue().splitlines()]


def test_processes_are_added_up_by_function_and_direction() -> None:
    made = [
        Copies("cudaMemcpy", "libcudart.so.12", 1, "a", H2D, False, 3, 3 << 20, 0, 2_000_000, 1_000_000),
        Copies("cudaMemcpy", "libcudart.so.12", 2, "b", H2D, False, 1, 1 << 20, 0, 2_000_000, 1_000_000),
        Copies("cudaMemcpyAsync", "libcudart.so.12", 1, "a", D2H, True, 7, 700, 2, 1_000),
    ]
    assert lines(*made)[1:] == [
        "4 4.00 MiB 1.00 MiB 4.00 ms 50.0 % 1,000 MiB/s host to device, sync: cudaMemcpy libcudart.so.12",
        "7 700 B 140 B 1.00 µs 0.0 % - device to host, async: cudaMemcpyAsync libcudart.so.12; "
        "2 of them of unknown size",
    ]
    assert lines(*made, top=1)[2:] == ["1 more function"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1_500_000, "1.43 MiB"), (1 << 60, "1,024 PiB")],
)
def test_sizes(number: int, text: str) -> None:
    assert size_text(number) == text
