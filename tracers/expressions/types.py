"""Types of values in expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_BYTE = 8


@dataclass(frozen=True)
class Type:
    """``title``: how it is named to the user."""

    @property
    def title(self) -> str:
        return "a value"

    @property
    def size(self) -> int:
        """Bytes in memory; 0: not known, so that nothing of it can be read."""
        return 0


@dataclass(frozen=True)
class Integer(Type):
    bits: int
    signed: bool

    @property
    def title(self) -> str:
        return f"{'i' if self.signed else 'u'}{self.bits}"

    @property
    def size(self) -> int:
        return self.bits // _BYTE


@dataclass(frozen=True)
class Pointer(Type):
    """Pointer to user memory. ``limit``: bytes from there on that belong to an array; 0: not known."""

    target: Type | None
    limit: int = 0

    @property
    def title(self) -> str:
        if self.is_text:
            return "str"
        return f"{self.target.title}*" if self.target else "ptr"

    @property
    def size(self) -> int:
        return 8

    @property
    def is_text(self) -> bool:
        """Whether it leads to a string, which ends with a 0."""
        return self.target == CHARACTER


@dataclass(frozen=True)
class Array(Type):
    """Array of a struct's member: as a value, it is the address of its first element."""

    element: Type
    count: int

    @property
    def title(self) -> str:
        return f"{self.element.title}[{self.count}]"

    @property
    def size(self) -> int:
        return self.element.size * self.count


@dataclass(frozen=True)
class Words(Type):
    """A string that was read; ``bytes`` at most."""

    bytes: int

    @property
    def title(self) -> str:
        return "str"


@dataclass(frozen=True)
class Unreadable(Type):
    """Type that expressions cannot take: ``why`` completes "it is …"."""

    why: str

    @property
    def title(self) -> str:
        return self.why


class Members:
    """The members of a struct; those of unnamed structs in it are its own."""

    def find(self, name: str) -> tuple[int, Type] | None:
        """The offset in bytes, and the type."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """Names of all members."""
        raise NotImplementedError


@dataclass(frozen=True)
class Struct(Type):
    name: str
    bytes: int
    members: Members = field(compare=False, repr=False)

    @property
    def title(self) -> str:
        return f"struct {self.name}" if self.name else "a struct without a name"

    @property
    def size(self) -> int:
        return self.bytes


CHARACTER = Integer(8, True)
U64, I64, I32, U32, U8 = Integer(64, False), Integer(64, True), Integer(32, True), Integer(32, False), Integer(8, False)
TEXT = Pointer(CHARACTER)
_NAMED: dict[str, Type] = {
    **{f"u{bits}": Integer(bits, False) for bits in (8, 16, 32, 64)},
    **{f"i{bits}": Integer(bits, True) for bits in (8, 16, 32, 64)},
    "char": CHARACTER,
    "bool": U8,
    "short": Integer(16, True),
    "int": I32,
    "unsigned": U32,
    "long": I64,
    "size_t": U64,
    "ptr": Pointer(None),
    "str": TEXT,
}
TYPES: Mapping[str, Type] = _NAMED
"""Types by the names that an expression can use; with a star, a pointer to one."""
_FLOAT = "BPF has no floating point: its values are in registers that a probe does not see"
NO_FLOATS = dict.fromkeys(("float", "double", "f32", "f64"), _FLOAT)


def of_name(name: str, stars: int) -> Type:
    """The type ``name``, with so many stars. KeyError."""
    found = TYPES[name]
    for _ in range(stars):
        found = Pointer(found)
    return found
