"""The running kernel's types: the functions that programs can call, and what is at an offset of a structure.

From its BTF: include/uapi/linux/btf.h.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from .libbpf import BTF_KIND_FUNC, BTF_KIND_STRUCT, BtfArray, BtfMember, BtfType, library

_ARRAY, _STRUCT, _UNION = 3, 4, 5
_SAME = (8, 9, 10, 11, 18)
"""Typedefs, qualifiers and tags: another name of the type that follows."""
_DEEPEST = 16
"""Structures within structures."""


_KERNEL_BTF = Path("/sys/kernel/btf/vmlinux")
_HEADER = struct.Struct("<HBBIIIII")
"""struct btf_header: where the names are, behind the header, is told by its last two fields."""
_MAGIC = 0xEB9F
_MOST = 64 << 20
"""Bytes of names that are read."""
CACHE_OF_MEMORY = "bpf_get_kmem_cache"
_NAMES = tuple(
    name.encode()
    for name in (
        "btf_trace_contention_begin",
        "btf_trace_posix_lock_inode",
        "btf_trace_flock_lock_inode",
        "btf_trace_tcp_retransmit_skb",
        CACHE_OF_MEMORY,
    )
)
"""Names that are asked for: the file is large, and is read once for all."""


def kernel_has(name: str, *, otherwise: bool = False) -> bool:
    """Whether the running kernel's type information has this name, which is one of `_NAMES`; ``otherwise`` without such
    information."""
    assert name.encode() in _NAMES, name
    try:
        status = _KERNEL_BTF.stat()
        return name.encode() in _names_in(_KERNEL_BTF, status.st_mtime_ns, status.st_size)
    except OSError:
        return otherwise


@lru_cache(maxsize=1)
def _names_in(path: Path, _changed: int, _size: int) -> frozenset[bytes]:
    """Names of `_NAMES` that type information has."""
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return frozenset()
        magic, _, _, length, _, _, begin, size = _HEADER.unpack(header)
        if magic != _MAGIC:
            return frozenset()
        file.seek(length + begin)
        names = file.read(min(size, _MOST))
    return frozenset(name for name in _NAMES if b"\0" + name + b"\0" in names)


class _Member(NamedTuple):
    name: str
    type: int
    offset: int
    """Offset in bytes."""


class KernelTypes:
    """Context manager. Without BTF it knows nothing."""

    def __init__(self) -> None:
        self._btf: int | None = library().btf__load_vmlinux_btf() or None

    def __enter__(self) -> KernelTypes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        btf, self._btf = self._btf, None
        if btf:
            library().btf__free(btf)

    def function_id(self, name: str) -> int:
        """The number of a function's type, by which a program calls it; 0: there is none."""
        return self._find(name, BTF_KIND_FUNC)

    def size(self, struct: str) -> int:
        """Size of a structure, in bytes; 0: not known."""
        found = self._find(struct, BTF_KIND_STRUCT)
        return int(self._type(found).size_or_type) if found else 0

    def field_at(self, struct: str, offset: int, wanted: Collection[str]) -> str:
        """The path of the field that begins ``offset`` bytes behind the structure's begin and that is a structure with
        a name of ``wanted``: ``vfs_inode.i_rwsem``; "" if there is none, or more than one."""
        start = self._find(struct, BTF_KIND_STRUCT)
        found = {*self._fields_at(start, offset, wanted, _DEEPEST)} if start else set()
        return found.pop().removeprefix(".") if len(found) == 1 else ""

    def _fields_at(self, index: int, offset: int, wanted: Collection[str], depth: int) -> Iterator[str]:
        for member in self._members(index) if depth else ():
            within = offset - member.offset
            inner, type_ = self._resolved(member.type)
            path = f".{member.name}" if member.name else ""
            if (type_.info >> 24) & 31 == _ARRAY:
                array = BtfArray.from_address(ctypes.addressof(type_) + ctypes.sizeof(BtfType))
                inner, type_ = self._resolved(array.type)
                size = type_.size_or_type
                if (type_.info >> 24) & 31 not in (_STRUCT, _UNION) or not 0 <= within < size * array.nelems:
                    continue
                path, within = f"{path}[{within // size}]", within % size
            elif (type_.info >> 24) & 31 not in (_STRUCT, _UNION) or not 0 <= within < type_.size_or_type:
                continue
            if not within and self._name(type_.name_off) in wanted:
                yield path
            else:
                yield from (path + more for more in self._fields_at(inner, within, wanted, depth - 1))

    def _members(self, index: int) -> list[_Member]:
        type_ = self._type(index)
        members = (BtfMember * (type_.info & 0xFFFF)).from_address(ctypes.addressof(type_) + ctypes.sizeof(BtfType))
        mask = 0xFFFFFF if type_.info >> 31 else 0xFFFFFFFF  # the rest is the size of a bit field
        return [_Member(self._name(each.name_off), each.type, (each.offset & mask) // 8) for each in members]

    def _resolved(self, index: int) -> tuple[int, BtfType]:
        type_ = self._type(index)
        while (type_.info >> 24) & 31 in _SAME:
            index = type_.size_or_type
            type_ = self._type(index)
        return index, type_

    def _find(self, name: str, kind: int) -> int:
        return max(int(library().btf__find_by_name_kind(self._btf, name.encode(), kind)), 0) if self._btf else 0

    def _type(self, index: int) -> BtfType:
        return BtfType.from_address(library().btf__type_by_id(self._btf, index))

    def _name(self, offset: int) -> str:
        return str(library().btf__name_by_offset(self._btf, offset).decode("utf-8", "backslashreplace"))
