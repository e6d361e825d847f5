from __future__ import annotations

import struct

import numpy as np
import pytest
from stallscope.tracers.unwind import events
from stallscope.tracers.unwind.events import Addresses, Events, Programs, read_events
from stallscope.tracers.unwind.leb import LIMIT
from stallscope.tracers.unwind.rules import EXPRESSION, OFFSET, REGISTER, SAME, UNDEFINED, VAL_OFFSET, pack_rule

INITIAL = [7, 8, 7, 7, pack_rule(OFFSET, -8)]
PLAIN = Addresses(8, False, None)


def read(
    code: str, addresses: Addresses = PLAIN, pc: int = 0x1000, code_align: int = 1, data_align: int = -8
) -> Events:
    data = bytes.fromhex(code)
    one = np.ones(1, np.int64)
    programs = Programs(
        np.frombuffer(b"\xee\xee" + data, np.uint8), 2 * one, (2 + len(data)) * one, np.array([pc], np.uint64),
        code_align * one, data_align * one, np.array([INITIAL]),
    )  # fmt: skip
    return read_events(programs, addresses)


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("0e10", (1 << events.CFA_OFFSET, 0, 16)),
        ("137e", (1 << events.CFA_OFFSET, 0, 16)),
        ("0d06", (1 << events.CFA_REGISTER, 6, None)),
        ("0c8a0110", (3, 138, 16)),
        ("12067e", (3, 6, 16)),
        ("0f0196", (3, events.BY_EXPRESSION, 3)),
        ("8602", (1 << events.RULE_RBP, 0, pack_rule(OFFSET, -16))),
        ("9001", (1 << events.RULE_RA, 0, pack_rule(OFFSET, -8))),
        ("8703", (1 << events.RULE_RSP, 0, pack_rule(OFFSET, -24))),
        ("050603", (1 << events.RULE_RBP, 0, pack_rule(OFFSET, -24))),
        ("11067d", (1 << events.RULE_RBP, 0, pack_rule(OFFSET, 24))),
        ("2f0601", (1 << events.RULE_RBP, 0, pack_rule(OFFSET, 8))),
        ("140700", (1 << events.RULE_RSP, 0, pack_rule(VAL_OFFSET, 0))),
        ("0706", (1 << events.RULE_RBP, 0, pack_rule(UNDEFINED))),
        ("0806", (1 << events.RULE_RBP, 0, pack_rule(SAME))),
        ("091002", (1 << events.RULE_RA, 0, pack_rule(REGISTER, 2))),
        ("1006017600", (1 << events.RULE_RBP, 0, pack_rule(EXPRESSION, 4))),
        ("d0", (1 << events.RULE_RA, 0, pack_rule(OFFSET, -8))),
        ("0610", (1 << events.RULE_RA, 0, pack_rule(OFFSET, -8))),
        ("0a", (events.REMEMBER, 0, None)),
        ("0b", (events.RECALL, 0, None)),
    ],
)
def test_what_an_instruction_changes(code: str, event: tuple[int, int, int | None]) -> None:
    found = read(code)
    assert found.changes.tolist() == [events.START, event[0]]
    assert found.register.tolist() == [7, event[1]]
    assert event[2] is None or found.number.tolist() == [8, event[2]]
    assert not found.damaged.any()


@pytest.mark.parametrize("code", ["8302", "c3", "2e10", "00", "0703", "050302", "41", "0c", "01" + "00" * 8])
def test_what_changes_nothing(code: str) -> None:
    assert read(code).changes.tolist() == [events.START]


def test_numbers_beyond_any_frame_are_cut() -> None:
    huge = "ff" * 9 + "01"
    assert read("0e" + huge).number[1] == LIMIT
    assert read("86" + huge).number[1] >> 3 == -LIMIT
    assert read("04ffffffff0e10", code_align=0xFFFF).location[1] == LIMIT


@pytest.mark.parametrize(
    ("code", "align", "location"),
    [
        ("410e10", 1, 1), ("7f0e10", 4, 252), ("02ff0e10", 1, 255), ("0301020e10", 1, 0x201),
        ("04010000010e10", 2, 0x2000002),
    ],
)  # fmt: skip
def test_location(code: str, align: int, location: int) -> None:
    assert read(code, code_align=align).location.tolist() == [0, location]


@pytest.mark.parametrize("relative", [None, 0x5000])
@pytest.mark.parametrize(("layout", "signed"), [("<Q", False), ("<i", True), ("<h", True)])
def test_set_loc(relative: int | None, layout: str, signed: bool) -> None:
    width = struct.calcsize(layout)
    places = [4, 4 + width + 4]  # of the addresses in the section
    code = b""
    for place, target, tail in zip(places, (0x1010, 0x1020), (b"\x42\x0e\x10", b"\x41\x0e\x18"), strict=True):
        number = target if relative is None else target - relative - place
        code += b"\x01" + struct.pack(layout, number if signed else number % (1 << 64)) + tail
    found = read("41" + code.hex(), Addresses(width, signed, relative))
    assert not found.damaged.any()
    assert found.location.tolist() == [0, 0x12, 0x21]
    assert found.number.tolist() == [8, 16, 24]


@pytest.mark.parametrize("target", [0, 0xFFF, 0x1001, 1 << 63])
def test_set_loc_backwards_or_far_away(target: int) -> None:
    found = read("42" + "01" + struct.pack("<Q", target).hex() + "0e10")
    assert found.damaged.all()
