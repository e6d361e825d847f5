"""The machine on instructions that no assembler writes."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.tracers.unwind import program, rows
from stallscope.tracers.unwind.program import Machine, ProgramError, TooVariedError
from stallscope.tracers.unwind.rows import pack

INITIAL = bytes.fromhex("0c07089001")  # def_cfa rsp+8, offset ra 1
START = pack(rows.RSP, 1)
DAMAGED = pack(rows.UNKNOWN, rows.DAMAGED)


def run(code: str, machine: Machine | None = None) -> list[tuple[int, int]]:
    locations, words = array("I"), array("I")
    machine = machine or Machine(1, -8, INITIAL)
    assert machine.run(bytes.fromhex(code), locations, words) == len(locations) == len(words)
    return list(zip(locations, words, strict=True))


@pytest.mark.parametrize(
    ("code", "word"),
    [
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
    ],
)  # fmt: skip
def test_instruction(code: str, word: int) -> None:
    assert run(code) == [(0, word)]


@pytest.mark.parametrize(
    "code",
    [
        "01" + "00" * 8,  # set_loc
        "0b",  # restore_state without remember_state
        "0a" * 40,
        "0e",  # cut short
        "0e80",
        "4103",
        "0f0377",
        "0fff7f",  # an expression of 16 KiB
        "0f03771006" "0e10",  # def_cfa_offset where the CFA is no register
        "0f03771006" "0d06",
        "2d", "1d" + "00" * 8, "3f",  # other machines'
        "04ffffffff" "04ffffffff" "0e10",  # beyond 4 GiB
        "0e" + "80" * 300,
    ],
)  # fmt: skip
def test_nonsense_is_one_unknown_row(code: str) -> None:
    machine = Machine(1, -8, INITIAL)
    assert run(code, machine) == [(0, DAMAGED)]
    assert run("410e10", machine) == [(0, START), (1, pack(rows.RSP, 2))]


def test_steps_without_change_or_distance_leave_no_row() -> None:
    assert run("41" "41" "400e20" "400e10" "0200" "4342") == [(0, START), (2, pack(rows.RSP, 2))]  # fmt: skip


def test_restore_is_to_the_rules_of_the_cie() -> None:
    machine = Machine(1, -8, bytes.fromhex("0c070890018602"))
    saved = pack(rows.RSP | rows.RBP_AT_CFA << 4, 1, -2)
    assert run("0806" "41" "c6", machine) == [(0, START), (1, saved)]  # fmt: skip


def test_alignment_of_code() -> None:
    assert run("410e10", Machine(4, -8, INITIAL)) == [(0, START), (4, pack(rows.RSP, 2))]


@pytest.mark.parametrize("initial", ["0c0708", "", "900141"])
def test_cie_that_says_too_little(initial: str) -> None:
    if initial.endswith("41"):
        with pytest.raises(ProgramError):
            Machine(1, -8, bytes.fromhex(initial))
    else:
        assert run("00", Machine(1, -8, bytes.fromhex(initial))) == [(0, pack(rows.UNKNOWN, rows.RA_ELSEWHERE))]


def test_too_many_different_rules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MAX_NODES", 50)
    with pytest.raises(TooVariedError):
        run("".join(f"0e{n:02x}41" for n in range(100)))


@given(st.binary(max_size=60))
def test_any_bytes(code: bytes) -> None:
    locations = [at for at, _ in run(code.hex())]
    assert locations
    assert locations[0] == 0
    assert sorted(set(locations)) == locations
