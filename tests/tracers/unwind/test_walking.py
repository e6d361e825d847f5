"""Walks in user space: one step of each kind of row, and where a walk ends."""

from __future__ import annotations

from collections.abc import Mapping as Words
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stallscope.tracers.images.maps import AddressSpace, Mapping
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.rows import UnwindTable, merge, pack
from stallscope.tracers.unwind.sections import UnwindError
from stallscope.tracers.unwind.walking import MOST_FRAMES, Registers, Walk, Walker

CODE, SP = 0x10000, 0x7000
LEAF, CALLER, START = 0x100, 0x200, 0x300
"""Functions of 0x100 bytes, as offsets in the code."""
SPACE = AddressSpace([Mapping(CODE, CODE + 0x1000, 0, "/bin/x", 1, 1)])
FILE: Any = SimpleNamespace(mapped_at=lambda offset: offset)


def walked(
    leaf: int, words: Words[int, int], *, caller: int | None = None, bp: int | None = None, leaf_at: int = 8
) -> Walk:
    """Walk from ``leaf_at`` in the function LEAF. ``words``: of the stack, by address."""
    rules = [pack(rows.GAP), leaf, pack(rows.RSP, 2) if caller is None else caller, pack(rows.END), pack(rows.GAP)]
    pcs = np.array([0, LEAF, CALLER, START, START + 0x100], np.uint32)
    table = UnwindTable(0, merge(pcs, np.array(rules, np.uint32)), {})
    cache: Any = SimpleNamespace(table=lambda elf: table)
    return Walker(cache).walk(SPACE, lambda mapping: FILE, Registers(CODE + LEAF + leaf_at, SP, bp), words.get)


def at(function: int, offset: int = 4) -> int:
    return CODE + function + offset


@pytest.mark.parametrize(
    ("leaf", "bp", "words"),
    [
        (pack(rows.RSP, 3), None, {SP + 16: at(CALLER), SP + 32: at(START)}),
        (pack(rows.RBP, 2), SP, {SP + 8: at(CALLER), SP + 24: at(START)}),
        (pack(rows.RSP_DEREF, 1), None, {SP + 8: SP + 64, SP + 56: at(CALLER), SP + 72: at(START)}),
        (pack(rows.RSP_DEREF_8, 1), None, {SP + 8: SP + 56, SP + 56: at(CALLER), SP + 72: at(START)}),
        (pack(rows.RBP_DEREF, -1), SP + 8, {SP: SP + 64, SP + 56: at(CALLER), SP + 72: at(START)}),
        (pack(rows.RBP_DEREF_8, -1), SP + 8, {SP: SP + 56, SP + 56: at(CALLER), SP + 72: at(START)}),
        (pack(rows.PLT, 11), None, {SP: at(CALLER), SP + 16: at(START)}),
    ],
)
def test_a_step_by_each_kind_of_row(leaf: int, bp: int | None, words: dict[int, int]) -> None:
    assert walked(leaf, words, bp=bp) == Walk((at(LEAF, 8), at(CALLER), at(START)), True)


def test_a_stub_that_has_pushed() -> None:
    found = walked(pack(rows.PLT, 11), {SP + 8: at(CALLER), SP + 24: at(START)}, leaf_at=11)
    assert found == Walk((at(LEAF, 11), at(CALLER), at(START)), True)


def test_an_interrupted_function_did_not_call() -> None:
    """A signal came before the first instruction of CALLER: one byte lower would be LEAF."""
    words = {SP + 16: SP + 64, SP + 24: at(CALLER, 0), SP + 72: at(START)}
    assert walked(pack(rows.SIGNAL, 2), words) == Walk((at(LEAF, 8), at(CALLER, 0), at(START)), True)


def test_a_call_may_be_the_last_instruction() -> None:
    """The return address of such a call is behind the function."""
    words = {SP + 8: CODE + START, SP + 24: at(START)}
    assert walked(pack(rows.RSP, 2), words).addresses == (at(LEAF, 8), CODE + START, at(START))


@pytest.mark.parametrize(
    ("kind", "operand", "words"),
    [
        (rows.RBP_AT_CFA, -2, {SP: SP + 40}),
        (rows.RBP_AT_RSP, 0, {SP: SP + 40}),
        (rows.RBP_SAME, 0, {}),
    ],
)
def test_the_callers_rbp(kind: int, operand: int, words: dict[int, int]) -> None:
    """LEAF has saved it, or it is the same; CALLER's frame is found by it."""
    words = {**words, SP + 8: at(CALLER), SP + 48: at(START)}
    found = walked(
        pack(rows.RSP | kind << 4, 2, operand),
        words,
        caller=pack(rows.RBP, 2),
        bp=SP + 40 if not words.get(SP) else None,
    )
    assert found == Walk((at(LEAF, 8), at(CALLER), at(START)), True)


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        (pack(rows.GAP), {}),
        (pack(rows.UNKNOWN), {}),
        (pack(rows.RBP, 2), {SP + 8: at(CALLER)}),
        (pack(rows.RSP, 2), {}),
        (pack(rows.RSP, 0), {SP - 8: at(CALLER)}),
        (pack(rows.RSP, 2), {SP + 8: 0x999}),
    ],
    ids=["no rule", "not expressed", "rbp is not known", "not in memory", "upwards", "no code"],
)
def test_a_walk_that_cannot_go_on_is_not_whole(leaf: int, words: dict[int, int]) -> None:
    assert walked(leaf, words) == Walk((at(LEAF, 8),), False)


def test_the_return_address_of_the_first_function_is_zero() -> None:
    assert walked(pack(rows.RSP, 2), {SP + 8: 0}) == Walk((at(LEAF, 8),), True)


def test_an_endless_stack_ends() -> None:
    words = {SP + 8 + 16 * i: at(CALLER) for i in range(2 * MOST_FRAMES)}
    assert len(walked(pack(rows.RSP, 2), words).addresses) == MOST_FRAMES


def test_a_file_without_tables() -> None:
    def table(elf: object) -> None:
        raise UnwindError("none")

    cache: Any = SimpleNamespace(table=table)
    walk = Walker(cache).walk(SPACE, lambda mapping: FILE, Registers(at(LEAF), SP, None), {}.get)
    assert walk == Walk((at(LEAF),), False)
