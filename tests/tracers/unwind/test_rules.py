from __future__ import annotations

import pytest
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.rows import pack
from stallscope.tracers.unwind.rules import EXPRESSION, OFFSET, REG_RSP, SAME, VAL_OFFSET, State, encode

NORMAL = State(REG_RSP, 16, b"", None, None, (OFFSET, -8))
PLT = bytes.fromhex("770880003f1a3b2a332422")
SIGNAL = State(
    -1, 0, bytes.fromhex("77a00106"), (EXPRESSION, bytes.fromhex("77f800")), (EXPRESSION, bytes.fromhex("77a001")),
    (EXPRESSION, bytes.fromhex("77a801")),
)  # fmt: skip


def by(code: str) -> State:
    return NORMAL._replace(register=-1, offset=0, expression=bytes.fromhex(code))


def test_linkage_table_stub() -> None:
    assert encode(by(PLT.hex())) == pack(rows.PLT, 11)
    assert encode(by(PLT.replace(b"\x3b", b"\x39").hex())) == pack(rows.PLT, 9)
    other_mask = PLT.replace(b"\x3f", b"\x3e").hex()
    assert encode(by(other_mask)) == pack(rows.UNKNOWN, rows.CFA_EXPRESSION)


def test_signal_frame() -> None:
    assert encode(SIGNAL) == pack(rows.SIGNAL | rows.RBP_AT_RSP << 4, 20, 15)
    assert encode(SIGNAL._replace(rsp=None)) == encode(SIGNAL)


@pytest.mark.parametrize(
    "state",
    [
        SIGNAL._replace(ra=(EXPRESSION, bytes.fromhex("77b001"))),
        SIGNAL._replace(ra=(EXPRESSION, bytes.fromhex("76a801"))),
        SIGNAL._replace(rsp=(EXPRESSION, bytes.fromhex("77a801"))),
        SIGNAL._replace(rsp=(OFFSET, 0)),
        SIGNAL._replace(expression=bytes.fromhex("77a001")),
    ],
)
def test_nearly_a_signal_frame(state: State) -> None:
    assert encode(state) == pack(rows.UNKNOWN, rows.RA_ELSEWHERE)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("7710", pack(rows.RSP, 2)),
        ("7610", pack(rows.RBP, 2)),
        ("77102308", pack(rows.RSP, 3)),
        ("76780623" "08", pack(rows.RBP_DEREF_8, -1)),
        ("7678062310", pack(rows.UNKNOWN, rows.CFA_EXPRESSION)),
        ("73000" "6", pack(rows.UNKNOWN, rows.CFA_EXPRESSION)),
        ("770406", pack(rows.UNKNOWN, rows.CFA_OFFSET)),
        ("77", pack(rows.UNKNOWN, rows.CFA_EXPRESSION)),
        ("", pack(rows.UNKNOWN, rows.CFA_EXPRESSION)),
        ("77100606", pack(rows.UNKNOWN, rows.CFA_EXPRESSION)),
    ],
)  # fmt: skip
def test_expression(code: str, word: int) -> None:
    assert encode(by(code)) == word


@pytest.mark.parametrize(
    ("offset", "word"),
    [
        (-16, pack(rows.RSP | rows.RBP_AT_CFA << 4, 2, -2)),
        (-1024, pack(rows.RSP | rows.RBP_AT_CFA << 4, 2, -128)),
        (-1032, pack(rows.RSP | rows.RBP_UNKNOWN << 4, 2, rows.RBP_OFFSET)),
        (-12, pack(rows.RSP | rows.RBP_UNKNOWN << 4, 2, rows.RBP_OFFSET)),
        (1 << 70, pack(rows.RSP | rows.RBP_UNKNOWN << 4, 2, rows.RBP_OFFSET)),
    ],
)
def test_where_rbp_is(offset: int, word: int) -> None:
    assert encode(NORMAL._replace(rbp=(OFFSET, offset))) == word


def test_return_address_must_be_below_the_cfa() -> None:
    for rule in (None, (OFFSET, -16), (SAME, 0), (VAL_OFFSET, -8)):
        assert encode(NORMAL._replace(ra=rule)) == pack(rows.UNKNOWN, rows.RA_ELSEWHERE)
