"""Fields of tracepoints: their C, compiled for this machine, against a record that is known."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_c import MASK, run_c
from stallscope.tracers.expressions.asked import Asked, Fault
from stallscope.tracers.expressions.c_expressions import expression
from stallscope.tracers.expressions.check import OF_THREADS
from stallscope.tracers.expressions.fields import named_fields
from stallscope.tracers.kernel.tracepoints import Field

RECORD = (
    struct.pack("<8xbBhHiIqQ", -3, 200, -300, 60000, -5, 0x80000000, -7, MASK)
    + b"worker\0garbage!!"[:16]
    + struct.pack("<IIQ4s4x", 6 << 16 | 100, 6 << 16 | 16, 0xFFFFFFFFFFFFFF9C, b"full")
)
RECORD = RECORD.ljust(100, b"\xee") + b"/x/yz\0more"
FIELDS = [
    Field("char", "small", 8, 1, is_signed=True),
    Field("unsigned char", "byte", 9, 1),
    Field("short", "low", 10, 2, is_signed=True),
    Field("u16", "word", 12, 2),
    Field("pid_t", "pid", 14, 4, is_signed=True),
    Field("dev_t", "dev", 18, 4),
    Field("long", "prev_state", 22, 8, is_signed=True),
    Field("size_t", "bytes", 30, 8),
    Field("char[16]", "comm", 38, 16),
    Field("__data_loc char[]", "filename", 54, 4),
    Field("__rel_loc char[]", "relative", 58, 4),
    Field("int", "dfd", 62, 8),
    Field("char[4]", "four", 70, 4),
    Field("void *", "address", 30, 8),
    Field("const char *", "path", 30, 8),
    Field("u8[16]", "uuid", 38, 16),
    Field("unsigned long[6]", "numbers", 38, 48),
    Field("__data_loc u64[]", "list", 54, 4),
    Field("__data_loc cpumask_t", "mask", 54, 4),
    Field("struct timespec", "time", 38, 16),
    Field("long", "far", 8190, 8),
]
CASES = {
    "small": -3 & MASK,
    "byte": 200,
    "low": -300 & MASK,
    "word": 60000,
    "args.pid": -5 & MASK,
    "args->pid": -5 & MASK,
    "pid": 12,
    "dev": 0x80000000,
    "prev_state < 0": 1,
    "bytes": MASK,
    'args.comm == "worker"': 1,
    'args.comm == "worke"': 0,
    'args.comm != "worker2"': 1,
    'args.comm == "a longer string than there is"': 0,
    'comm == "a thread"': 1,
    'filename == "/x/yz"': 1,
    'filename == "/x/y"': 0,
    'filename == "/x/yzz"': 0,
    'four == "full"': 1,
    'four == "ful"': 0,
    "dfd": -100 & MASK,
    "address == 0": 0,
}


def value(text: str, tracepoint: str = "syscalls:sys_enter_x") -> str:
    (values,) = Asked.parse(sums=[text]).bind(named_fields(tracepoint, FIELDS), OF_THREADS).values
    return expression(values.nodes[0])


def test_values(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    require(shutil.which("gcc") is not None, "there is no gcc")
    found = run_c(list(map(value, CASES)), RECORD, tmp_path)
    assert {text: got for text, (got, _) in zip(CASES, found, strict=True)} == CASES
    assert not any(fault for _, fault in found)


def test_a_string_behind_its_own_word(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    require(shutil.which("gcc") is not None, "there is no gcc")
    record = RECORD[:58] + struct.pack("<I", 6 << 16 | 38) + RECORD[62:]
    assert run_c([value('relative == "/x/yz"')], record, tmp_path) == [(1, 0)]


def test_arguments_of_system_calls_have_8_bytes() -> None:
    """An int in 8 bytes is an int there alone, and only there a string is one of the user's."""
    assert "s32" in value("dfd")
    assert "s32" not in value("dfd", "other:event")
    asked = Asked.parse(prints=["path"])
    for tracepoint, is_text in (("syscalls:sys_enter_x", True), ("other:event", False)):
        (values,) = asked.bind(named_fields(tracepoint, FIELDS), OF_THREADS).values
        assert (values.nodes[0].type.title == "str") == is_text


@pytest.mark.parametrize("name", ["uuid", "numbers", "list", "mask", "time", "far", "retval"])
def test_what_cannot_be_read(name: str) -> None:
    with pytest.raises(Fault, match="this cannot be read: it is"):
        value(name)


def test_another_name() -> None:
    with pytest.raises(Fault, match="'prev_stat' is not known; did you mean prev_state"):
        value("prev_stat")
    with pytest.raises(Fault, match=r"'arg1' is not known"):
        value("arg1")
