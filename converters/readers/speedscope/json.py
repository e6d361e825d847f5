"""One JSON document part by part, at any depth, as strict as `json.loads`, and with its messages."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

from .json_stream import JsonStream, Unfinished
from .source import Source

_LONGEST_WORD = 12
"""Characters at the end of a text that may be wrong only because it ends: -Infinity, or an escape in a string."""


class JsonParts(JsonStream):
    """Stands at a value, which is then taken by one of `keys_here`, `elements` and `value`, to its end. What the first
    two yield for has to be taken before they go on.

    StallscopeError says where it is no JSON; ValueError that a text or a number cannot be decoded."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, frozenset())
        self._scan = cast("Callable[[str, int], tuple[Any, int]]", json.JSONDecoder().scan_once)  # type: ignore[attr-defined]
        self._decoder = codecs.getincrementaldecoder(json.detect_encoding(source.head))(errors="surrogatepass")
        self._decode = self._decoded  # type: ignore[assignment]
        self._bytes = 0
        self._column = 0
        """Characters of the line that this text begins in, before it."""
        self._tried = ""

    def next(self) -> str:
        """The character that begins what comes next; "" at the end."""
        try:
            return self._peek()
        except Unfinished:
            return ""

    def end(self) -> None:
        """The document ends here."""
        if self.next():
            self._wrong("Extra data")

    def keys_here(self) -> Iterator[str]:
        """Of the object that begins here, each with its value ahead."""
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
        """Of the array that begins here."""
        self._tried = ""
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
        """What begins here, as a whole."""
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
        """The text from here to before the last ``separator`` that stands before the first ``until``; "" for none.

        It is told once only of the same text: what is not taken then, with `skip`, has to come as values."""
        if self._tried is self._text:
            return ""
        self._tried = self._text
        end = self._text.find(until, self._at)
        cut = self._text.rfind(separator, self._at, end if end >= 0 else len(self._text))
        return self._text[self._at : cut] if cut >= 0 else ""

    def ahead(self, size: int) -> str:
        """So many characters of what is there, from here on, or as many as there are."""
        return self._text[self._at : self._at + size]

    def skip(self, size: int) -> None:
        """Goes on by so many characters, which are there, to where an element begins."""
        self._at += size

    def _after(self, closing: str) -> str:
        """The comma or ``closing`` that comes next, and was taken."""
        char = self.next()
        if not char or char not in ("," + closing):
            self._wrong("Expecting ',' delimiter")
        self._at += 1
        return char

    def _may_go_on(self, message: str, place: int) -> None:
        """Whether a value may be wrong only because this text ends."""
        ends = place >= len(self._text) - _LONGEST_WORD or message.startswith("Unterminated string")
        if self._ended or not ends:
            self._wrong(message, place)

    def _wrong(self, message: str, place: int | None = None) -> NoReturn:
        before = self._text[: self._at if place is None else place]
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
            start, end = (self._bytes - len(error.object) + each for each in (error.start, error.end))
            byte = error.object[error.start]
            where = (
                f"byte 0x{byte:02x} in position {start}" if end - start == 1 else f"bytes in position {start}-{end - 1}"
            )
            raise ValueError(f"'{error.encoding}' codec can't decode {where}: {error.reason}") from error
