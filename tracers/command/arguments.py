"""Arguments of functions, from the debug information of their file."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..dwarf.parameters import Parameters, read_parameters
from ..images.debugfile import find_debug_file, has_lines
from ..images.elf import ElfFile
from ..images.files import HOST


def parameters(
    fd: int, elf: ElfFile, path: str, addresses: Sequence[int], members: frozenset[str] = frozenset()
) -> list[Parameters]:
    """Parameters of functions at these addresses of an open file, from its debug information or from that of its debug
    file."""
    if has_lines(elf):
        return read_parameters(fd, addresses, members)
    separate = find_debug_file(elf, fd, path, HOST)
    if separate is None:
        return [Parameters({}, fault="it has no debug information")] * len(addresses)
    try:
        return read_parameters(separate[1], addresses, members)
    finally:
        os.close(separate[1])
