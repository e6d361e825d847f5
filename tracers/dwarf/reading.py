"""Reads functions' parameters and types from DWARF by pyelftools, within bounds: in a process of its own (child.py).

Tags, attributes and encodings: the DWARF 5 standard, which pyelftools names. The results are plain data, for JSON.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

_DIES = 3_000_000
"""Entries that are read of a file at most."""
_TYPES = 2_000
"""Types that are told."""
_CHAIN = 64
"""Typedefs and the like on top of each other."""
_MEMBERS = 2_000
"""Members of a struct, at most, those of structs without a name and of base classes included."""
_C_LANGUAGES = frozenset((0x1, 0x2, 0x4, 0xC, 0x1D, 0x10, 0x11, 0x19, 0x1A, 0x1C, 0x21, 0x2B, 0x2C, 0x2E, 0x3A, 0x3E))
"""DW_LANG_… of C, C++ and Objective-C."""
_NO_CALL = 3
"""DW_CC_nocall: called in a way of its own."""
_TRANSPARENT = frozenset(("typedef", "const_type", "volatile_type", "restrict_type", "atomic_type", "packed_type"))
_STRUCTS = frozenset(("structure_type", "class_type", "union_type"))
_SIGNED, _UNSIGNED, _FLOATS = frozenset((0x5, 0x6)), frozenset((0x2, 0x7, 0x8, 0x10)), frozenset((0x3, 0x4, 0x9, 0xF))
"""DW_ATE_…"""


class Refused(Exception):
    """A function's parameters cannot be told: why, as a sentence."""


class Reader:
    """Reads one file. ``members``: the names of members that are of interest, all others are only named."""

    def __init__(self, dwarf: Any, members: frozenset[str], seconds: float) -> None:
        self._dwarf, self._members = dwarf, members
        self._until = time.monotonic() + seconds
        self._left = _DIES
        self._ids: dict[int, int] = {}
        self._todo: list[tuple[int, Any]] = []
        self.types: dict[int, dict[str, Any]] = {}
        """Descriptions of types, by number."""

    def functions(self, addresses: list[int]) -> list[dict[str, Any]]:
        """Description of the function at each address: ``parameters`` and ``result``, else ``fault``."""
        found: dict[int, Any] = {}
        wanted = set(addresses)
        for unit in self._units(wanted):
            for die in self._subprograms(unit):
                for begin in self._begins(die):
                    if begin in wanted:
                        found.setdefault(begin, die)
            if len(found) == len(wanted):
                break
        made = []
        for address in addresses:
            try:
                if address not in found:
                    raise Refused("there is no debug information about it")
                made.append(self._function(found[address]))
            except Refused as error:
                made.append({"fault": str(error)})
        while self._todo:
            number, die = self._todo.pop()
            self.types[number] = self._described(die)
        return made

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0 or (self._left % 256 == 0 and time.monotonic() > self._until):
            raise TimeoutError

    def _units(self, wanted: set[int]) -> Iterator[Any]:
        """Units with the functions; all, if no table says where these are."""
        table = self._dwarf.get_aranges()
        offsets = {table.cu_offset_at_addr(address) for address in wanted} if table else {None}
        if None not in offsets:
            for offset in offsets:
                yield self._dwarf.get_CU_at(offset)
            return
        for unit in self._dwarf.iter_CUs():
            self._spend()
            yield unit

    def _subprograms(self, unit: Any) -> Iterator[Any]:
        """Functions at the top, in namespaces and in classes."""
        todo = [unit.get_top_DIE()]
        while todo:
            die = todo.pop()
            self._spend()
            for child in self._children(die):
                tag = _tag(child)
                if tag == "subprogram":
                    yield child
                elif tag == "namespace" or tag in _STRUCTS or tag == "module":
                    todo.append(child)

    def _begins(self, die: Any) -> Iterator[int]:
        """Addresses where its code begins; of one in several parts, that of each."""
        for name in ("DW_AT_low_pc", "DW_AT_entry_pc"):
            begin = _number(die, name)
            if begin is not None:
                yield begin
        place = _number(die, "DW_AT_ranges")
        lists = self._dwarf.range_lists() if place is not None else None
        if lists is None:
            return
        if die.attributes["DW_AT_ranges"].form == "DW_FORM_rnglistx":
            return  # an index, which pyelftools has looked up only since 0.30
        entries = lists.get_range_list_at_offset(place, die.cu)
        base = _number(die.cu.get_top_DIE(), "DW_AT_low_pc") or 0
        for entry in entries[:_CHAIN]:
            begin = getattr(entry, "begin_offset", None)
            if begin is None:
                base = getattr(entry, "base_address", base)
            else:
                yield begin if getattr(entry, "is_absolute", False) else base + begin

    def _children(self, die: Any) -> Iterator[Any]:
        for child in die.iter_children():
            self._spend()
            yield child

    def _origin(self, die: Any) -> Iterator[Any]:
        """The entry, and those that say what it leaves out."""
        for _ in range(_CHAIN):
            yield die
            for name in ("DW_AT_abstract_origin", "DW_AT_specification"):
                if name in die.attributes:
                    die = die.get_DIE_from_attribute(name)
                    break
            else:
                return

    def _attribute(self, die: Any, name: str) -> Any:
        """The entry that has it, or None."""
        return next((each for each in self._origin(die) if name in each.attributes), None)

    def _type_of(self, die: Any) -> Any:
        """The entry of its type, without names and qualifiers; None for void."""
        holder = self._attribute(die, "DW_AT_type")
        for _ in range(_CHAIN):
            if holder is None or "DW_AT_type" not in holder.attributes:
                return None
            found = holder.get_DIE_from_attribute("DW_AT_type")
            self._spend()
            if _tag(found) not in _TRANSPARENT:
                return found
            holder = found
        raise Refused("a type is named by itself")

    def _function(self, die: Any) -> dict[str, Any]:
        language = _number(die.cu.get_top_DIE(), "DW_AT_language")
        if language not in _C_LANGUAGES:
            raise Refused("it is not of C or C++: where its arguments are is not known")
        if any(_number(each, "DW_AT_calling_convention") == _NO_CALL for each in self._origin(die)):
            raise Refused("the compiler has given it a way of its own to be called")
        result = self._type_of(die)
        if result is not None and _tag(result) in _STRUCTS:
            raise Refused("its result is a struct by value: where its arguments are is not known")
        places, parameters = _Places(), []
        for child in self._children(die):
            if _tag(child) != "formal_parameter":
                continue
            kind = self._type_of(child)
            name = self._name(child)
            why, place = places.next(kind, _size(kind))
            number = self._number(kind) if not why else self._refused(why)
            parameters.append({"name": name, "type": number, "place": place})
        return {"parameters": parameters, "result": self._number(result)}

    def _name(self, die: Any) -> str:
        holder = self._attribute(die, "DW_AT_name")
        return _text(holder) if holder is not None else ""

    def _number(self, die: Any) -> int:
        """Number of a type, which will be described; 0 is void."""
        if die is None:
            return 0
        if die.offset not in self._ids:
            if len(self._ids) >= _TYPES:
                return self._refused("beyond the number of types that are read")
            self._ids[die.offset] = number = len(self._ids) + 1
            self._todo.append((number, die))
        return self._ids[die.offset]

    def _refused(self, why: str) -> int:
        number = -1 - sum(1 for each in self.types if each < 0)
        self.types[number] = {"kind": "unreadable", "why": why}
        return number

    def _described(self, die: Any) -> dict[str, Any]:  # noqa: PLR0911
        tag = _tag(die)
        if tag in ("base_type", "enumeration_type"):
            return self._integer(die, tag)
        if tag == "pointer_type":
            return {"kind": "pointer", "target": self._number(self._type_of(die))}
        if tag in ("reference_type", "rvalue_reference_type"):
            return {"kind": "reference", "target": self._number(self._type_of(die))}
        if tag == "array_type":
            return {"kind": "array", "element": self._number(self._type_of(die)), "count": self._count(die)}
        if tag in _STRUCTS:
            size = _number(die, "DW_AT_byte_size") or 0
            members = list(self._members_of(die))
            return {"kind": "struct", "name": _text(die), "size": size, "members": members}
        if tag == "subroutine_type":
            return {"kind": "unreadable", "why": "a function"}
        return {"kind": "unreadable", "why": f"a {tag.replace('_', ' ')}"}

    def _integer(self, die: Any, tag: str) -> dict[str, Any]:
        size = _number(die, "DW_AT_byte_size") or 0
        if size not in (1, 2, 4, 8):
            return {"kind": "unreadable", "why": f"a number of {size} bytes"}
        encoding = _number(die, "DW_AT_encoding")
        if tag == "enumeration_type":
            values = (_number(child, "DW_AT_const_value") or 0 for child in self._children(die))
            underlying = self._type_of(die)
            if underlying is not None:
                encoding = _number(underlying, "DW_AT_encoding")
                return {"kind": "integer", "size": size, "signed": encoding in _SIGNED}
            return {"kind": "integer", "size": size, "signed": any(value < 0 for value in values)}
        if encoding in _FLOATS:
            return {"kind": "unreadable", "why": "a floating-point number"}
        if encoding not in _SIGNED | _UNSIGNED:
            return {"kind": "unreadable", "why": "a number of a kind that is not known"}
        return {"kind": "integer", "size": size, "signed": encoding in _SIGNED}

    def _count(self, die: Any) -> int:
        """Elements; 0 if it is not told, or of an array of arrays."""
        ranges = [child for child in self._children(die) if _tag(child) == "subrange_type"]
        if len(ranges) != 1:
            return 0
        count = _number(ranges[0], "DW_AT_count")
        if count is None:
            upper = _number(ranges[0], "DW_AT_upper_bound")
            count = upper + 1 if upper is not None else 0
        return max(count, 0)

    def _members_of(self, die: Any, base: int = 0, depth: int = 0) -> Iterator[list[Any]]:
        """[name, offset, number of the type], with those of structs without a name and of base classes."""
        for child in self._children(die):
            tag = _tag(child)
            if tag not in ("member", "inheritance") or "DW_AT_external" in child.attributes:
                continue
            offset = _number(child, "DW_AT_data_member_location")
            if offset is None:
                offset = 0 if _tag(die) == "union_type" or "DW_AT_data_bit_offset" in child.attributes else None
            name = _text(child)
            if not name or tag == "inheritance":
                kind = self._type_of(child)
                known = offset is not None and kind is not None and _tag(kind) in _STRUCTS
                if known and depth < 8 and _number(child, "DW_AT_virtuality") in (None, 0):
                    yield from self._members_of(kind, base + (offset or 0), depth + 1)
                continue
            yield [name, base + (offset or 0), self._member(child, name, known=offset is not None)]

    def _member(self, die: Any, name: str, *, known: bool) -> int:
        if name not in self._members:
            return 0
        if "DW_AT_bit_size" in die.attributes:
            return self._refused("a bit field")
        if not known:
            return self._refused("at a place that is not constant")
        return self._number(self._type_of(die))


class _Places:
    """Places in which the System V ABI of x86-64 passes arguments, one after the other: numbers and addresses."""

    def __init__(self) -> None:
        self._registers = 0
        self._floats = 0
        self._stack = 8
        """Above the return address."""
        self._lost = ""

    def next(self, kind: Any, size: int) -> tuple[str, list[Any]]:
        """Reason why it cannot be told, "" if it can; and the register ("arg1"), or the offset from the stack
        pointer."""
        if self._lost:
            return self._lost, []
        tag = _tag(kind) if kind is not None else ""
        if tag == "base_type" and _number(kind, "DW_AT_encoding") in _FLOATS:
            if size in (4, 8):
                self._floats += 1
                self._stack += 8 if self._floats > 8 else 0
            else:
                self._lost = "behind an argument of which it is not known where it is"
            return "a floating-point number", []
        scalar = tag in ("base_type", "enumeration_type", "pointer_type", "reference_type", "rvalue_reference_type")
        if not scalar or size > 8:
            self._lost = "behind a struct that is passed by value, so that it is not known where it is"
            return "a struct that is passed by value" if tag in _STRUCTS else "not a number and no address", []
        if self._registers < 6:
            self._registers += 1
            return "", [f"arg{self._registers}"]
        self._stack += 8
        return "", [self._stack - 8]


def _size(kind: Any) -> int:
    """Bytes; addresses may leave it out."""
    if kind is None:
        return 0
    return _number(kind, "DW_AT_byte_size") or 8


def _tag(die: Any) -> str:
    return str(die.tag).removeprefix("DW_TAG_")


def _number(die: Any, name: str) -> int | None:
    attribute = die.attributes.get(name)
    value = attribute.value if attribute is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(die: Any) -> str:
    attribute = die.attributes.get("DW_AT_name")
    value = attribute.value if attribute is not None else b""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else ""
