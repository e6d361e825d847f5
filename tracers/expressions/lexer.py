"""Words of an expression, with their places in the text."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

LONGEST = 1000
"""Characters of an expression."""
_MOST = 1 << 64
_WORDS = re.compile(
    r"(?P<space>[ \t\n]+)"
    r"|(?P<number>[0-9][0-9A-Za-z_.]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r'|(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<character>'(?:[^'\\]|\\.)*')"
    r"|(?P<sign>->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^!~<>()\[\].,:=])",
    re.ASCII | re.DOTALL,
)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|0|[1-9][0-9]*", re.ASCII)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


class QuestionError(ValueError):
    """An expression is wrong. ``begin`` and ``end``: the characters of it that are at fault."""

    def __init__(self, what: str, begin: int, end: int) -> None:
        super().__init__(what)
        self.what, self.begin, self.end = what, begin, max(end, begin + 1)


class Kind(Enum):
    """Kind of a word."""

    NUMBER = "a number"
    NAME = "a name"
    TEXT = "a string"
    SIGN = "a sign"
    END = "the end"


class Word(NamedTuple):
    """``value``: of a number an int, of a string its bytes, else the text."""

    kind: Kind
    value: int | str | bytes
    begin: int
    end: int


def words(text: str) -> list[Word]:
    """All words, and one for the end. QuestionError."""
    if len(text) > LONGEST:
        raise QuestionError(f"it has more than {LONGEST:,} characters", LONGEST, LONGEST + 1)
    found, at = [], 0
    while at < len(text):
        match = _WORDS.match(text, at)
        if match is None:
            raise QuestionError(_stranger(text[at]), at, at + 1)
        at = match.end()
        if match.lastgroup != "space":
            found.append(_word(match))
    return [*found, Word(Kind.END, "", len(text.rstrip()), len(text.rstrip()) + 1)]


def _stranger(char: str) -> str:
    if char in "\"'":
        return "this string does not end"
    if char in ";{}#@$`?":
        return f"{char!r} is not a part of an expression"
    return "this character is not a part of an expression"


def _word(match: re.Match[str]) -> Word:
    begin, end, text = match.start(), match.end(), match.group()
    if match.lastgroup == "number":
        return Word(Kind.NUMBER, _number(text, begin, end), begin, end)
    if match.lastgroup == "name":
        return Word(Kind.NAME, text, begin, end)
    if match.lastgroup == "sign":
        return Word(Kind.SIGN, text, begin, end)
    value = _unescaped(text, begin)
    if match.lastgroup == "text":
        return Word(Kind.TEXT, value, begin, end)
    if len(value) != 1:
        raise QuestionError('a character has one byte; a string is between "…"', begin, end)
    return Word(Kind.NUMBER, value[0], begin, end)


def _number(text: str, begin: int, end: int) -> int:
    if not _NUMBER.fullmatch(text):
        if "." in text:
            raise QuestionError("only whole numbers: the kernel side has no floating point", begin, end)
        raise QuestionError("this is not a number: 4096, 0x1000 or 0b1", begin, end)
    value = int(text, 0)
    if value >= _MOST:
        raise QuestionError("this number has more than 64 bits", begin, end)
    return value


def _unescaped(text: str, begin: int) -> bytes:
    """The bytes of a quoted string."""
    made, at = bytearray(), 1
    while at < len(text) - 1:
        char = text[at]
        at += 1
        if char == "\\":
            char = text[at]
            at += 1
            if char == "x":
                digits = text[at : at + 2]
                if not re.fullmatch(r"[0-9a-fA-F]{2}", digits, re.ASCII):
                    raise QuestionError(r"\x has two hexadecimal digits", begin + at - 2, begin + at)
                made.append(int(digits, 16))
                at += 2
                continue
            if char not in _ESCAPES:
                raise QuestionError("this escape is not known", begin + at - 2, begin + at)
            char = _ESCAPES[char]
        made += char.encode("utf-8", "surrogateescape")
    return bytes(made)
