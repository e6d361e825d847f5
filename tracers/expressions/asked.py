"""Questions of the user about calls and events: --arg, --where, --hist, --sum, --count-by and --print, before the
function is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from .check import BUILT_IN, Checker, as_text, converted
from .lexer import Kind, QuestionError
from .nodes import OF_RETURNS, RETVAL, Node
from .parser import Parser, parse
from .syntax import Expression, names
from .types import NO_FLOATS, TYPES, Integer, Pointer, Unreadable, Words, of_name

MOST = 16
"""Questions of one trace, and names that it declares."""
VALUES = 8
"""Number of values of one --print."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}", re.ASCII)
_FORMATS = re.compile(r"%(%|[0-9]{0,2}[a-zA-Z]|.?)")
_LETTERS = "duxcsp"


class Ask(Enum):
    """Ways to use the values."""

    HIST = "--hist"
    SUM = "--sum"
    COUNT = "--count-by"
    PRINT = "--print"


class Fault(ValueError):
    """An option is wrong: the option, its whole text, and the place of the fault in that."""

    def __init__(self, option: str, text: str, error: QuestionError) -> None:
        super().__init__(error.what)
        self.option, self.text, self.error = option, text, error


@dataclass(frozen=True)
class Declared:
    """``--arg name:type=expression``; ``type`` and its stars, ``at``: where the expression begins in the text."""

    text: str
    name: str
    type: str
    stars: int
    tree: Expression


@dataclass(frozen=True)
class Question:
    """``format``: of --print; "" if there is none. ``parts``: the expressions as they were written."""

    ask: Ask
    text: str
    trees: tuple[Expression, ...]
    format: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The expressions, as the user wrote them."""
        return tuple(self.text[tree.begin : tree.end] for tree in self.trees)


@dataclass(frozen=True)
class Values:
    """The values of a question, and how each is printed."""

    question: Question
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Bound:
    """Questions to a function whose arguments are known."""

    where: Node | None
    values: tuple[Values, ...]
    over: int = 0


@dataclass(frozen=True)
class Asked:
    """All that is asked. `bind` says what it means for a function."""

    declared: tuple[Declared, ...] = ()
    where: tuple[tuple[str, Expression], ...] = ()
    """Several: all of them have to be true."""
    questions: tuple[Question, ...] = ()
    over: int = 0
    """ns; if it is not 0, questions are about calls that take longer alone."""

    def __bool__(self) -> bool:
        return bool(self.where or self.questions)

    @property
    def judges_returns(self) -> bool:
        """Whether --where needs what is known at the return."""
        late = set(OF_RETURNS)
        for each in self.declared:
            if late & names(each.tree):
                late.add(each.name)
        return any(late & names(tree) for _, tree in self.where)

    @classmethod
    def parse(  # noqa: PLR0913
        cls,
        declared: Iterable[str] = (),
        where: Iterable[str] = (),
        hists: Iterable[str] = (),
        sums: Iterable[str] = (),
        prints: Iterable[str] = (),
        *,
        counts: Iterable[str] = (),
    ) -> Asked:
        """Fault."""
        named: list[Declared] = []
        for text in declared:
            named.append(_declared(text, [each.name for each in named]))
        questions = [Question(Ask.HIST, text, (_parse("--hist", text),)) for text in hists]
        questions += [Question(Ask.SUM, text, (_parse("--sum", text),)) for text in sums]
        questions += [Question(Ask.COUNT, text, (_parse("--count-by", text),)) for text in counts]
        questions += [_print(text) for text in prints]
        found = cls(tuple(named), tuple((text, _parse("--where", text)) for text in where), tuple(questions))
        for option, number in (("--arg", len(named)), ("--where", len(found.where)), ("--print", len(questions))):
            if number > MOST:
                raise Fault(option, "", QuestionError(f"at most {MOST} of them", 0, 1))
        return found

    def bind(self, parameters: Mapping[str, Node] | None = None, always: Mapping[str, Node] = BUILT_IN) -> Bound:
        """Binds the questions to a function whose ``parameters`` have these names; ``always``, what every function has,
        comes first. Fault; with `Unknown` in it for a name that another function may have."""
        given = dict(parameters or {})
        known: dict[str, Node] = {**given, **always, **({RETVAL: given[RETVAL]} if RETVAL in given else {})}
        checker = Checker(known.get, lambda: [name for name, node in known.items() if _is_told(name, node)])
        for each in self.declared:
            with _Faults("--arg", each.text):
                operand = checker.number(each.tree, "an argument")
                known[each.name] = converted(operand, of_name(each.type, each.stars))
        where = None
        for text, tree in self.where:
            with _Faults("--where", text):
                where = _both(where, checker.number(tree, "a condition"))
        return Bound(where, tuple(_values(question, checker) for question in self.questions), self.over)


def _is_told(name: str, node: Node) -> bool:
    """Whether a name is worth telling: `args.NAME` has a shorter one."""
    return "." not in name and not isinstance(node.type, Unreadable)


def _both(left: Node | None, right: Node) -> Node:
    from .nodes import Both
    from .types import I32

    return Both(I32, "&&", left, right) if left else right


class _Faults:
    """Makes a Fault of a QuestionError."""

    def __init__(self, option: str, text: str) -> None:
        self._option, self._text = option, text

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, QuestionError):
            raise Fault(self._option, self._text, error) from None


def _parse(option: str, text: str) -> Expression:
    with _Faults(option, text):
        return parse(text)
    raise AssertionError


def _declared(text: str, before: Sequence[str]) -> Declared:
    with _Faults("--arg", text):
        parser = Parser(text)
        name = parser.name()
        if not _NAME.fullmatch(str(name.value)):
            raise QuestionError("a name has at most 31 characters", name.begin, name.end)
        if name.value in BUILT_IN or name.value in TYPES or name.value in NO_FLOATS:
            raise QuestionError(f"{name.value!r} means something else: choose another name", name.begin, name.end)
        if name.value in before:
            raise QuestionError(f"{name.value!r} is declared twice", name.begin, name.end)
        parser.expect(":", "':' and a type, as in n:u64=arg2")
        _, kind, stars = parser.type()
        parser.expect("=", "'=', as in n:u64=arg2")
        tree = parser.expression()
        parser.end()
        return Declared(text, str(name.value), kind, stars, tree)
    raise AssertionError


def _print(text: str) -> Question:
    with _Faults("--print", text):
        parser = Parser(text)
        form, trees = "", []
        first = parser.next
        if first.kind is Kind.TEXT:
            parser.take()
            assert isinstance(first.value, bytes)
            form = first.value.decode("utf-8", "surrogateescape")
            if parser.next.kind is not Kind.END:
                parser.expect(",", "',' and a value")
                trees.append(parser.expression())
        else:
            trees.append(parser.expression())
        while trees and parser.accept(","):
            trees.append(parser.expression())
        parser.end()
        if len(trees) > VALUES:
            raise QuestionError(f"--print takes at most {VALUES} values", trees[VALUES].begin, trees[-1].end)
        if first.kind is Kind.TEXT:
            letters = _letters(form, first.begin, first.end)
            if len(letters) != len(trees):
                count = f"{len(letters)} values, and there are {len(trees)}"
                raise QuestionError(f"this format takes {count}", first.begin, first.end)
        return Question(Ask.PRINT, text, tuple(trees), form)
    raise AssertionError


def _letters(form: str, begin: int, end: int) -> list[str]:
    """The letters of the conversions. QuestionError."""
    letters = []
    for match in _FORMATS.finditer(form):
        if match[1] == "%":
            continue
        letter = match[1][-1:]
        if letter not in _LETTERS or not letter:
            known = ", ".join(f"%{each}" for each in _LETTERS)
            raise QuestionError(f"a format has {known} and %%", begin, end)
        letters.append(letter)
    return letters


def _values(question: Question, checker: Checker) -> Values:
    with _Faults(question.ask.value, question.text):
        if question.ask is Ask.COUNT:
            node = checker.value(question.trees[0])
            return Values(question, (as_text(node) or node,))
        if question.ask is not Ask.PRINT:
            what = "a histogram" if question.ask is Ask.HIST else "a sum"
            return Values(question, (checker.number(question.trees[0], what),))
        found = [checker.value(tree) for tree in question.trees]
        letters = _letters(question.format, 0, 1) if question.format else [""] * len(found)
        made = []
        for node, tree, letter in zip(found, question.trees, letters, strict=True):
            text = as_text(node)
            if letter == "s" and text is None:
                raise QuestionError("%s takes a string: say str(…) if one is at this address", tree.begin, tree.end)
            if letter not in ("", "s", "p", "x") and text is not None:
                raise QuestionError(f"%{letter} takes a number, and this is a string", tree.begin, tree.end)
            if letter in ("p", "x") and isinstance(node.type, Words):
                raise QuestionError(f"%{letter} takes a number, and this is a string", tree.begin, tree.end)
            made.append(text if text is not None and letter in ("", "s") else node)
        return Values(question, tuple(made))
    raise AssertionError


def formatted(question: Question, nodes: Sequence[Node], values: Sequence[int | bytes | None]) -> str:
    """The line of a --print. ``values``: a string that could not be read is None. Strings are not yet safe to print."""
    if not question.format:
        pairs = zip(question.parts, nodes, values, strict=True)
        return " ".join(f"{part}={plain(node, value)}" for part, node, value in pairs)
    left = list(zip(nodes, values, strict=True))

    def one(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        _, value = left.pop(0)
        width, letter = match[1][:-1], match[1][-1]
        if not isinstance(value, int):
            text = _text(value)
        elif letter == "c":
            text = chr(value & 0xFF)
        elif letter in "xp":
            text = f"{'0x' if letter == 'p' else ''}{value & (1 << 64) - 1:x}"
        else:
            text = str(value & (1 << 64) - 1 if letter == "u" else value)
        return text.rjust(int(width), "0" if width.startswith("0") and letter != "s" else " ") if width else text

    return _FORMATS.sub(one, question.format)


def plain(node: Node, value: int | bytes | None) -> str:
    """A value without a format: an address in hexadecimal. Strings are not yet safe to print."""
    if not isinstance(value, int):
        return f'"{_text(value)}"' if value is not None else _text(value)
    return f"{value:#x}" if isinstance(node.type, Pointer) else str(value)


def _text(value: bytes | None) -> str:
    return "(not readable)" if value is None else value.decode("utf-8", "surrogateescape")


def number(node: Node, bits: int) -> int:
    """The number that 64 bits of the kernel side stand for."""
    signed = isinstance(node.type, Integer) and node.type.signed
    return bits - (1 << 64) if signed and bits >> 63 else bits
