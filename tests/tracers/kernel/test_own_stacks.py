"""Programs at uprobes get no stack that all runs on a core share: see bpf/include/own_stack.bpf.h."""

from __future__ import annotations

import struct
from pathlib import Path

from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parents[3]
TAIL_CALL = (0x85, 12)
"""BPF_JMP | BPF_CALL, and BPF_FUNC_tail_call of include/uapi/linux/bpf.h."""
SMALL = {"python_freed"}
"""Programs whose stack has less than 64 bytes: the kernel gives these none of their own (BPF_PRIV_STACK_MIN_SIZE)."""


def programs() -> dict[str, bool]:
    """Programs at uprobes, and whether each has a tail call."""
    found = {}
    for path in sorted((ROOT / "build" / "bpf").glob("*.bpf.o")):
        with path.open("rb") as file:
            elf = ELFFile(file)
            place = elf.get_section_index("uprobe")
            symbols = elf.get_section_by_name(".symtab").iter_symbols() if place else ()
            functions = [
                each for each in symbols if each["st_shndx"] == place and each["st_info"]["type"] == "STT_FUNC"
            ]
            for each in functions:
                begin, size = each["st_value"], each["st_size"]
                body = elf.get_section(place).data()[begin : begin + size]
                calls = [(code, value) for code, _, _, value in struct.iter_unpack("<BBhi", body)]
                found[each.name] = TAIL_CALL in calls
    return found


def test_programs_at_uprobes_have_tail_calls() -> None:
    found = programs()
    assert {"calls_session", "calls_return_raw", "resumed_enter", "events_user", "asked_session"} <= found.keys()
    assert {name for name, has_one in found.items() if not has_one} == SMALL
