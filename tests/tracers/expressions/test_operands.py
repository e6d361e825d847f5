"""Operands of USDT probes: their C, compiled for this machine, against registers and memory that are known."""

from __future__ import annotations

import random
import shutil
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_c import MASK, run_c
from stallscope.tracers.expressions.asked import Asked, Fault
from stallscope.tracers.expressions.c_expressions import expression
from stallscope.tracers.expressions.operands import MOST, operand, places
from stallscope.tracers.expressions.types import Integer, Unreadable

REGISTERS = {"ax": 0x1122334455667788, "bx": MASK - 1, "r12": 0xFFFFFFFF80000001, "cx": 2, "dx": 8}
"""r9 is the address of memory, the second word of which is 2."""
CASES = {
    "8@%rax": 0x1122334455667788,
    "%rax": 0x1122334455667788,
    "4@%eax": 0x55667788,
    "2@%ax": 0x7788,
    "1@%al": 0x88,
    "1@%ah": 0x77,
    "-1@%al": 0x88 - 256 & MASK,
    "-8@%rbx": -2 & MASK,
    "-4@%ebx": -2 & MASK,
    "4@%r12d": 0x80000001,
    "-4@%r12d": 0x80000001 - (1 << 32) & MASK,
    "2@%r12w": 1,
    "1@%r12b": 1,
    "4@%rax": 0x55667788,
    "8@%ax": 0x7788,
    "-4@$-7": -7 & MASK,
    "8@$0xffffffffffffffff": MASK,
    "1@$300": 44,
    "8@(%r9)": 1,
    "8@8(%r9)": 2,
    "-8@16(%r9)": 0xFFFFFFFFFFFFFF85,
    "-1@0x10(%r9)": 0x85 - 256 & MASK,
    "1@16(%r9)": 0x85,
    "8@8(%r9,%rcx,8)": 4,
    "8@-8(%r9,%rcx,4)": 1,
    "8@(%r9,%rdx)": 2,
    "8@-16(,%rdx,2)": None,
}
"""None: memory that is not there."""
UNREADABLE = [
    "8f@%xmm0",
    "-4f@4(%rsp)",
    "8@%xmm1",
    "16@%rax",
    "3@%eax",
    "8@",
    "@%rax",
    "8@%rip",
    "8@16(%rip)",
    "-4@counter(%rip)",
    "8@counter",
    "8@(%rax,%rbx,3)",
    "8@()",
    "8@0x1234",
    "8@%fs:16",
    "8@$$1",
    "8@((%rax))",
    "8@%rax)); evil(); ((",
    "",
    "\0",
    "8@" + "9" * 4000 + "(%rax)",
    "8@$" + "9" * 4000,
]


def test_values(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    require(shutil.which("gcc") is not None, "there is no gcc")
    found = run_c([expression(operand(text)) for text in CASES], REGISTERS, tmp_path)
    assert {text: None if fault else value for text, (value, fault) in zip(CASES, found, strict=True)} == CASES


@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: text[:20])
def test_what_cannot_be_read(text: str) -> None:
    kind = operand(text).type
    assert isinstance(kind, Unreadable)
    assert len(kind.why) < 130
    with pytest.raises(Fault, match="this cannot be read: it is"):
        Asked.parse(sums=["arg1"]).bind(places("p:n", [[text]])[0], {})


def test_damaged_operands_are_never_code() -> None:
    """Nothing of a note is in the C but numbers and registers, whatever it says."""
    chance, letters = random.Random(3), string.ascii_letters + string.digits + "@%$(),-+; \n\x1b\u202e"
    for _ in range(20_000):
        text = list(chance.choice(list(CASES)))
        for _ in range(chance.randrange(1, 4)):
            text[chance.randrange(len(text))] = chance.choice(letters)
        node = operand("".join(text))
        if not isinstance(node.type, Unreadable):
            assert isinstance(node.type, Integer)
            assert set(expression(node)) <= set("abcdefghijklmnoprstuxULEFABCD0123456789()_ ->+*&,")


def test_arguments_of_several_places() -> None:
    """An argument that has a sign in one place has one in all."""
    same, mixed, absent, odd = (
        places("p:n", sites)
        for sites in (
            [["-4@%eax", "8@%rbx"], ["-8@$5", "2@%cx"]],
            [["-4@%eax"], ["4@%ebx"]],
            [["-4@%eax", "8@%rbx"], ["-4@%eax"]],
            [["-4@%eax"], ["8@%rbx"]],
        )
    )
    asked = Asked.parse(sums=["arg1"])
    for names in (*same, *mixed):
        (values,) = asked.bind(names, {}).values
        assert isinstance(values.nodes[0].type, Integer)
        assert values.nodes[0].type.signed
    (values,) = asked.bind(absent[1], {}).values
    with pytest.raises(Fault, match="not in all places"):
        Asked.parse(sums=["arg2"]).bind(absent[1], {})
    with pytest.raises(Fault, match="signed in one place"):
        asked.bind(odd[0], {})


def test_what_there_is_not() -> None:
    for arguments, said in (([], "has no arguments"), (["8@%rax"], "has 1 argument"), (["8@%rax"] * 2, "has 2 arg")):
        (names,) = places("p:n", [arguments])
        with pytest.raises(Fault, match=f"p:n {said}"):
            Asked.parse(sums=[f"arg{MOST}"]).bind(names, {})
    (names,) = places("p:n", [["8@%rax"] * 20])
    assert "arg13" not in names


def test_a_constant_of_the_probe_is_none_of_the_user() -> None:
    (names,) = places("p:n", [["-4@$0"]])
    Asked.parse(where=["arg1 == 5 && 7 / arg1"]).bind(names, {})
