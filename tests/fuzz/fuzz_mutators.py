"""Ways to damage an input: as bytes, as text, as JSON, as protobuf messages, as an ELF file."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Sequence

from fuzz_elf import SECTION, SEGMENT, SYMBOL, Layout

MOST = 1 << 20
"""Bytes of an input."""
Mutator = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
"""(input, chance, other inputs) to another input."""

_BOUNDARIES = (0, 1, 2, 3, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0xFFFFFF, 1 << 24, 1 << 30)
_HIGH = (*(1 << n for n in (31, 32, 40, 47, 62, 63)), *((1 << n) - 1 for n in (31, 32, 47, 63, 64)))
_PIECES = (
    *(b"\n", b"\n\n", b"\r\n", b"\0", b" ", b"\t", b";", b":", b"(", b")", b"[", b"{", b'"', b"\\", b"->", b"+0x"),
    *(b"#", b"0", b"-1", b"99999999999999999999", b"1e999", b"NaN", b"-", b"--", b"0x", b"1_0", "\u0663".encode()),
    *(b"\xff\xfe", b"\x80", b"\xf0\x9f\x98\x80", "\u202e".encode(), b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xed\xa0\x80"),
    *(b"[unknown]", b"/tmp/perf-1.map", b"@[", b"]: 1", b"9" * 400, b"9" * 5000, b"f" * 40, b"-9223372036854775809"),
)
_VALUES = (
    *(b"null", b"true", b"{}", b"[]", b'""', b"-1", b"0", b"1e308", b"-1e999", b"NaN", b"Infinity", b'"\\ud800"'),
    *(b"18446744073709551616", b"0.1", b'"\\u0000"', b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b"[[[[]]]]"),
)
_TOKEN = re.compile(rb"[A-Za-z_]+|\d+|\s+|[^\sA-Za-z_\d]+")
_VALUE = re.compile(rb'-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|true|false|null|\[[^\[\]]*\]|\{[^{}]*\}')


def any_of(*mutators: Mutator) -> Mutator:
    """One of them each time."""

    def mutate(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 6))):
            data = chance.choice(mutators)(data, chance, others)[:MOST]
        return data

    return mutate


def overwrite(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """Random bytes instead of some."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(chance.randrange(1, 5)) + data[at + chance.randrange(9) :]


def insert(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """A piece that often matters, once or many times."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_PIECES) * chance.choice((1, 1, 1, 1, 1, 2, 2, 50, 300)) + data[at:]


def cut(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """Cuts some bytes out."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.randrange(200) :]


def truncate(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """Cuts the end off."""
    return data[: chance.randrange(len(data) + 1)]


def splice(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The begin of one, the end of another."""
    other = chance.choice(others)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :][:4_000]


def repeat(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """A part some times."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at : at + chance.randrange(60)] * chance.choice((2, 2, 5, 20)) + data[at:]


def swell(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """A part so often that what takes quadratic time shows."""
    if chance.random() > 0.15:
        return data
    at = chance.randrange(len(data) + 1)
    part = data[at : at + chance.choice((1, 2, 4, 16, 60, 300, 2000))]
    return (
        data[:at]
        + part * (chance.choice((MOST, MOST // 8, MOST // 8, MOST // 32, MOST // 32, MOST // 32)) // max(len(part), 1))
        + data[at:]
    )


def flip(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """One bit."""
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def number(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """A number of 1 to 8 bytes at the limit of something."""
    if not data:
        return data
    size = chance.choice((1, 2, 4, 8))
    at = chance.randrange(len(data)) // size * size if chance.random() < 0.7 else chance.randrange(len(data))
    value = chance.choice((*_BOUNDARIES, *_HIGH, len(data), len(data) - 1)) + chance.choice((0, 0, 0, 1, -1))
    return data[:at] + (value & (1 << 8 * size) - 1).to_bytes(size, "little") + data[at + size :]


def lines(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """Lines of it elsewhere."""
    found = data[: 1 << 16].splitlines(keepends=True)
    at, length = chance.randrange(len(found) + 1), chance.randrange(1, 4)
    moved = chance.sample(found, min(length, len(found)))
    return b"".join(found[:at] + moved + found[at + chance.randrange(3) :])


def tokens(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A word or number left out, repeated, huge, or replaced by another one."""
    found = list(_TOKEN.finditer(data[: 1 << 16]))
    if not found:
        return data
    token = chance.choice(found)
    other = chance.choice(list(_TOKEN.finditer(chance.choice(others)[: 1 << 14])) or [token])[0]
    new = chance.choice((b"", token[0] * 2, token[0] * chance.choice((10, 1000)), other, chance.choice(_PIECES)))
    return data[: token.start()] + new + data[token.end() :]


def json(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A value replaced by one of another kind, left out, repeated, or nested deeply."""
    found = list(_VALUE.finditer(data[: 1 << 16]))
    if not found:
        return data
    value = chance.choice(found)
    other = chance.choice(found)[0]
    deep = chance.choice((10, 1000, 100_000))
    nested = b"[" * deep + value[0] + b"]" * deep, b'{"a":' * deep + value[0] + b"}" * deep
    new = chance.choice((*[chance.choice(_VALUES)] * 2, other, b"", value[0] + b"," + value[0], *nested))
    return data[: value.start()] + new + data[value.end() :]


def protobuf(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A field of a message left out, repeated, with another number, length or content; at some depth."""
    fields = _fields(data)
    if not fields:
        return overwrite(data, chance, others)
    begin, at, end, kind = chance.choice(fields)
    tag, field, rest = data[begin : _read_varint(data, begin)[1]], data[begin:end], data[end:]
    what = chance.choice(("out", "more", "other", "number", "tag", "inside", "inside"))
    if what == "inside" and kind == 2:
        inner = data[at:end]
        changed = protobuf(inner, chance, others) if chance.random() < 0.8 else insert(inner, chance, others)
        new = tag + varint(len(changed)) + changed
    elif what in ("number", "inside"):
        value = varint(chance.choice((*_BOUNDARIES, *_HIGH, chance.randrange(200))))
        new = tag + value + (data[at:end] if kind == 2 else b"")
    else:
        another = chance.choice(fields)
        new = {
            "out": b"",
            "more": field * chance.choice((2, 3, 20, 3000)),
            "other": data[another[0] : another[2]],
            "tag": bytes([data[begin] ^ 1 << chance.randrange(7)]) + field[1:],
        }[what]
    return data[:begin] + new + rest


def varint(value: int) -> bytes:
    """Number as protobuf encodes it."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at
    raise ValueError


def _fields(data: bytes) -> list[tuple[int, int, int, int]]:
    """(begin, begin of the content, end, wire type) of each field, as far as they make sense."""
    found, at = [], 0
    try:
        while at < len(data) and len(found) < 2000:
            begin = at
            tag, at = _read_varint(data, at)
            content = at
            if tag & 7 == 0:
                _, at = _read_varint(data, at)
            elif tag & 7 == 2:
                size, content = _read_varint(data, at)
                at = content + size
            else:
                at += {1: 8, 5: 4}[tag & 7]
            if at > len(data):
                break
            found.append((begin, content, at, tag & 7))
    except (ValueError, KeyError):
        pass
    return found


def elf(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Fields of headers, sections, symbols, dynamic entries; sections that overlap; content of one section."""
    layout = Layout.of(data)
    if layout is None:
        return number(data, chance, others)
    what = chance.random()
    if what < 0.1:
        return _field(data, chance, 16, (2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2))
    if what < 0.65:
        places, sizes = chance.choice(
            (
                (layout.segments, SEGMENT),
                (layout.sections, SECTION),
                (layout.sections, SECTION),
                (layout.symbols, SYMBOL),
            )
        )
        return _field(data, chance, chance.choice(places), sizes) if places else number(data, chance, others)
    if what < 0.7 and layout.sections:  # two that overlap
        one, other = chance.choice(layout.sections), chance.choice(layout.sections)
        return data[: one + 24] + data[other + 24 : other + 40] + data[one + 40 :]
    return _content(data, layout, chance, others)


def _content(data: bytes, layout: Layout, chance: random.Random, others: Sequence[bytes]) -> bytes:
    if not layout.contents:
        return number(data, chance, others)
    begin, end = chance.choice(layout.contents)
    changed = chance.choice((number, number, overwrite, flip, flip, insert))(data[begin:end], chance, others)
    # Mostly, what follows stays where it is.
    if chance.random() < 0.9:
        changed = changed[: end - begin].ljust(end - begin, b"\0")
    return data[:begin] + changed + data[end:]


def _field(data: bytes, chance: random.Random, begin: int, sizes: Sequence[int]) -> bytes:
    which = chance.randrange(len(sizes))
    at, size = begin + sum(sizes[:which]), sizes[which]
    old = int.from_bytes(data[at : at + size], "little")
    near = old + chance.choice((1, -1, 8, -8, 4096, -4096, old))
    value = chance.choice((near, near, *_BOUNDARIES, *_HIGH, len(data), len(data) - old, chance.randrange(64)))
    return data[:at] + (value & (1 << 8 * size) - 1).to_bytes(size, "little") + data[at + size :]


def sparse(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """A file that is larger than its content: see `fuzz_elf.opened`."""
    if chance.random() > 0.1 or data[-12:-8] == b"SPRS":
        return data
    return data + b"SPRS" + struct.pack("<Q", chance.choice((1 << 20, 1 << 26, 1 << 28, 1 << 30, 1 << 36, 1 << 40)))


_BYTES = (overwrite, insert, cut, truncate, splice, repeat, flip, flip, number, number, swell)
havoc = any_of(*_BYTES)
as_text = any_of(*_BYTES, lines, lines, tokens, tokens, tokens)
as_json = any_of(*_BYTES, tokens, json, json, json, json, json)
as_protobuf = any_of(protobuf, protobuf, protobuf, protobuf, overwrite, flip, truncate, swell)
as_elf = any_of(elf, elf, elf, elf, elf, elf, elf, elf, number, truncate, sparse, splice, swell)
