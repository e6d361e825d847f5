"""Places for probes: each is where an instruction begins, as the disassembler sees it."""

from __future__ import annotations

import capstone
import pytest
from stallscope.tracers.probe_targets.entries import Entry, entry

ENDBR = "f30f1efa"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("55 4889e5", Entry(0, True)),  # push rbp
        ("4157 4156", Entry(0, True)),  # push r15
        (f"{ENDBR} 55", Entry(4, True)),
        (f"{ENDBR} 4154", Entry(4, True)),
        ("e900000000", Entry(0, True)),  # jmp
        (f"{ENDBR} 0f1f440000 53", Entry(9, True)),  # nop, push rbx
        ("4889f8 55", Entry(3, True)),  # mov rax, rdi; push rbp
        ("31c0 53", Entry(2, True)),  # xor eax, eax; push rbx
        ("4883ec18 55", Entry(0, False)),  # sub rsp, 24: the return address would be elsewhere
        (f"{ENDBR} 4883ec18", Entry(4, False)),
        ("31ff 55", Entry(0, False)),  # xor edi, edi: an argument is lost
        ("4989f0 55", Entry(0, False)),  # mov r8, rsi: the same
        ("488b07 55", Entry(0, False)),  # mov rax, [rdi]
        ("8b5508 55", Entry(0, False)),
        ("6655", Entry(0, False)),  # push bp: of another size
        ("", Entry(0, False)),
        (ENDBR, Entry(4, False)),
        ("41", Entry(0, False)),
    ],
)
def test_entries(code: str, expected: Entry) -> None:
    assert entry(bytes.fromhex(code)) == expected


def test_places_are_instructions() -> None:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    for first in range(256):
        for second in range(256):
            code = bytes([first, second]) + bytes.fromhex("c0 55 53 90 90 90 90 90 90 90 90 90 90 90 90 90")
            found = entry(code)
            begins = {0} | {i.address for i in decoder.disasm(code, 0)}
            assert found.offset in begins, (code.hex(), found)
            if not found.is_fast:
                continue
            at = next(iter(decoder.disasm(code[found.offset :], 0)))
            assert at.mnemonic in ("push", "nop", "call", "jmp") or at.mnemonic.startswith("j"), (code.hex(), at)
