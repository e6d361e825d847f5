"""Reads a condition.

condition  := all ("or" all)*
all        := single ("and" single)*
single     := "not" single | "(" condition ")" | comparison
comparison := quantity [ "(" threads ")" ] operator number
            | "verdict" ("==" | "!=") kind
            | "name" ("==" | "!=") quoted pattern
threads    := "main" | "workers" | "process" | quoted pattern
operator   := ">" | ">=" | "<" | "<=" | "==" | "!="
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Literal, cast

from ...base.errors import StallscopeError
from ...rules.verdict import KINDS
from . import words
from .expression import Comparison, Condition, Joined, Not, Operator, Quantity, TextComparison, Value
from .lexer import END, NUMBER, SIGN, TEXT, WORD, Token, expected, one_of, tokens, wrong
from .words import Measure

DEEPEST = 50
"""Parentheses and negations in each other."""
_OPERATORS = (">", ">=", "<", "<=", "==", "!=")
_PLAIN = tuple(word for word, measure in words.QUANTITIES.items() if measure is Measure.NUMBER)
_JOINING = ("and", "or", "not")
_NUMBER = re.compile(r"([0-9.]+) ?(.*)")


def parse(text: str) -> Condition:
    """The condition that ``text`` is. StallscopeError that says where something else is expected, and what."""
    return _Parser(tokens(text)).whole()


class _Parser:
    def __init__(self, parts: list[Token]) -> None:
        self._parts = parts
        self._next = 0

    def whole(self) -> Condition:
        found = self._joined("or", 0)
        if self._seen.kind != END:
            raise self._unexpected("'and', 'or' or the end")
        return found

    @property
    def _seen(self) -> Token:
        return self._parts[self._next]

    def _take(self) -> Token:
        token = self._seen
        self._next += token.kind != END
        return token

    def _unexpected(self, what: str) -> StallscopeError:
        return expected(self._seen, what)

    def _took(self, *texts: str) -> str:
        """The text of the next token if it is one of these words or signs, which is then taken; else ""."""
        if self._seen.kind in (WORD, SIGN) and self._seen.text in texts:
            return self._take().text
        return ""

    def _joined(self, how: Literal["and", "or"], depth: int) -> Condition:
        parts = [self._one(how, depth)]
        while self._took(how):
            parts.append(self._one(how, depth))
        return parts[0] if len(parts) == 1 else Joined(how, tuple(parts))

    def _one(self, how: Literal["and", "or"], depth: int) -> Condition:
        return self._joined("and", depth) if how == "or" else self._single(depth)

    def _single(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise wrong(self._seen, f"in more than {DEEPEST} parentheses or negations", "write it flatter")
        if self._took("not"):
            return Not(self._single(depth + 1))
        if self._took("("):
            found = self._joined("or", depth + 1)
            if not self._took(")"):
                raise self._unexpected("'and', 'or' or ')'")
            return found
        return self._comparison()

    def _comparison(self) -> Condition:
        token = self._seen
        if token.kind != WORD or token.text in _JOINING:
            raise self._unexpected("a quantity such as blocked(main), or 'verdict', 'name', 'not' or '('")
        if token.text == words.VERDICT:
            return self._verdict()
        if token.text == words.NAME:
            return self._name()
        if token.text not in words.QUANTITIES:
            known = (*words.QUANTITIES, words.VERDICT, words.NAME)
            raise wrong(token, f"no quantity{_meant(token.text, known)}", f"there are {one_of(known)}")
        return self._number(self._quantity())

    def _verdict(self) -> TextComparison:
        self._take()
        is_equal = self._equality()
        token = self._seen
        if token.kind not in (WORD, TEXT) or token.text not in KINDS:
            what = f"no kind of verdict{_meant(token.text, KINDS)}"
            raise wrong(token, what, f"there are {one_of(tuple(KINDS))}")
        return TextComparison("verdict", is_equal, self._take().text)

    def _name(self) -> TextComparison:
        self._take()
        is_equal = self._equality()
        if self._seen.kind != TEXT:
            raise self._unexpected("a quoted name such as 'train*'")
        return TextComparison("name", is_equal, self._take().text)

    def _equality(self) -> bool:
        sign = self._took("==", "!=")
        if not sign:
            raise self._unexpected("'==' or '!='")
        return sign == "=="

    def _quantity(self) -> Quantity:
        token = self._take()
        if token.text in words.WHOLE or not self._took("("):
            return Quantity(token.text)
        whose = self._seen
        is_known = whose.kind == WORD and whose.text in (words.MAIN, words.WORKERS, words.PROCESS)
        if whose.kind != TEXT and not is_known:
            raise self._unexpected("main, workers, process or a quoted name of threads such as 'io-*'")
        self._take()
        if not self._took(")"):
            raise self._unexpected("')'")
        return Quantity(token.text, whose.text, is_pattern=whose.kind == TEXT)

    def _number(self, quantity: Quantity) -> Comparison:
        sign = self._took(*_OPERATORS)
        if not sign:
            raise self._unexpected(f"one of {' '.join(_OPERATORS)}")
        measure = words.QUANTITIES[quantity.word]
        if self._seen.kind != NUMBER:
            raise self._unexpected(measure.value)
        return Comparison(quantity, cast(Operator, sign), self._value(quantity.word, measure))

    def _value(self, word: str, measure: Measure) -> Value:
        token = self._take()
        number, unit = cast("re.Match[str]", _NUMBER.fullmatch(token.text)).groups()
        if unit == "%" and measure in (Measure.TIME, Measure.SHARE):
            return Value(float(number) / 100, "%")
        if unit in words.UNITS and measure in (Measure.TIME, Measure.LENGTH):
            return Value(float(number) * words.UNITS[unit], "ns")
        if not unit and measure is Measure.NUMBER:
            return Value(float(number), "")
        remedy = f"units are {one_of(('%', *words.UNITS))}; a number without one is for {one_of(_PLAIN)}"
        raise wrong(token, f"not what {word} is compared with: {measure.value}", remedy)


def _meant(word: str, known: Collection[str]) -> str:
    """``, but 'blocked' is``, if a known word is nearly the same."""
    near = difflib.get_close_matches(word, known, 1)
    return f", but {near[0]!r} is" if near else ""
