"""Parser from the text of an expression to its tree. The grammar is C's, without assignments, calls and `?:`."""

from __future__ import annotations

from dataclasses import replace

from .lexer import Kind, QuestionError, Word, words
from .syntax import Binary, Cast, Expression, Index, Member, Name, Number, Text, Unary
from .types import NO_FLOATS, TYPES

_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators, those that bind least first."""
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_DEPTH = 40
_MOST = 300
"""Parts of an expression."""
_STARS = 3
"""Number of stars of a pointer's type, at most."""


def parse(text: str) -> Expression:
    """A whole expression. QuestionError."""
    parser = Parser(text)
    found = parser.expression()
    parser.end()
    return found


class Parser:
    """Takes expressions from a text, from its beginning on."""

    def __init__(self, text: str) -> None:
        """QuestionError for words that there are not."""
        self._words = words(text)
        self._at = 0
        self._depth = 0
        self._parts = 0

    @property
    def next(self) -> Word:
        """The first word that was not taken."""
        return self._words[self._at]

    def take(self) -> Word:
        """The next word; the end is never taken."""
        word = self.next
        if word.kind is not Kind.END:
            self._at += 1
        return word

    def accept(self, sign: str) -> bool:
        """Takes the next word if it is this sign."""
        if self.next.kind is Kind.SIGN and self.next.value == sign:
            self._at += 1
            return True
        return False

    def expect(self, sign: str, what: str) -> Word:
        """Takes this sign. QuestionError if another word comes."""
        word = self.next
        if not self.accept(sign):
            raise QuestionError(f"{what} is expected here", word.begin, word.end)
        return word

    def end(self) -> None:
        """QuestionError if words are left."""
        if self.next.kind is not Kind.END:
            what = "'==' compares" if self.next.value == "=" else "the expression has ended before this"
            raise QuestionError(what, self.next.begin, self.next.end)

    def name(self) -> Word:
        """Takes a name. QuestionError if another word comes."""
        if self.next.kind is not Kind.NAME:
            raise QuestionError("a name is expected here", self.next.begin, self.next.end)
        return self.take()

    def type(self) -> tuple[Word, str, int]:
        """Takes a type: its word, its name, and the number of stars. QuestionError."""
        word = self.name()
        name = str(word.value)
        if name in NO_FLOATS:
            raise QuestionError(NO_FLOATS[name], word.begin, word.end)
        if name not in TYPES:
            raise QuestionError(f"this is no type: {', '.join(TYPES)}", word.begin, word.end)
        stars = 0
        while self.accept("*"):
            stars += 1
            if stars > _STARS:
                raise QuestionError(f"a type has at most {_STARS} stars", word.begin, self.next.begin)
        return word, name, stars

    def expression(self, level: int = 0) -> Expression:
        """The longest expression that comes, of this level of operators or of one that binds more. QuestionError."""
        if level == len(_LEVELS):
            return self._unary()
        left = self.expression(level + 1)
        while self.next.kind is Kind.SIGN and self.next.value in _LEVELS[level]:
            sign = self.take()
            compared = isinstance(left, Binary) and left.sign in _COMPARISONS
            if compared and sign.value in _COMPARISONS and self._words[self._at - 2].value != ")":
                raise QuestionError("this compares a result: put && between two comparisons", sign.begin, sign.end)
            right = self.expression(level + 1)
            left = self._counted(Binary(left.begin, right.end, str(sign.value), left, right))
        return left

    def _counted(self, made: Expression) -> Expression:
        self._parts += 1
        if self._parts > _MOST:
            raise QuestionError(f"it has more than {_MOST} parts", made.begin, made.end)
        return made

    def _unary(self) -> Expression:
        word = self.next
        self._depth += 1
        if self._depth > _DEPTH:
            raise QuestionError("it is nested too deeply", word.begin, word.end)
        try:
            if word.kind is Kind.SIGN and word.value in ("-", "!", "~", "*"):
                self.take()
                operand = self._unary()
                return self._counted(Unary(word.begin, operand.end, str(word.value), operand))
            return self._postfix(self._primary())
        finally:
            self._depth -= 1

    def _postfix(self, found: Expression) -> Expression:
        while True:
            if self.accept("->") or self.accept("."):
                name = self.name()
                found = self._counted(Member(found.begin, name.end, found, str(name.value)))
            elif self.accept("["):
                index = self.expression()
                end = self.expect("]", "']'")
                found = self._counted(Index(found.begin, end.end, found, index))
            else:
                return found

    def _primary(self) -> Expression:
        word = self.next
        if word.kind is Kind.NAME:
            if word.value in TYPES or word.value in NO_FLOATS:
                return self._cast()
            self.take()
            if self.next.kind is Kind.SIGN and self.next.value == "(":
                raise QuestionError("functions are not called in an expression", word.begin, word.end)
            return self._counted(Name(word.begin, word.end, str(word.value)))
        if word.kind is Kind.NUMBER:
            self.take()
            return self._counted(Number(word.begin, word.end, int(word.value)))
        if word.kind is Kind.TEXT:
            self.take()
            assert isinstance(word.value, bytes)
            return self._counted(Text(word.begin, word.end, word.value))
        if self.accept("("):
            found = self.expression()
            end = self.expect(")", "')'")
            return replace(found, begin=word.begin, end=end.end)
        what = "a value is expected here: the expression ends" if word.kind is Kind.END else "a value is expected here"
        raise QuestionError(what, word.begin, word.end)

    def _cast(self) -> Expression:
        word, name, stars = self.type()
        self.expect("(", f"'(': {name} converts what is in parentheses")
        operand = self.expression()
        end = self.expect(")", "')'")
        return self._counted(Cast(word.begin, end.end, name, stars, operand))
