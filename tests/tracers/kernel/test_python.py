"""Python functions in stacks, against bpf/include/python.h as a C compiler understands it."""

from __future__ import annotations

import re
import subprocess
from array import array
from pathlib import Path

import pytest
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel import python
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.python import Call, Calls, begin_of, checksum, codes, parse

HEADER = Path(__file__).resolve().parents[3] / "bpf" / "include" / "python.h"
FIELDS = re.findall(
    r"^\tu(?:8|16|32|64) (\w+);", HEADER.read_text().partition("struct python_space {")[2], re.MULTILINE
)
NATIVE = (0x7FFF_0000_1000, 0xFFFF_FFFF_8100_0000 >> 16)
CODE, OTHER = 0x7F00_1122_3340, 0x7F00_1122_4440


def words(*calls: Call, pid: int = 4711, cut: int = 0) -> tuple[int, ...]:
    """Words as the probes send them."""
    found = [python.PROCESS << 56 | pid]
    for call in calls:
        second = call.checksum << 32 | (call.instruction & 0x7FFFFFFF) << 1 | call.is_entry
        found += [python.CODE << 56 | call.code, second]
    return (*found, *([python.CUT << 56 | cut] if cut else []))


def test_constants_and_fields(gcc: str, tmp_path: Path) -> None:
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    lines = [f"s.{name} = {i + 1};" for i, name in enumerate(FIELDS)]
    source.write_text(
        f"""#include <stdio.h>
typedef unsigned long long u64; typedef unsigned int u32; typedef unsigned short u16; typedef unsigned char u8;
#include "{HEADER}"
int main(void) {{
    struct python_space s; u64 tags[] = {{ PYTHON_PROCESS, PYTHON_CODE, PYTHON_CUT, PYTHON_TOO_DEEP,
        PYTHON_UNREADABLE, ENTRY_ALWAYS, ENTRY_FLAG, ENTRY_BELOW, INSTRUCTION_BYTE, INSTRUCTION_WORD, INSTRUCTION_AT,
        NO_STEP, PYTHON_WINDOW }};
    {" ".join(lines)}
    fwrite(tags, sizeof(tags), 1, stdout); fwrite(&s, sizeof(s), 1, stdout); return 0; }}
"""
    )
    subprocess.run([gcc, "-Wall", "-Werror", "-o", program, source], check=True)
    data = subprocess.run([program], capture_output=True, check=True).stdout
    tags, space = array("Q", data[:104]).tolist(), data[104:]
    assert [tag >> 56 for tag in tags[:3]] == [python.PROCESS, python.CODE, python.CUT]
    assert tags[3:5] == list(python.CUTS)
    assert tags[5:8] == [python.ENTRY_ALWAYS, python.ENTRY_FLAG, python.ENTRY_BELOW]
    assert tags[8:11] == [python.INSTRUCTION_BYTE, python.INSTRUCTION_WORD, python.INSTRUCTION_AT]
    assert tags[11:] == [python.NO_STEP, python.WINDOW]
    assert python.SPACE.unpack(space) == tuple(range(1, len(FIELDS) + 1))


def test_what_the_probes_change_is_no_part_of_the_identity() -> None:
    fields = list(range(1, len(FIELDS) + 1))
    space = python.SPACE.pack(*fields)
    assert FIELDS[-2:] == ["freed", "gil"]
    assert python.identity(python.SPACE.pack(*fields[:-2], 99, 98)) == python.identity(space)
    assert python.identity(python.SPACE.pack(*fields[:-3], 97, *fields[-2:])) != python.identity(space)


def test_compiled_probes_have_the_same_size() -> None:
    compiled = Object(object_path())
    try:
        assert compiled.find_map("python_spaces").value_size == python.SPACE.size
    finally:
        compiled.close()


def test_functions_behind_native_frames() -> None:
    calls = (Call(CODE, 0xFFFF_FFFF, 24, True), Call(OTHER, 1, 0, False), Call(CODE, 0x5050_5050, -1, True))
    stack = NATIVE + words(*calls)
    assert begin_of(stack) == len(NATIVE)
    assert parse(stack[begin_of(stack) :]) == Calls(4711, calls)
    assert list(codes(stack[begin_of(stack) :])) == [(call.code, call.checksum) for call in calls]


def test_no_functions() -> None:
    assert begin_of(NATIVE) == len(NATIVE)
    assert begin_of(()) == 0
    assert list(codes(())) == []


@pytest.mark.parametrize(("number", "why"), [(1, "too deep"), (2, "not readable"), (77, "")])
def test_more_functions_than_there_are(number: int, why: str) -> None:
    call = Call(CODE, 5, 2, False)
    assert parse(words(call, cut=number)) == Calls(4711, (call,), why)
    assert list(codes(words(call, cut=number))) == [(CODE, 5)]
    assert parse(words(cut=number)) == Calls(4711, (), why)


def test_checksum_depends_on_everything() -> None:
    values = (1, 2, 3, 4, 5)
    sums = {checksum(salt, values) for salt in (0, 1)}
    sums |= {checksum(0, (*values[:i], 99, *values[i + 1 :])) for i in range(5)}
    assert len(sums) == 7
    assert all(0 <= number < 1 << 32 for number in sums)
