from __future__ import annotations

import pytest
from stallscope.tracers.expressions import nodes
from stallscope.tracers.expressions.check import BUILT_IN, Checker, Unknown
from stallscope.tracers.expressions.lexer import QuestionError
from stallscope.tracers.expressions.nodes import Node
from stallscope.tracers.expressions.parser import parse
from stallscope.tracers.expressions.types import TEXT, Array, Integer, Members, Pointer, Struct, Type, Unreadable, Words


class Known(Members):
    def __init__(self, members: dict[str, tuple[int, Type]]) -> None:
        self._members = members

    def find(self, name: str) -> tuple[int, Type] | None:
        return self._members.get(name)

    def names(self) -> list[str]:
        return list(self._members)


INNER = Struct("inner", 8, Known({"depth": (4, Integer(32, True))}))
REQUEST = Struct(
    "request",
    64,
    Known(
        {
            "size": (0, Integer(64, True)),
            "name": (8, Array(Integer(8, True), 16)),
            "path": (24, TEXT),
            "in": (32, INNER),
            "next": (40, Pointer(INNER)),
            "weight": (48, Unreadable("a floating-point number")),
        }
    ),
)
PARAMETERS: dict[str, Node] = {
    **BUILT_IN,
    "request": nodes.Input(Pointer(REQUEST), "arg1"),
    "ratio": nodes.Input(Unreadable("a floating-point number"), "arg2"),
}


def value(text: str) -> Node:
    return Checker(PARAMETERS.get, lambda: list(PARAMETERS)).value(parse(text))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("arg1", "u64"),
        ("retval", "i64"),
        ("arg1 + 1", "u64"),
        ("retval + 1", "i64"),
        ("u8(arg1) - 1", "u64"),
        ("i8(arg1)", "i8"),
        ("-1", "i64"),
        ("arg1 > 1", "i32"),
        ("str(arg1)", "str"),
        ("comm", "str"),
        ("*u16*(arg1)", "u16"),
        ("u32*(arg1)[2]", "u32"),
        ("u32**(arg1)[2]", "u32*"),
        ("request->size", "i64"),
        ("request.size", "i64"),
        ("request->name", "str"),
        ("request->name[1]", "i8"),
        ("request->in.depth", "i32"),
        ("request->next->depth", "i32"),
        ("*request->path", "i8"),
    ],
)
def test_types(text: str, title: str) -> None:
    found = value(text)
    assert found.type.title == title


def test_members_are_at_their_offsets() -> None:
    found = value("request->in.depth")
    assert isinstance(found, nodes.Load)
    offsets = [each.value for each in nodes.walk(found) if isinstance(each, nodes.Constant)]
    assert sum(offsets) == 36


def test_a_string_is_read_no_further_than_its_array() -> None:
    found = value('request->name == "abc"')
    assert isinstance(found, nodes.Matches)
    assert found.text.type == Words(16)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("other", "other"),
        ("request->sizes", "sizes"),
        ("*request", "*request"),
        ("request->weight", "request->weight"),
        ("ratio", "ratio"),
        ("request + 1", "request"),
        ("-request", "-request"),
        ("arg1->size", "arg1"),
        ("arg1[0]", "arg1"),
        ("ptr(arg1)[0]", "ptr(arg1)"),
        ("*ptr(arg1)", "ptr(arg1)"),
        ("arg1[request]", "request"),
        ("u32*(arg1)[request]", "request"),
        ('"a"', '"a"'),
        ('arg1 == "a"', "arg1"),
        ('"a" == arg1', "arg1"),
        ('"a" == "b"', '"a" == "b"'),
        ('comm < "a"', 'comm < "a"'),
        ("comm + 1", "comm"),
        ("comm && 1", "comm"),
        ("u64(comm)", "comm"),
        ("1 < 2", "1 < 2"),
        ("arg1 / 0", "0"),
        ("arg1 % 0", "0"),
        ("arg1 << 64", "64"),
        ("arg1 >> -1", "-1"),
        ("-9223372036854775809", "-9223372036854775809"),
        ('comm == "' + "x" * 65 + '"', '"' + "x" * 65 + '"'),
        (r'comm == "a\0b"', r'"a\0b"'),
    ],
)
def test_faults(text: str, fault: str) -> None:
    with pytest.raises(QuestionError) as caught:
        value(text)
    assert text[caught.value.begin : caught.value.end] == fault


def test_an_unknown_name_is_told_apart() -> None:
    with pytest.raises(Unknown, match="did you mean retval"):
        value("retvl > 1")
    with pytest.raises(QuestionError, match="did you mean size"):
        value("request->siz")


def test_a_number_is_no_string() -> None:
    checker = Checker(PARAMETERS.get, lambda: list(PARAMETERS))
    assert checker.number(parse("request->size"), "a sum")
    with pytest.raises(QuestionError, match="a sum needs a number"):
        checker.number(parse("comm"), "a sum")
