"""Reads one JSON document part by part, at any depth, as strictly as `json.loads`, and with its messages."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

from ..base.json_stream import SPACE, JsonStream, Unfinished, is_cut
from ..base.source import Source

_LONGEST_WORD = 12
"""Characters at the end of a text that may be invalid only because it ends: -Infinity, or an escape in a string."""


def _told_at(text: str, comma: int) -> str:
    """The message of `json.loads` for a comma after which nothing follows; "" if it only reports what is missing."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.msg if error.pos == comma else ""
    return ""


_TRAILING_COMMA = {"}": _told_at('{"":0,}', 5), "]": _told_at("[0,]", 2)}
"""Python 3.13 and newer have a message for this."""


class JsonParts(JsonStream):
    """Positioned at a value, which is then read to its end by one of `keys_here`, `elements` and `value`. For each item
    that the first two yield, the caller must read the value before it continues.

    StallscopeError gives the place of invalid JSON; ValueError means that a text or number cannot be decoded."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, frozenset())
        self._scan = cast("Callable[[str, int], tuple[Any, int]]", json.JSONDecoder().scan_once)  # type: ignore[attr-defined]
        self._decoder = codecs.getincrementaldecoder(json.detect_encoding(source.head))(errors="surrogatepass")
        self._decode = self._decoded  # type: ignore[assignment]
        self._bytes = 0
        self._column = 0
        """Characters before this text in the line where it begins."""
        self._tried = self._parsed = ""

    def next(self) -> str:
        """The first character of the next token; "" at the end."""
        try:
            return self._peek()
        except Unfinished:
            return ""

    def end(self) -> None:
        """Checks that the document ends here."""
        if self.next():
            self._wrong("Extra data")

    def keys_here(self) -> Iterator[str]:
        """Yields the keys of the object that begins here, each before its value is read."""
        self.next()
        self._at += 1
        char = self.next()
        if char == "}":
            self._at += 1
            return
        while char != "}":
            if self.next() != '"':
                self._wrong("Expecting property name enclosed in double quotes")
            key = self.value()
            if self.next() != ":":
                self._wrong("Expecting ':' delimiter")
            self._at += 1
            yield key
            char = self._after("}")

    def elements(self) -> Iterator[None]:
        """Yields once for each element of the array that begins here."""
        self._tried = self._parsed = ""
        self.next()
        self._at += 1
        if self.next() == "]":
            self._at += 1
            return
        char = ","
        while char == ",":
            yield
            char = self._after("]")

    def value(self) -> Any:
        """Reads the whole value that begins here."""
        self.next()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
                if self._ended or self._text[self._at] in '{["' or self._is_end(end):
                    self._at = end
                    return value
            except StopIteration as error:
                self._may_go_on("Expecting value", error.value)
            except json.JSONDecodeError as error:
                self._may_go_on(error.msg, error.pos)
            self._more()

    def run(self, separator: str, until: str) -> str:
        """The text from here to the last ``separator`` before the first ``until``; "" if there is none.

        Returned only once for the same text: what the caller does not consume with `skip` must be read as values."""
        if self._tried is self._text:
            return ""
        self._tried = self._text
        end = self._text.find(until, self._at)
        cut = self._text.rfind(separator, self._at, end if end >= 0 else len(self._text))
        return self._text[self._at : cut] if cut >= 0 else ""

    def objects(self, until: str) -> list[Any]:
        """Parses at once, and consumes, the elements from here to the first ``until`` in this text, except the last;
        [] if that fails, or was tried before on this text."""
        text = self._text
        if self._parsed is text:
            return []
        self._parsed = text
        end = text.find(until, self._at)
        cut = text.rfind("},", self._at, end if end >= 0 else len(text))
        after = SPACE.match(text, cut + 2).end() if cut >= 0 else 0  # type: ignore[union-attr]
        if text[after : after + 1] != "{" or not after:
            return []
        part = f"[{text[self._at : cut + 1]}]"
        try:
            values, length = self._scan(part, 0)
        except (StopIteration, ValueError):
            return []
        if length != len(part):
            return []
        self._at = after
        return cast("list[Any]", values)

    def ahead(self, size: int) -> str:
        """Next characters, up to ``size``, as far as they are available."""
        return self._text[self._at : self._at + size]

    def skip(self, size: int) -> None:
        """Advances by ``size`` available characters, to where an element begins."""
        self._at += size

    def _after(self, closing: str) -> str:
        """Reads the next comma or ``closing``, and returns it."""
        char = self.next()
        if not char or char not in ("," + closing):
            self._wrong("Expecting ',' delimiter")
        if char == "," and _TRAILING_COMMA[closing] and self._behind() == closing:
            self._wrong(_TRAILING_COMMA[closing])
        self._at += 1
        return char

    def _behind(self) -> str:
        """The character after the current one, which is not consumed; "" at the end."""
        while True:
            place = SPACE.match(self._text, self._at + 1).end()  # type: ignore[union-attr]
            if place < len(self._text) or not self._more():
                return self._text[place : place + 1]

    def _may_go_on(self, message: str, place: int) -> None:
        """Raises the error for an invalid value, unless more text may complete it."""
        ends = place >= len(self._text) - _LONGEST_WORD or message.startswith("Unterminated string")
        if self._ended or not ends:
            self._wrong(message, place)

    def _wrong(self, message: str, place: int | None = None) -> NoReturn:
        place = self._at if place is None else place
        if self._ended and is_cut(self._text, place, message):
            self._source.fail_cut(self._line + self._text.count("\n"))
        before = self._text[:place]
        line = before.rfind("\n")
        column = len(before) - line if line >= 0 else self._column + len(before) + 1
        self._source.fail(self._line + before.count("\n"), f"JSON ({message} at column {column})")

    def _more(self) -> bool:
        if not self._ended:
            line = self._text.rfind("\n", 0, self._at)
            self._column = self._at - line - 1 if line >= 0 else self._column + self._at
        return super()._more()

    def _decoded(self, data: Any, final: bool = False) -> str:
        self._bytes += len(data)
        try:
            return self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            if final and error.end == len(error.object):
                self._source.fail_cut(self._line + self._text.count("\n"))
            start, end = (self._bytes - len(error.object) + each for each in (error.start, error.end))
            byte = error.object[error.start]
            where = (
                f"byte 0x{byte:02x} in position {start}" if end - start == 1 else f"bytes in position {start}-{end - 1}"
            )
            raise ValueError(f"'{error.encoding}' codec can't decode {where}: {error.reason}") from error
