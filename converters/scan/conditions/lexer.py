"""Takes the text of a condition apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...base.errors import StallscopeError
from ...base.text import printable, shortened

LONGEST_TEXT = 1_000
"""Characters of a condition."""
WORD, NUMBER, TEXT, SIGN, END = "word", "number", "text", "sign", "end"
_TOKEN = re.compile(
    r"(?P<word>[A-Za-z_][A-Za-z_-]*)"
    r"|(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?(?: ?(?:%|(?:ns|us|µs|ms|s|min)\b))?)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign>[<>=!]=|[<>()])"
)
_SPACE = re.compile(r"[ \t\n]*")
_SHOWN = 40
"""Characters of a wrong text that are shown."""


class Token(NamedTuple):
    """Smallest part of a condition."""

    kind: str
    text: str
    """Text as it was written; of a quoted one that between the quotes."""
    at: int
    """Place of its first character, from 1."""


def tokens(text: str) -> list[Token]:
    """The parts of ``text``, with one of the kind `END` after them. StallscopeError for what is none."""
    if len(text) > LONGEST_TEXT:
        raise StallscopeError(
            f"--when: the condition has {len(text):,} characters",
            f"write it in {LONGEST_TEXT:,} at most",
            exit_code=2,
        )
    found: list[Token] = []
    place = _SPACE.match(text).end()  # type: ignore[union-attr]  # it matches nothing, too
    while place < len(text):
        match = _TOKEN.match(text, place)
        if not match:
            is_open = text[place] in "'\""
            raise wrong(
                Token(SIGN, text[place], place + 1),
                "a quote that is not closed" if is_open else "a sign that has no meaning",
                "close it" if is_open else "use words, numbers with units, > >= < <= == != and parentheses",
            )
        kind, token = match.lastgroup or "", match[0]
        found.append(Token(kind, token[1:-1] if kind == TEXT else token, place + 1))
        place = _SPACE.match(text, match.end()).end()  # type: ignore[union-attr]  # likewise
    found.append(Token(END, "", len(text) + 1))
    return found


def wrong(token: Token, what: str, remedy: str) -> StallscopeError:
    """The error for a token: its place, and what is wrong with it."""
    return StallscopeError(f"--when: at character {token.at}, {_shown(token)} is {what}", remedy, exit_code=2)


def expected(token: Token, what: str) -> StallscopeError:
    """The error for a token in whose place something else has to be."""
    cause = f"--when: at character {token.at}, {what} is expected, not {_shown(token)}"
    return StallscopeError(cause, "docs/scan.md describes the language, with examples", exit_code=2)


def _shown(token: Token) -> str:
    return repr(shortened(printable(token.text), _SHOWN)) if token.kind != END else "the end"


def one_of(words: Sequence[str]) -> str:
    """``a, b or c``"""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
