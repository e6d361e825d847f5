"""Kernel symbols from /proc/kallsyms, which is read once; names are decoded on demand.

kallsyms has no sizes. A symbol covers addresses up to the next one of any type, and never beyond
the text that it belongs to: [_stext, _etext) for the kernel proper; for the last symbol of a
module, and for BPF programs, which come and go, the end of the page in which it begins.

Addresses of the kernel are a secret of the running system: `places` tells them relative to the kernel's beginning
(``_text``), a module's, or a BPF program's, unless absolute ones are asked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ...converters.model import Module

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KERNEL = Module("[kernel.kallsyms]")
UNKNOWN = "[kernel]"
"""Name of what is no function, if nothing is known that its address could be relative to."""
_BPF = "bpf"
_SINGLE = (_BPF, "__builtin")
"""Modules whose functions were made one by one."""
_PAGE = 4096
_MAX_GAP = 1 << 20
_MAX_ALIASES = 64

# Labels that the linker script puts between functions; the name of a function at the same address is preferred.
_MARKER = re.compile(r"_s?text$|_etext$|__pi__|__\w*text\w*$|_\w+_(start|end|begin)$")


class KernelPlace(NamedTuple):
    """Place of an address of the kernel."""

    name: str
    """Name of the function; ``[nvidia+0x1a2b]`` or ``[kernel]`` if that is not known."""
    module: Module
    address: int
    """Address as it may be shown; 0 if what it is relative to is not known."""


class Kallsyms:
    """The running kernel's symbols by address."""

    def __init__(self, text: bytes, *, absolute: bool = False) -> None:
        """``text`` is the content of /proc/kallsyms: lines ``ADDRESS TYPE NAME[\\t[MODULE]]``; others are left out.
        ``absolute``: `places` tells absolute addresses."""
        import numpy as np

        self._text = text
        addresses, types, self._line = _parse(text)
        order = np.argsort(addresses, kind="stable")
        self._addresses, self._types, self._line = addresses[order], types[order], self._line[order]
        self.restricted = bool(len(addresses)) and not addresses.any()
        """Whether kptr_restrict hides the addresses; then there are no names."""
        self._low, self._high = self._address_of(b"_stext"), self._address_of(b"_etext")
        self._image_end = self._address_of(b"_end")
        self._absolute = absolute
        self._bases: dict[str, int] = {}

    @classmethod
    def read(cls, path: str = "/proc/kallsyms", *, absolute: bool = False) -> Kallsyms:
        """The symbols of the running kernel. OSError when they cannot be read."""
        with open(path, "rb") as file:
            return cls(file.read(), absolute=absolute)

    def __len__(self) -> int:
        return len(self._addresses)

    def find(self, addresses: NDArray[np.uint64]) -> list[tuple[str, Module] | None]:
        """(name, module) of the code at each absolute address, None where there is none."""
        return [found[:2] if found else None for _, found in self._find(addresses)]

    def places(self, addresses: NDArray[np.uint64], back: int) -> list[KernelPlace]:
        """The place of each absolute address; names are looked up ``back`` bytes earlier."""
        import numpy as np

        looked_up = addresses - np.minimum(addresses, np.uint64(back))
        found = self._find(looked_up)
        return [self._place(address, *each) for address, each in zip(addresses.tolist(), found, strict=True)]

    def _place(self, address: int, last: int, found: tuple[str, Module, int] | None) -> KernelPlace:
        if self._absolute:
            return KernelPlace(found[0] if found else f"[kernel+{address:#x}]", found[1] if found else KERNEL, address)
        start = int(self._addresses[last]) if last >= 0 else 0
        module = self._split(last)[1] if start else ""
        if found:
            base = start if module.startswith(_SINGLE) else self._base(module)
            return KernelPlace(found[0], found[1], address - base if 0 < base <= address else 0)
        base = 0 if module.startswith(_SINGLE) or not start else self._base(module)
        is_near = address - start < _MAX_GAP if module else address < self._image_end
        if not (base and base <= address and is_near):
            return KernelPlace(UNKNOWN, KERNEL, 0)
        return KernelPlace(f"[{module or 'kernel'}+{address - base:#x}]", module_named(module), address - base)

    def _base(self, module: str) -> int:
        """Address where the kernel ("") or a module begins: the first function that it has; 0 if not known."""
        if module not in self._bases:
            self._bases[module] = self._first_of(module) if module else self._address_of(b"_text") or self._low
        return self._bases[module]

    def _first_of(self, module: str) -> int:
        """The symbols of a module follow each other."""
        name = f"\t[{module}]\n".encode(errors="surrogateescape")
        begin = self._text.rfind(b"\n", 0, max(self._text.find(name), 0)) + 1
        part = self._text[begin : self._text.rfind(name) + len(name)]
        return min((int(match, 16) for match in re.findall(rb"^([0-9a-f]{1,16}) [tTwW] ", part, re.M)), default=0)

    def _find(self, addresses: NDArray[np.uint64]) -> list[tuple[int, tuple[str, Module, int] | None]]:
        """The last symbol (its place in the order of addresses, -1: none) that does not begin after each address, and
        its name, module and end if it covers the address."""
        import numpy as np

        last = np.searchsorted(self._addresses, addresses, side="right") - 1
        cache: dict[int, tuple[str, Module, int] | None] = {}
        result: list[tuple[int, tuple[str, Module, int] | None]] = []
        for address, i in zip(addresses.tolist(), last.tolist(), strict=True):
            if i not in cache:
                cache[i] = self._symbol(i)
            symbol = cache[i]
            result.append((i, symbol if symbol and address < symbol[2] else None))
        return result

    def _symbol(self, last: int) -> tuple[str, Module, int] | None:
        """(name, module, end) of the best text symbol at the same address as symbol ``last``."""
        import numpy as np

        if last < 0 or not self._addresses[last]:
            return None
        first = int(np.searchsorted(self._addresses, self._addresses[last], side="left"))
        best: tuple[tuple[object, ...], str, str] | None = None
        for i in range(max(first, last - _MAX_ALIASES), last + 1):
            kind = chr(self._types[i])
            if kind in "tTwW":
                name, module = self._split(i)
                key = (bool(_MARKER.match(name)), len(name) - len(name.lstrip("_")), kind in "wW", kind == "t")
                candidate = ((*key, len(name), name), name, module)
                best = candidate if best is None else min(best, candidate)
        if best is None:
            return None
        _, name, module = best
        end = self._end(int(self._addresses[last]), last, module)
        return (name, module_named(module), end) if end else None

    def _end(self, start: int, last: int, module: str) -> int:
        following = int(self._addresses[last + 1]) if last + 1 < len(self._addresses) else 1 << 64
        if not module:
            return min(following, self._high) if self._low <= start < self._high else 0
        if module != _BPF and last + 1 < len(self._addresses) and self._split(last + 1)[1] == module:
            # The gap between two parts of a module (text, init text, data) is not code.
            return min(following, start + _MAX_GAP)
        return min(following, (start // _PAGE + 1) * _PAGE)

    def _address_of(self, name: bytes) -> int:
        """Address of a symbol of the kernel proper; 0 if there is none."""
        at = self._text.find(b" %b\n" % name)
        line = self._text[self._text.rfind(b"\n", 0, max(at, 0)) + 1 : max(at, 0)]
        match = re.fullmatch(rb"([0-9a-f]{1,16}) [A-Za-z]", line)
        return int(match[1], 16) if match else 0

    def _split(self, i: int) -> tuple[str, str]:
        start, end = (int(x) for x in self._line[i])
        name, _, module = self._text[start:end].decode("utf-8", "backslashreplace").partition("\t")
        return name, module.strip().removeprefix("[").removesuffix("]")


def module_named(name: str) -> Module:
    if not name:
        return KERNEL
    return Module(f"[{name}]" if name == _BPF or name.startswith("__builtin") else f"{name}.ko")


def _parse(text: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.int64]]:
    """(address, type, (start, end) of name and module) of each well-formed line."""
    import numpy as np

    data = np.frombuffer(text, np.uint8)
    width = text.find(b" ")
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([np.zeros(1, ends.dtype), ends[:-1] + 1])[: len(ends)]
    long_enough = ends - starts > width + 3
    if not 0 < width <= 16 or not long_enough.any():
        return np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros((0, 2), np.int64)
    starts, ends = starts[long_enough], ends[long_enough]
    value = np.full(256, 255, np.uint8)
    value[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)

    # Row i of the view is the text from byte i on: taking the rows at line starts copies whole numbers.
    rows = np.lib.stride_tricks.sliding_window_view(data, width + 3)[starts]
    digits = value[rows[:, :width]]
    good = (digits.max(axis=1) < 16) & (rows[:, width] == ord(" ")) & (rows[:, width + 2] == ord(" "))
    padded = np.zeros((len(starts), 16), np.uint8)
    padded[:, 16 - width :] = digits
    octets = (padded[:, ::2] << 4) | padded[:, 1::2]
    addresses = np.ascontiguousarray(octets).view(">u8").ravel().astype(np.uint64)
    lines = np.stack([starts + width + 3, ends], axis=1).astype(np.int64)
    return addresses[good], rows[good, width + 1], lines[good]
