from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.rows import pack
from stallscope.tracers.unwind.rules import (
    EXPRESSION,
    NOT_TOLD,
    OFFSET,
    REG_RSP,
    SAME,
    VAL_OFFSET,
    Rule,
    State,
    States,
    TooVariedError,
    encode,
    encode_all,
    pack_rule,
)  # fmt: skip

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


BLOCKS = [PLT, bytes.fromhex("767806"), bytes.fromhex("77a00106"), bytes.fromhex("77a801"), b"", bytes.fromhex("7600")]
OCTETS = np.frombuffer(b"".join(bytes([len(block)]) + block for block in BLOCKS), np.uint8)
PLACES = [sum(len(block) + 1 for block in BLOCKS[:i]) for i in range(len(BLOCKS))]

OFFSETS = st.one_of(st.integers(-20, 20).map(lambda n: 8 * n), st.integers(-300_000, 300_000), st.integers(-5, 5))
RULES = st.one_of(
    st.just(NOT_TOLD), st.builds(pack_rule, st.integers(0, 4), OFFSETS),
    st.builds(pack_rule, st.integers(5, 6), st.sampled_from(PLACES)), st.just(pack_rule(OFFSET, -8)),
)  # fmt: skip
STATES = st.one_of(
    st.tuples(st.sampled_from([7, 6, 10]), OFFSETS, RULES, RULES, RULES),
    st.tuples(st.sampled_from([7, 6]), OFFSETS, RULES, st.just(NOT_TOLD), st.just(pack_rule(OFFSET, -8))),
    st.tuples(st.just(-1), st.sampled_from([-1, *PLACES]), RULES, RULES, RULES),
)


def unpacked(packed: int) -> Rule | None:
    kind, operand = packed & 7, packed >> 3
    if kind == NOT_TOLD:
        return None
    return (kind, BLOCKS[PLACES.index(operand)]) if kind >= EXPRESSION else (kind, operand)


@given(st.lists(STATES, min_size=1, max_size=30))
def test_in_bulk_as_one_by_one(states: list[tuple[int, ...]]) -> None:
    expected = []
    for register, offset, *told in states:
        code = b"" if register >= 0 or offset < 0 else BLOCKS[PLACES.index(offset)]
        expected.append(encode(State(register, max(register, 0) and offset, code, *map(unpacked, told))))
    columns = States(*np.array(states, np.int64).T)
    assert encode_all(columns, OCTETS, [30]).tolist() == expected


@pytest.mark.parametrize(("limit", "refused"), [(99, True), (100, False)])
def test_too_many_different_rules(limit: int, refused: bool) -> None:
    budget = [limit]
    column = np.full(100, NOT_TOLD)
    states = States(np.arange(100) + 20, column, column, column, np.full(100, pack_rule(OFFSET, -8)))
    if refused:
        with pytest.raises(TooVariedError):
            encode_all(states, OCTETS, budget)
    else:
        assert set(encode_all(states, OCTETS, budget).tolist()) == {pack(rows.UNKNOWN, rows.CFA_REGISTER)}
        with pytest.raises(TooVariedError):
            encode_all(states, OCTETS, budget)
