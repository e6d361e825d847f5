from __future__ import annotations

import numpy as np
import pytest
from stallscope.tracers.unwind import instructions
from stallscope.tracers.unwind.instructions import INSTRUCTION, PADDING, START, find_instructions


def find(*codes: str, width: int = 8) -> list[tuple[list[int], bool]]:
    """Places where the instructions of each program begin, and whether it is damaged."""
    data = b"".join(b"\0" + bytes.fromhex(code) for code in codes)
    sizes = np.array([len(bytes.fromhex(code)) for code in codes])
    end = np.cumsum(sizes + 1)
    part = np.frombuffer(data + b"\x80" * PADDING, np.uint8)
    marks, damaged = find_instructions(part, end - sizes, end, width)
    assert np.flatnonzero(marks == START).tolist() == (end - sizes - 1).tolist()
    return [
        (np.flatnonzero(marks[stop - size : stop] == INSTRUCTION).tolist(), bool(bad))
        for size, stop, bad in zip(sizes.tolist(), end.tolist(), damaged, strict=True)
    ]


@pytest.mark.parametrize(
    ("code", "begins"),
    [
        ("", []),
        ("00 41 0a 0b c6", [0, 1, 2, 3, 4]),
        ("0280 03aabb 04aabbccdd 00", [0, 2, 5, 10]),
        ("8602 869001 0e10 0e9002 0d06 00", [0, 2, 5, 7, 10, 12]),
        ("0c0708 0c87 00 8801 00", [0, 3, 8]),
        ("0f03771006 10060276 00 00", [0, 5, 10]),
        ("0f8001" + "96" * 128 + "00", [0, 131]),
        ("1606027700 2e8001 2f0601 1106 7e", [0, 5, 8, 11]),
        ("0e8080808080808080 8001 00", [0, 11]),
    ],
)
@pytest.mark.parametrize("copies", [1, 60, 200])
def test_where_instructions_begin(code: str, begins: list[int], copies: int) -> None:
    assert find(*[code] * copies) == [(begins, False)] * copies


@pytest.mark.parametrize("width", [2, 4, 8])
def test_width_of_an_address(width: int) -> None:
    assert find("01" + "aa" * width + "00", width=width) == [([0, 1 + width], False)]


@pytest.mark.parametrize(
    "code", ["0e", "0e80", "4103", "0f0377", "0fff7f", "1d" + "00" * 8, "2d", "3f", "0e" + "80" * 10 + "01", "0f8040"]
)
@pytest.mark.parametrize("copies", [1, 60])
def test_damage_is_told(code: str, copies: int) -> None:
    found = find(*["00", code] * copies)
    assert [bad for _, bad in found] == [False, True] * copies


def test_one_long_program_among_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = ["0e10" * 500, *["41"] * 100, "8602" * 300]
    expected = [([*range(0, 1000, 2)], False), *[([0], False)] * 100, ([*range(0, 600, 2)], False)]
    for few in (0, 1, 1000):
        monkeypatch.setattr(instructions, "_FEW", few)
        assert find(*codes) == expected
