"""The interpreter that a process runs, found in a file that it maps."""

from __future__ import annotations

from ..images.elf import ElfFile
from ..images.maps import Mapping
from .functions import Inside
from .layouts import check_threads, layout_of
from .memory import memory_of
from .runtime import address_of, find_runtime


def inside_of(pid: int, mapping: Mapping, elf: ElfFile) -> Inside | None:
    """Knowledge that functions of the process are read with; None if ``elf``, which it maps there, is no interpreter.
    Refused for one whose data are not understood, ElfError for a damaged file, OSError if the process is gone."""
    runtime = find_runtime(elf, mapping.file_path)
    address = address_of(elf, mapping, runtime.vaddr) if runtime else None
    if runtime is None or address is None:
        return None
    with memory_of(pid) as memory:
        layout = layout_of(runtime.version, address, memory)
        check_threads(layout, address, memory)
    bias = address - runtime.vaddr
    code, text = (bias + kind if kind else 0 for kind in (runtime.code_type, runtime.text_type))
    return Inside(layout, code, text, 0)
