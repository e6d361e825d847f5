"""Fields of a tracepoint, as nodes: what its format file says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from .check import NO_RETURN, OF_THREADS
from .nodes import Convert, Field, FieldText, Input, Layout, Node
from .types import I32, TEXT, U32, Integer, Pointer, Unreadable, Words

_RECORD = 8192
"""Bytes of a record: PERF_MAX_TRACE_SIZE of include/linux/trace_events.h."""
_STRING = 64
_ADDRESS, _SIZES = 8, (1, 2, 4, 8)
_ARRAY = re.compile(r"(__data_loc|__rel_loc)? ?(?:const )?(.+)\[[^\]]*\]")
_LOCATED = {"__data_loc": Layout.FROM_BEGIN, "__rel_loc": Layout.FROM_HERE}
_NARROW = {
    **dict.fromkeys(("int", "pid_t"), I32),
    **dict.fromkeys(("unsigned", "unsigned int", "u32", "uid_t", "gid_t"), U32),
}
"""Arguments of system calls have 8 bytes in the record, of which these types use 4."""
_SYSCALLS = "syscalls:"


class Told(Protocol):
    """`kernel.tracepoints.Field`: a type of C, a name, and the place in the record in bytes."""

    @property
    def type(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def is_signed(self) -> bool: ...


def named_fields(tracepoint: str, told: Iterable[Told]) -> dict[str, Node]:
    """The fields by name, and by ``args.NAME``; those whose name means something else everywhere, by the latter."""
    made: dict[str, Node] = dict(NO_RETURN)
    for each in told:
        node = _node(each, of_syscall=tracepoint.startswith(_SYSCALLS))
        made[f"args.{each.name}"] = node
        if each.name not in OF_THREADS:
            made[each.name] = node
    return made


def _node(told: Told, *, of_syscall: bool) -> Node:
    if told.offset + told.size > _RECORD:
        return _odd("behind the end of the record")
    if told.type.endswith("]"):
        return _array(told)
    if told.type.endswith("*") and told.size == _ADDRESS:
        # Only system calls have strings of the user there; other addresses are the kernel's.
        is_text = of_syscall and told.type.removeprefix("const ") == "char *"
        return Field(TEXT if is_text else Pointer(None), told.offset)
    if told.size not in _SIZES or told.type.startswith(("struct ", "union ", "__data_loc", "__rel_loc")):
        return _odd(f"{told.type}, of {told.size} bytes")
    found = Field(Integer(8 * told.size, told.is_signed), told.offset)
    narrow = _NARROW.get(told.type) if of_syscall and told.size == _ADDRESS else None
    return Convert(narrow, found) if narrow else found


def _array(told: Told) -> Node:
    """String for an array of characters."""
    match = _ARRAY.fullmatch(told.type)
    if match and match[2] == "char" and told.size:
        if match[1]:
            return FieldText(Words(_STRING), told.offset, _LOCATED[match[1]])
        return FieldText(Words(min(told.size, _STRING)), told.offset, Layout.IN_PLACE)
    return _odd("an array of numbers")


def _odd(why: str) -> Node:
    return Input(Unreadable(why), "")
