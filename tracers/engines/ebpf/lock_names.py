"""Names of locks: the variable or the file that they are in, or the address.

Addresses of the kernel are a secret of the running system. Its locks that only an address tells apart have numbers
instead, in the order in which they are named, unless addresses are asked for.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from pathlib import Path

from ....converters.model.locks import KERNEL, OTHER_LOCKS, SHARED
from ....converters.names.demangle import Demangler
from ...images.data_symbols import is_data, variable_in
from ...images.maps import Mapping
from ...kernel.kernel_types import KernelTypes
from ...symbols.objects import ObjectFile
from .capture import Capture
from .lock_fields import LockFields
from .measures.protocol import LockRows

_KALLSYMS = Path("/proc/kallsyms")
_DATA = re.compile(rb"^([0-9a-f]+) [dDbBrR] (\S+)(?:\t\[(\S+)\])?$", re.MULTILINE)
_FARTHEST = 1 << 14
"""A lock that lies so far behind a variable of the kernel is not in it."""


class LockNames:
    """Finds them for one trace. ``kernel_addresses``: the kernel's locks have them, not numbers."""

    def __init__(self, capture: Capture, found: LockRows, *, kernel_addresses: bool = False) -> None:
        self._capture = capture
        self._tells_addresses = kernel_addresses
        self._told: dict[int, str] = {}
        self._words = {number: word for word, number in found.numbers.items()}
        self._objects = found.objects
        self._fields: LockFields | None = None
        self._kernel: list[tuple[int, str]] | None = None

    def name(self, key: tuple[str, int, int], kind: str = "") -> str:
        """``key``: `PROCESS`, `SHARED` or `KERNEL`; the process; the address, or the number of what is shared.

        ``kind``: of a kernel's lock, its type.
        """
        whose, tgid, address = key
        if whose == KERNEL:
            return self._in_object(address, kind) or self._in_kernel(address)
        if whose == SHARED:
            word = self._words[address]
            path = "[shared memory]" if word.path.startswith(("/dev/zero", "/SYSV")) else word.path
            return f"{path or '[shared memory]'}+{word.offset:#x}"
        return self._in_process(tgid, address) if address else OTHER_LOCKS

    def _in_process(self, tgid: int, address: int) -> str:
        process = self._capture.spaces.processes.get(tgid)
        for mapping in process.space if process else ():
            file = self._capture.spaces.object_of(mapping)
            if file is not None and (found := _variable(file, mapping, address)):
                return found
        return f"{address:#x}"

    def _in_object(self, address: int, kind: str) -> str:
        if (found := self._objects.get(address)) is None:
            return ""
        if self._fields is None:
            self._fields = LockFields(KernelTypes())
        return self._fields.name(address, kind, found, self._address)

    def _in_kernel(self, address: int) -> str:
        if self._kernel is None:
            self._kernel = _kernel_data()
        place = bisect_right(self._kernel, (address, "\uffff")) - 1
        if 0 <= place < len(self._kernel) - 1:
            start, name = self._kernel[place]
            if address - start < _FARTHEST and address < self._kernel[place + 1][0]:
                return f"{name}+{address - start:#x}" if address > start else name
        return self._address(address)

    def _address(self, address: int) -> str:
        """Text that stands for an address of the kernel."""
        if self._tells_addresses:
            return f"{address:#x}"
        return self._told.setdefault(address, f"#{len(self._told) + 1}")


def _variable(file: ObjectFile, mapping: Mapping, address: int) -> str:
    """Symbol and offset of an address in the data of a file of which ``mapping`` is code; "" if it is not in it."""
    import numpy as np

    elf = file.elf()
    if elf is None:
        return ""
    vaddrs, known = file.to_vaddrs(np.array([mapping.offset], np.uint64))
    vaddr = address - (mapping.start - int(vaddrs[0]))
    if not known[0] or vaddr < 0 or not is_data(elf, vaddr):
        return ""
    found = variable_in(elf, vaddr)
    if found is None:
        return f"[{os.path.basename(file.path)}+{vaddr:#x}]"
    name, offset = Demangler().demangle([found[0]])[found[0]], found[1]
    return f"{name}+{offset:#x}" if offset else name


def _kernel_data() -> list[tuple[int, str]]:
    """The kernel's variables by address, if it tells them."""
    try:
        text = _KALLSYMS.read_bytes()
    except OSError:
        return []
    found = [
        (int(address, 16), name.decode("utf-8", "backslashreplace") + (f" [{module.decode()}]" if module else ""))
        for address, name, module in _DATA.findall(text)
    ]
    return sorted(each for each in found if each[0])
