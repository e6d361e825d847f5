from __future__ import annotations

import numpy as np
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.rows import ROW, UnwindTable, count_reasons, fits_cfa, fits_rbp, merge, pack


def table(base: int = 0) -> UnwindTable:
    words = [pack(rows.RSP, 1), pack(rows.RSP | rows.RBP_AT_CFA << 4, 2, -2), pack(rows.GAP)]
    return UnwindTable(base, merge(np.array([16, 17, 32], np.uint32), np.array(words, np.uint32)), {})


def test_a_row_is_eight_bytes() -> None:
    assert np.dtype(ROW).itemsize == rows.ROW_SIZE == 8
    assert table().rows[1].tobytes() == bytes([17, 0, 0, 0, 2, 0, 0xFE, 0x13])


def test_fields_are_what_was_packed() -> None:
    row = merge(np.zeros(1, np.uint32), np.array([pack(rows.PLT | rows.RBP_UNKNOWN << 4, -5, -128)], np.uint32))[0]
    assert (row["cfa"], row["rbp"], row["rule"]) == (-5, -128, 0x49)


def test_the_row_before_holds() -> None:
    found = table(0x1000).find(np.array([0, 0x100F, 0x1010, 0x1011, 0x101F, 0x1020, 1 << 63], np.uint64))
    assert (found["rule"] & 15).tolist() == [rows.GAP, rows.GAP, rows.RSP, rows.RSP, rows.RSP, rows.GAP, rows.GAP]
    assert found["cfa"].tolist() == [0, 0, 1, 2, 2, 0, 0]


def test_equal_neighbours_are_one() -> None:
    merged = merge(np.array([1, 2, 3, 4], np.uint32), np.array([7, 7, 8, 7], np.uint32))
    assert merged["pc"].tolist() == [1, 3, 4]


def test_limits_of_the_offsets() -> None:
    assert [fits_cfa(n) for n in (-32769, -32768, 32767, 32768)] == [False, True, True, False]
    assert [fits_rbp(n) for n in (-129, -128, 127, 128)] == [False, True, True, False]


def test_reasons_are_counted_but_what_the_compiler_said_is_not() -> None:
    words = [
        pack(rows.UNKNOWN, rows.DAMAGED), pack(rows.RSP, 3), pack(rows.UNKNOWN, rows.DAMAGED),
        pack(rows.RSP | rows.RBP_UNKNOWN << 4, 1, rows.RBP_OFFSET), pack(rows.RSP | rows.RBP_UNKNOWN << 4, 1),
    ]  # fmt: skip
    found = count_reasons(merge(np.arange(5, dtype=np.uint32), np.array(words, np.uint32)))
    assert found == {"damaged instructions": 2, "rbp offset that does not fit a row": 1}
