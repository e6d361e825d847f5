"""The machine on instructions that no assembler writes, and beside one that runs them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.events import Addresses, Programs
from stallscope.tracers.unwind.machine import BLANK, run, run_initial
from stallscope.tracers.unwind.rows import pack
from stallscope.tracers.unwind.rules import NOT_TOLD, OFFSET, REG_RA, REG_RBP, REG_RSP, State, encode, pack_rule

INITIAL = (7, 8, NOT_TOLD, NOT_TOLD, pack_rule(OFFSET, -8))
START = pack(rows.RSP, 1)
DAMAGED = pack(rows.UNKNOWN, rows.DAMAGED)

Row = tuple[int, int]


def programs_of(codes: list[bytes], initial: tuple[int, ...], code_align: int = 1) -> Programs:
    sizes = np.array([len(code) for code in codes])
    end = np.cumsum(sizes + 1)
    one = np.ones(len(codes), np.int64)
    octets = np.frombuffer(b"".join(b"\x99" + code for code in codes), np.uint8)
    pc = np.zeros(len(codes), np.uint64)
    return Programs(
        octets, end - sizes, end, pc, code_align * one, -8 * one, np.tile(np.array(initial), (len(codes), 1))
    )


def run_all(codes: list[bytes], initial: tuple[int, ...] = INITIAL, code_align: int = 1) -> list[list[Row]]:
    found = run(programs_of(codes, initial, code_align), Addresses(8, False, None), [1000])
    both = list(zip(found.location.tolist(), found.word.tolist(), strict=True))
    ends = np.cumsum(found.counts)
    assert ends[-1] == len(both)
    return [both[end - count : end] for end, count in zip(ends.tolist(), found.counts.tolist(), strict=True)]


def run_one(code: str, initial: tuple[int, ...] = INITIAL, code_align: int = 1) -> list[Row]:
    return run_all([bytes.fromhex(code)], initial, code_align)[0]


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("", START),
        ("110602", pack(rows.RSP | rows.RBP_AT_CFA << 4, 1, -2)),  # offset_extended_sf
        ("050603", pack(rows.RSP | rows.RBP_AT_CFA << 4, 1, -3)),  # offset_extended
        ("2f067e0606", START),  # negative_offset_extended, then restore_extended
        ("2f0601", pack(rows.RSP | rows.RBP_AT_CFA << 4, 1, 1)),
        ("12077d", pack(rows.RSP, 3)),  # def_cfa_sf
        ("137c", pack(rows.RSP, 4)),  # def_cfa_offset_sf
        ("140700", START),  # val_offset of rsp: the CFA, as always
        ("150700", START),
        ("150701", pack(rows.UNKNOWN, rows.SP_ELSEWHERE)),
        ("1606027700", pack(rows.RSP | rows.RBP_UNKNOWN << 4, 1, rows.RBP_ELSEWHERE)),  # val_expression
        ("2e10", START),  # GNU_args_size
        ("8f028e03", START),  # registers that no walk needs
        ("0f03771006", pack(rows.RSP_DEREF, 2)),
        ("0f03771006" "0c0710", pack(rows.RSP, 2)),  # a register again
        ("0a" * 40 + "0e18" + "0b" * 40, START),
        ("0a0e10" "0a0e180b", pack(rows.RSP, 2)),
    ],
)  # fmt: skip
def test_instruction(code: str, word: int) -> None:
    assert run_one(code) == [(0, word)]


@pytest.mark.parametrize(
    "code",
    [
        "0b",  # restore_state without remember_state
        "0a0b0b0a",
        "0e",  # cut short
        "0e80",
        "4103",
        "0f0377",
        "0fff7f",  # an expression of 16 KiB
        "0f03771006" "0e10",  # def_cfa_offset where the CFA is no register
        "0f03771006" "410d06",
        "0a0f03771006410b0a0f03771006" "137c",
        "2d", "1d" + "00" * 8, "3f",  # other machines'
        "0e" + "80" * 300,
        "42" "01" "0100000000000000",  # set_loc backwards
    ],
)  # fmt: skip
def test_nonsense_is_one_unknown_row(code: str) -> None:
    good = bytes.fromhex("410e10")
    expected = [(0, START), (1, pack(rows.RSP, 2))]
    assert run_all([good, bytes.fromhex(code), good]) == [expected, [(0, DAMAGED)], expected]


def test_steps_without_change_or_distance_leave_no_row() -> None:
    assert run_one("41" "41" "400e20" "400e10" "0200" "4342") == [(0, START), (2, pack(rows.RSP, 2))]  # fmt: skip


def test_restore_is_to_the_rules_of_the_cie() -> None:
    initial = (*INITIAL[:2], pack_rule(OFFSET, -16), *INITIAL[3:])
    saved = pack(rows.RSP | rows.RBP_AT_CFA << 4, 1, -2)
    assert run_one("0806" "41" "c6", initial) == [(0, START), (1, saved)]  # fmt: skip


def test_set_loc() -> None:
    assert run_one("41" "01" "1000000000000000" "0e10" "41" "0e18") == [
        (0, START), (16, pack(rows.RSP, 2)), (17, pack(rows.RSP, 3)),
    ]  # fmt: skip


def test_alignment_of_code() -> None:
    assert run_one("410e10", code_align=4) == [(0, START), (4, pack(rows.RSP, 2))]


def initial_of(*codes: str) -> list[tuple[int, ...] | None]:
    rules, damaged = run_initial(programs_of([bytes.fromhex(code) for code in codes], BLANK))
    return [None if bad else tuple(row) for row, bad in zip(rules.tolist(), damaged.tolist(), strict=True)]


def test_rules_of_common_entries() -> None:
    assert initial_of("0c07089001") == [INITIAL]
    assert initial_of("", "0c0708", "0c07089001418602", "0a0b", "0c07089001860200", "0a", "0b", "0e10") == [
        BLANK, (7, 8, *BLANK[2:]), None, BLANK, (*INITIAL[:2], pack_rule(OFFSET, -16), *INITIAL[3:]), None, None, None,
    ]  # fmt: skip


def test_common_entry_that_says_too_little() -> None:
    assert run_one("00", (7, 8, *BLANK[2:])) == [(0, pack(rows.UNKNOWN, rows.RA_ELSEWHERE))]


def one_by_one(code: bytes) -> list[Row]:  # noqa: C901
    """Rows as DWARF 5 says of a few instructions, without sharing any code with what is tested."""
    first = State(7, 8, b"", None, None, (OFFSET, -8))
    state, stack, at, location = first, [], 0, 0
    found: dict[int, int] = {}
    while at < len(code):
        op, at = code[at], at + 1
        need = {0x02: 1, 0x0C: 2, 0x0D: 1, 0x0E: 1, 0x08: 1}.get(op, 1 if op & 0xC0 == 0x80 else 0)
        operands = list(code[at : at + need])
        at += need
        if len(operands) < need:
            return [(0, DAMAGED)]
        found[location] = encode(state)
        if op == 0x02 or op & 0xC0 == 0x40:
            location += operands[0] if op == 0x02 else op & 0x3F
        elif op & 0xC0:
            rule = (OFFSET, -8 * operands[0]) if op & 0xC0 == 0x80 else None
            name = {REG_RBP: "rbp", REG_RSP: "rsp", REG_RA: "ra"}.get(op & 0x3F)
            if name:
                state = state._replace(**{name: rule if op & 0xC0 == 0x80 else getattr(first, name)})
        elif op == 0x0C:
            state = state._replace(register=operands[0], offset=operands[1])
        elif op in (0x0D, 0x0E):
            state = state._replace(**{"register" if op == 0x0D else "offset": operands[0]})
        elif op == 0x0A:
            stack.append(state)
        elif op == 0x0B:
            if not stack:
                return [(0, DAMAGED)]
            state = stack.pop()
    found[location] = encode(state)
    merged: list[Row] = []
    for place, word in sorted(found.items()):
        if not merged or merged[-1][1] != word:
            merged.append((place, word))
    return merged


OPERAND = st.sampled_from([0, 1, 2, 3, 6, 7, 8, 16, 24, 127])
INSTRUCTION = st.one_of(
    st.sampled_from([b"\0", b"\x40", b"\x41", b"\x43", b"\x0a", b"\x0b", b"\xc6", b"\xd0", b"\xc3"]),
    st.builds(lambda op, n: bytes([op, n]), st.sampled_from([0x02, 0x0D, 0x0E, 0x86, 0x87, 0x90, 0x83]), OPERAND),
    st.builds(lambda n, m: bytes([0x0C, n, m]), OPERAND, OPERAND),
)
CODE = st.builds(
    lambda parts, cut: b"".join(parts)[: -cut or None], st.lists(INSTRUCTION, max_size=25), st.integers(0, 1)
)


@settings(max_examples=400)
@given(st.lists(CODE, min_size=1, max_size=8), st.booleans())
def test_as_one_by_one(codes: list[bytes], many: bool) -> None:
    codes = codes * 12 if many else codes
    assert run_all(codes) == [one_by_one(code) for code in codes]


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4))
def test_any_bytes(codes: list[bytes]) -> None:
    for found in run_all(codes):
        locations = [at for at, _ in found]
        assert locations[0] == 0
        assert sorted(set(locations)) == locations
