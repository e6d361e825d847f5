"""Plain data in Python's marshal format, versions 0 to 5: numbers, strings, tuples and dictionaries, nothing else.

``marshal.loads`` trusts its input: crafted bytes may crash the interpreter. This decoder is bounded by the input's size
and by a depth, and does not support code objects. Source of the format: Python/marshal.c in CPython.
"""

from __future__ import annotations

import struct
from typing import Any

_REF = 0x80
_MAX_DEPTH = 16
_LONG_DIGIT_BITS = 15
_MAX_LONG_DIGITS = 16
_NULL = object()
_CONSTANTS = {"N": None, "T": True, "F": False, "0": _NULL}


def decode(data: bytes) -> Any:
    """The value; ValueError, which names the byte, for anything else, including lists, sets and code."""
    decoder = _Decoder(data)
    try:
        value = decoder.value(0)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"byte {decoder.at}: {error or 'cut short'}") from error
    if value is _NULL:
        raise ValueError("byte 0: no value")
    return value


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data
        self._refs: list[Any] = []
        self._interned: list[str] = []

    def value(self, depth: int) -> Any:
        """The value that begins here."""
        begin = self.at
        code = self._bytes(1)[0]
        if depth > _MAX_DEPTH:
            raise ValueError(f"byte {begin}: nested too deeply")
        slot = -1
        if code & _REF:
            slot = len(self._refs)
            self._refs.append(_NULL)
        kind = chr(code & ~_REF)
        if kind in "({)":
            value = self._dictionary(depth) if kind == "{" else self._tuple(kind, depth)
        else:
            value = self._scalar(kind, begin)
        if slot >= 0:
            self._refs[slot] = value
        return value

    def _scalar(self, kind: str, begin: int) -> Any:
        if kind in "iIgfl":
            return self._number(kind)
        if kind in "zZaAuts":
            return self._text(kind)
        if kind in "rR":
            known = self._refs if kind == "r" else self._interned
            value = known[self._size()]
            if value is not _NULL:
                return value
        elif kind in _CONSTANTS:
            return _CONSTANTS[kind]
        raise ValueError(f"byte {begin}: {kind!r} is no number, string, tuple or dictionary")

    def _number(self, kind: str) -> Any:
        if kind == "l":
            return self._long()
        if kind == "f":
            return float(self._bytes(self._bytes(1)[0]))
        code = {"i": "<i", "I": "<q", "g": "<d"}[kind]
        return struct.unpack(code, self._bytes(struct.calcsize(code)))[0]

    def _text(self, kind: str) -> str:
        """A string; in Python 2's data also a byte string, to which later references are possible."""
        data = self._bytes(self._bytes(1)[0] if kind in "zZ" else self._size())
        if kind in "zZaA":
            return data.decode("latin-1")
        text = data.decode("utf-8", "surrogateescape" if kind == "s" else "surrogatepass")
        if kind == "t":
            self._interned.append(text)
        return text

    def _tuple(self, kind: str, depth: int) -> tuple[Any, ...]:
        size = self._size() if kind == "(" else self._bytes(1)[0]
        return tuple([self._item(depth) for _ in range(size)])

    def _dictionary(self, depth: int) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        while (key := self.value(depth + 1)) is not _NULL:
            try:
                entries[key] = self._item(depth)
            except TypeError as error:
                raise ValueError(f"byte {self.at}: a dictionary's key that is none") from error
        return entries

    def _item(self, depth: int) -> Any:
        value = self.value(depth + 1)
        if value is _NULL:
            raise ValueError(f"byte {self.at}: a value is missing")
        return value

    def _long(self) -> int:
        count = struct.unpack("<i", self._bytes(4))[0]
        if abs(count) > _MAX_LONG_DIGITS:
            raise ValueError(f"byte {self.at}: a number is too large")
        digits = struct.unpack(f"<{abs(count)}H", self._bytes(2 * abs(count)))
        number: int = sum(digit << (_LONG_DIGIT_BITS * i) for i, digit in enumerate(digits))
        return -number if count < 0 else number

    def _size(self) -> int:
        """The size of what follows, or a reference; never more than the number of bytes."""
        size: int = struct.unpack("<I", self._bytes(4))[0]
        if size > len(self._data):
            raise ValueError(f"byte {self.at}: cut short")
        return size

    def _bytes(self, size: int) -> bytes:
        data = self._data[self.at : self.at + size]
        if len(data) < size:
            raise ValueError(f"byte {self.at}: cut short")
        self.at += size
        return data
