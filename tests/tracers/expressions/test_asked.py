from __future__ import annotations

import random

import pytest
from stallscope.tracers.expressions.asked import Ask, Asked, Fault, formatted, number
from stallscope.tracers.expressions.types import Integer, Words


def test_all_questions() -> None:
    asked = Asked.parse(["n:u32=arg2", "m:i64=n * 2"], ["n > 1", "m < 9"], ["m"], ["retval"], ['"%s", comm', "n, comm"])
    bound = asked.bind()
    assert bound.where is not None
    assert [values.question.ask for values in bound.values] == [Ask.HIST, Ask.SUM, Ask.PRINT, Ask.PRINT]
    assert bound.values[0].nodes[0].type == Integer(64, True)
    assert bound.values[3].question.parts == ("n", "comm")
    assert asked
    assert not Asked.parse(["n:u32=arg2"])


@pytest.mark.parametrize(
    ("options", "option", "fault"),
    [
        ({"declared": ["n=arg1"]}, "--arg", "="),
        ({"declared": ["n:u32"]}, "--arg", ""),
        ({"declared": ["n:foo=arg1"]}, "--arg", "foo"),
        ({"declared": ["n:double=arg1"]}, "--arg", "double"),
        ({"declared": ["pid:u32=arg1"]}, "--arg", "pid"),
        ({"declared": ["u32:u32=arg1"]}, "--arg", "u32"),
        ({"declared": ["n:u32=arg1", "n:u32=arg2"]}, "--arg", "n"),
        ({"declared": ["n:u32=arg7"]}, "--arg", "arg7"),
        ({"declared": ["n:u32=comm"]}, "--arg", "comm"),
        ({"declared": ["x" * 40 + ":u32=arg1"]}, "--arg", "x" * 40),
        ({"where": ["comm"]}, "--where", "comm"),
        ({"hists": ["comm"]}, "--hist", "comm"),
        ({"sums": ["comm"]}, "--sum", "comm"),
        ({"prints": ['"%s", arg1']}, "--print", "arg1"),
        ({"prints": ['"%d", comm']}, "--print", "comm"),
        ({"prints": ['"%x", comm']}, "--print", "comm"),
        ({"prints": ['"%d"']}, "--print", '"%d"'),
        ({"prints": ['"%d", 1, 2']}, "--print", '"%d"'),
        ({"prints": ['"%f", arg1']}, "--print", '"%f"'),
        ({"prints": ['"%", arg1']}, "--print", '"%"'),
        ({"prints": ['"%n", arg1']}, "--print", '"%n"'),
        ({"prints": ['"a" arg1']}, "--print", "arg1"),
        ({"prints": [", ".join(["arg1"] * 9)]}, "--print", "arg1"),
    ],
)
def test_faults(options: dict[str, list[str]], option: str, fault: str) -> None:
    with pytest.raises(Fault) as caught:
        Asked.parse(**options).bind()
    error = caught.value.error
    assert caught.value.option == option
    assert caught.value.text[error.begin : error.end] == fault


def test_too_many() -> None:
    with pytest.raises(Fault):
        Asked.parse(prints=["arg1"] * 17)
    with pytest.raises(Fault):
        Asked.parse(where=["arg1"] * 17)


@pytest.mark.parametrize(
    ("text", "values", "line"),
    [
        ('"%s %d", str(arg1), arg2', (b"ab", 3), "ab 3"),
        ('"%5d|%05d|%3s"', (7, 7, b"x"), None),
        ('"%x %p %u %c%%", arg1, arg2, retval, arg3', (255, 255, -1, 65), "ff 0xff 18446744073709551615 A%"),
        ('"%5d|%03d|%3s|", arg1, arg2, comm', (7, 7, b"x"), "    7|007|  x|"),
        (
            "arg1, str(arg2), ptr(arg3), comm",
            (1, None, 16, b"t\xff"),
            'arg1=1 str(arg2)=(not readable) ptr(arg3)=0x10 comm="t\udcff"',
        ),
        ('"only text"', (), "only text"),
    ],
)
def test_lines(text: str, values: tuple[int | bytes | None, ...], line: str | None) -> None:
    if line is None:
        with pytest.raises(Fault):
            Asked.parse(prints=[text])
        return
    asked = Asked.parse(prints=[text])
    (found,) = asked.bind().values
    assert formatted(found.question, found.nodes, values) == line


def test_a_string_is_read_for_s_only() -> None:
    (found,) = Asked.parse(prints=['"%s %p", str(arg1), str(arg1)']).bind().values
    assert isinstance(found.nodes[0].type, Words)
    assert not isinstance(found.nodes[1].type, Words)


def test_numbers_have_signs() -> None:
    (unsigned, signed) = Asked.parse(sums=["arg1", "retval"]).bind().values
    assert number(unsigned.nodes[0], (1 << 64) - 1) == (1 << 64) - 1
    assert number(signed.nodes[0], (1 << 64) - 1) == -1


def test_hostile_options() -> None:
    rng = random.Random(4)
    chars = 'n:u32=arg1 "%s%d\\,<>&|()*-\x1b\udcff'
    for _ in range(4000):
        text = "".join(rng.choices(chars, k=rng.randrange(20)))
        for option in ("declared", "where", "hists", "prints"):
            try:
                Asked.parse(**{option: [text]}).bind()
            except Fault as fault:
                assert 0 <= fault.error.begin < fault.error.end <= len(text) + 1
