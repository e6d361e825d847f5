"""Reads the members of a large JSON document one by one: memory holds one member, not the document."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, cast

from .source import Source

MAX_VALUE = 64 << 20
"""Maximum length of one value, in characters."""

_CHUNK = 1 << 18
_LONGEST_WORD = 12
"""Maximum length of a scalar that is not a string (-Infinity), or of an escape in a string, in characters."""
SPACE = re.compile(r"[ \t\r\n]*")


_PARTIAL = re.compile(r"(?:[-+.\w]{0,12}|\\u?\w{0,3})[ \t\r\n]*\Z")
"""Matches the beginning of a number, a word or an escape at the end of the text."""


def is_cut(text: str, place: int, message: str) -> bool:
    """Whether an error of `json.loads`, given by its ``message`` and ``place``, means that ``text`` ends too early."""
    if message.startswith("Unterminated string"):
        return True
    return message != "Extra data" and _PARTIAL.match(text, place) is not None


class Unfinished(Exception):
    """The document ends too early: ``within`` a value, or between two."""

    def __init__(self, within: bool) -> None:
        super().__init__()
        self.within = within


class Member(NamedTuple):
    """An element of the array called ``key`` ("" for the document itself), or the member ``key`` of the document."""

    key: str
    value: Any
    element: bool


class JsonStream:
    """Reads a document that is an array, or an object with arrays. Numbers with a fraction are returned as text."""

    def __init__(self, source: Source, split: frozenset[str], bulk: Callable[[str, bytes], int] | None = None) -> None:
        """``split``: the arrays of the document's object that are returned element by element.

        ``bulk`` may consume elements itself: it gets the array's key and a text that begins with an element, and
        returns how many bytes of it were consumed, up to the start of another element. It must leave invalid JSON."""
        self._source = source
        self._bulk = bulk
        self._split = split
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(parse_float=str).scan_once  # type: ignore[attr-defined]
        self._text = ""
        self._at = 0
        self._line = 1
        self._ended = False

    def members(self) -> Iterator[Member]:
        """The members in document order. Unfinished if it ends too early; StallscopeError for invalid JSON."""
        first = self._peek()
        if first == "\ufeff":
            self._at += 1
            first = self._peek()
        if first == "[":
            yield from self._elements("")
        elif first == "{":
            yield from self._object()
        else:
            self._fail("a JSON array or object")

    def _object(self) -> Iterator[Member]:
        self._at += 1
        while (char := self._peek()) != "}":
            if char == ",":
                self._at += 1
                continue
            key = self._value()
            if not isinstance(key, str) or self._peek() != ":":
                self._fail('"key": value')
            self._at += 1
            if self._peek() == "[" and key in self._split:
                yield from self._elements(key)
            else:
                yield Member(key, self._value(), False)
        self._at += 1

    def _by_bulk(self, key: str) -> None:
        """Lets ``bulk`` consume what it can of this text; an element begins at the current position."""
        if self._bulk is not None and self._text[self._at] == "{":
            data = self._text[self._at :].encode()
            taken = self._bulk(key, data)
            self._at += taken if self._text.isascii() else len(data[:taken].decode())

    def _several(self) -> list[Any]:
        """Parses the elements from here up to the last one that is followed by another, all in one call. Returns [] if
        that fails: the cut may be inside an element or after the array, which leaves open brackets or trailing text."""
        text = self._text
        if (cut := text.rfind("},", self._at)) < 0:
            return []
        part = f"[{text[self._at : cut + 1]}]"
        try:
            values, end = self._scan(part, 0)
        except (StopIteration, ValueError):
            return []
        if end != len(part):
            return []
        self._at = SPACE.match(text, cut + 2).end()  # type: ignore[union-attr]
        return cast("list[Any]", values)

    def _elements(self, key: str) -> Iterator[Member]:
        self._at += 1
        tried = ""
        while (char := self._peek()) != "]":
            if char == ",":
                self._at += 1
            elif tried is not self._text:  # More was read, which creates a new object.
                tried = self._text
                self._by_bulk(key)
                for value in self._several():
                    yield Member(key, value, True)
            else:
                yield from self._whole(key)
        self._at += 1

    def _whole(self, key: str) -> Iterator[Member]:
        """Yields the element that begins here, and the complete ones after it in this text without a call for each."""
        scan, space, text = self._scan, SPACE.match, self._text
        yield Member(key, self._value(), True)
        try:
            while text is self._text and text[(after := space(text, self._at).end())] == ",":  # type: ignore[union-attr]
                value, end = scan(text, space(text, after + 1).end())  # type: ignore[union-attr]
                if not self._is_end(end):
                    return
                self._at = end
                yield Member(key, value, True)
        except (StopIteration, ValueError, IndexError):
            pass

    def _peek(self) -> str:
        """The next character that is not white space."""
        while True:
            self._at = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                raise Unfinished(within=False)

    def _value(self) -> Any:
        """The value that begins here; reads as much as needed. A number is complete if another character follows."""
        self._peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
                if self._ended or self._text[self._at] in '{["' or self._is_end(end):
                    self._at = end
                    return value
            except StopIteration as error:
                self._check(error.value, "a value")
            except json.JSONDecodeError as error:
                self._check(error.pos, error.msg)
            except ValueError:  # sys.set_int_max_str_digits
                self._fail("JSON numbers that are less long")
            if not self._more():
                raise Unfinished(within=True)

    def _is_end(self, end: int) -> bool:
        """Whether a number read up to here is complete, rather than cut at the end of this text."""
        return end + 2 < len(self._text) or self._text[end : end + 1] not in ("", ".", "e", "E")

    def _check(self, place: int, error: str) -> None:
        """Raises the error for an invalid value, unless more text may complete it."""
        if place < len(self._text) - _LONGEST_WORD and not error.startswith("Unterminated string"):
            self._fail(f"JSON ({error})")

    def _more(self) -> bool:
        """Reads more text. Returns whether there was any."""
        if self._ended:
            return False
        rest = len(self._text) - self._at
        if rest > MAX_VALUE:
            self._fail(f"JSON values of less than {MAX_VALUE >> 20} MiB")
        self._line += self._text.count("\n", 0, self._at)
        data = self._source.read(max(_CHUNK, rest))
        self._ended = not data
        self._text = self._text[self._at :] + self._decode(data, final=self._ended)
        self._at = 0
        return True

    def _fail(self, expected: str) -> NoReturn:
        self._line += self._text.count("\n", 0, self._at)
        self._source.fail(self._line, expected)
