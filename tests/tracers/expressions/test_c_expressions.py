"""The C of expressions, compiled for this machine and compared with the same arithmetic in Python."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_c import MASK, run_c
from stallscope.tracers.expressions import nodes
from stallscope.tracers.expressions.asked import Asked
from stallscope.tracers.expressions.c_expressions import expression
from stallscope.tracers.expressions.nodes import Node

ARGUMENTS = {"arg1": 5, "arg2": (1 << 64) - 3, "arg3": 1 << 40, "arg4": 0, "arg5": 0x80, "retval": -7}
REGISTERS = {"arg1": "di", "arg2": "si", "arg3": "dx", "arg4": "cx", "arg5": "r8", "retval": "ax"}
COMM = b"a thread"
TEXT = b"hello"


def compiled(texts: list[str], folder: Path) -> list[tuple[int, int]]:
    """The 64 bits of each expression, and whether it faulted."""
    bound = [Asked.parse(sums=[text]).bind().values[0] for text in texts]
    registers = {REGISTERS[name]: value for name, value in ARGUMENTS.items()}
    return run_c([expression(values.nodes[0]) for values in bound], registers, folder)


@pytest.fixture
def run(require: Callable[[bool, str], None], tmp_path: Path) -> Callable[[list[str]], list[tuple[int, int]]]:
    require(shutil.which("gcc") is not None, "there is no gcc")
    return lambda texts: compiled(texts, tmp_path)


CASES = {
    "arg1": 5,
    "arg1 - 6": MASK,
    "retval": -7 & MASK,
    "retval / 2": -3 & MASK,
    "retval % 4": -3 & MASK,
    "retval >> 1": -4 & MASK,
    "arg2 >> 62": 3,
    "arg1 << arg3": 0,
    "i8(arg5)": -128 & MASK,
    "u8(retval)": 249,
    "-arg1": -5 & MASK,
    "~arg4": MASK,
    "!arg4 + !arg1": 1,
    "retval < arg1": 1,
    "arg2 > retval": 1,
    "retval == arg2": 0,
    "retval < 0 && arg1 > 4": 1,
    "arg4 && *u8*(arg4)": 0,
    "arg1 || *u8*(arg4)": 1,
    "pid * 100 + tid": 1234,
    "*u64*(arg6)": 1,
    "u64*(arg6)[1]": 2,
    "*i8*(arg6 + 16)": 0x85 - 256 & MASK,
    "*u8*(arg6 + 16)": 0x85,
    'comm == "a thread"': 1,
    'comm == "a threa"': 0,
    'comm != "a thread with a long name"': 1,
    "arg1 | 0x10 ^ 0x30 & 0x20": 0x35,
}


def test_values(run: Callable[[list[str]], list[tuple[int, int]]]) -> None:
    found = run(list(CASES))
    assert {text: value for text, (value, _) in zip(CASES, found, strict=True)} == CASES
    assert not any(fault for _, fault in found)


FAULTS = ["*u8*(arg4)", "arg1 / arg4", "arg1 % arg4", "retval / arg4", 'str(arg4) == "a"', "arg1 && *u8*(arg4)"]


def test_what_cannot_be_answered(run: Callable[[list[str]], list[tuple[int, int]]]) -> None:
    assert [fault for _, fault in run(FAULTS)] == [1] * len(FAULTS)


def test_random_arithmetic_is_that_of_python(run: Callable[[list[str]], list[tuple[int, int]]]) -> None:
    rng = random.Random(3)
    texts = [_random(rng, 4) for _ in range(300)]
    checked: list[tuple[str, int | None]] = []
    for text in texts:
        try:
            (values,) = Asked.parse(sums=[text]).bind().values
        except ValueError:
            continue  # two constants are compared, or a division by 0 is written
        checked.append((text, _evaluated(values.nodes[0])))
    assert len(checked) > 150
    for (text, wanted), (value, fault) in zip(checked, run([text for text, _ in checked]), strict=True):
        assert bool(fault) == (wanted is None), text
        assert wanted is None or value == wanted & MASK, text


def _random(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*ARGUMENTS, "0", "1", "7", "0xffffffffffffffff", "255"])
    kind = rng.randrange(10)
    if kind == 0:
        return f"{rng.choice('-~!')}({_random(rng, depth - 1)})"
    if kind == 1:
        return f"{rng.choice(['u8', 'i8', 'u16', 'i32', 'u32', 'i64', 'u64'])}({_random(rng, depth - 1)})"
    sign = rng.choice(
        ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">=", "&&", "||"]
    )
    return f"({_random(rng, depth - 1)}) {sign} ({_random(rng, depth - 1)})"


def _number(node: Node, bits: int) -> int:
    return bits - (1 << 64) if nodes.is_signed(node) and bits >> 63 else bits


def _evaluated(node: Node) -> int | None:  # noqa: PLR0911
    """Value as a number of any size below 2^64, or below 0; None if there is no answer."""
    if isinstance(node, nodes.Constant):
        return node.value
    if isinstance(node, nodes.Input):
        return _number(node, ARGUMENTS[node.name] & MASK)
    operands = [_evaluated(child) for child in nodes.children(node)]
    if isinstance(node, nodes.Both) and operands[0] is not None and bool(operands[0]) == (node.sign == "||"):
        return int(bool(operands[0]))
    if any(value is None for value in operands):
        return None
    values = [value for value in operands if value is not None]
    if isinstance(node, nodes.Both):
        return int(bool(values[1]))
    if isinstance(node, nodes.Convert):
        assert hasattr(node.type, "bits")
        bits = values[0] & ((1 << node.type.bits) - 1)
        return bits - (1 << node.type.bits) if nodes.is_signed(node) and bits >> (node.type.bits - 1) else bits
    if isinstance(node, nodes.Negate):
        if node.sign == "!":
            return int(not values[0] & MASK)
        return _number(node, (-values[0] if node.sign == "-" else ~values[0]) & MASK)
    left, right = values
    if isinstance(node, nodes.Compare):
        order = (left > right) - (left < right)
        return int(order in {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0), "==": (0,), "!=": (-1, 1)}[node.sign])
    assert isinstance(node, nodes.Calculate)
    return _calculated(node, left, right)


def _calculated(node: nodes.Calculate, left: int, right: int) -> int | None:
    if node.sign in ("/", "%"):
        if not nodes.is_signed(node):
            left, right = left & MASK, right & MASK
        if not right:
            return None
        found = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return _number(node, (found if node.sign == "/" else left - found * right) & MASK)
    if node.sign in ("<<", ">>"):
        by = right & MASK
        if node.sign == "<<":
            return _number(node, left << by & MASK if by < 64 else 0)
        return _number(node, (left >> min(by, 63 if nodes.is_signed(node) else 64)) & MASK)
    made = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "&": left & right,
        "|": left | right,
        "^": left ^ right,
    }
    return _number(node, made[node.sign] & MASK)
