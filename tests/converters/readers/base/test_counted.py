from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Labels, Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.counted import CountedStacks
from stallscope.converters.readers.base.source import Source

EXPECTED = "a frame"


def parse(line: bytes) -> tuple[Frame, ...] | None:
    word = line.strip().decode()
    return None if word.startswith("!") else (Frame(word),) if word else ()


def keys(lines: list[bytes]) -> tuple[int, Labels]:
    if lines and lines[0].startswith(b"@"):
        return 1, (("process", lines[0][1:].decode()),)
    return (1, ()) if lines and lines[0].strip().isdigit() else (0, ())


def profile(stacks: CountedStacks) -> Profile:
    return stacks.profile(Source(io.BytesIO(b""), "x"), "t")


def folded(stacks: CountedStacks) -> list[str]:
    return [
        ";".join([*(f"{key}={value}" for key, value in each.labels), *(frame.name for frame in each.stack)])
        + f" {each.values[0]}"
        for each in profile(stacks).samples
    ]


def test_blocks_and_lines_give_the_same() -> None:
    blocks, lines = CountedStacks("x", EXPECTED, parse), CountedStacks("x", EXPECTED, parse)
    for text, count in ((b" leaf\n main", b"3"), (b" main", b"1"), (b" leaf\n main", b"4")):
        assert blocks.add(text, count)
        for part in (text, count):
            lines.add_lines(part)
    assert folded(blocks) == folded(lines) == ["main;leaf 7", "main 1"]


def test_what_add_refuses_has_not_happened() -> None:
    stacks = CountedStacks("x", EXPECTED, parse)
    assert not stacks.add(b" a\n!bad", b"3")
    assert not stacks.add(b" a", b"3x")
    assert not stacks.add(b" a", b"9" * 19)
    assert not stacks.add(b"\n", b"3")
    assert not stacks.add(b" a", "²".encode())
    assert stacks.add(b" a", b"5")
    stacks.add_lines(b" open")
    assert not stacks.add(b" a", b"3")
    stacks.drop("dropped")
    assert stacks.add(b" a", b"3")
    assert folded(stacks) == ["a 8"]
    assert stacks.skipped.counts == {"dropped": 1}


def test_bad_lines_have_a_place() -> None:
    stacks = CountedStacks("x", EXPECTED, parse)
    assert stacks.add(b" a\n b", b"1")
    assert stacks.add(b" a\n b", b"1", 2)
    stacks.add_lines(b" a\n!bad\n!bad\n9\n7\n last")
    found = profile(stacks)
    assert found.total("samples") == 11
    assert found.lost == {
        "lines not understood": 2,
        "counts without a stack": 1,
        "stacks without a count at the end": 1,
    }
    assert worded(found.comments) == ["x, line 9: expected a frame"]


def test_keys_above_a_stack() -> None:
    stacks = CountedStacks("x", EXPECTED, parse, keys)
    assert stacks.add(b"@p\n a", b"1")
    stacks.add_lines(b"@q\n a\n 2\n 77\n a\n 3\n@r\n\n4")
    assert folded(stacks) == ["process=p;a 1", "process=q;a 2", "a 3"]
    assert stacks.skipped.counts == {"counts without a stack": 1}


def test_a_stack_without_end_does_not_fill_the_memory() -> None:
    stacks = CountedStacks("x", EXPECTED, parse)
    stacks.add_lines(b" a\n" * 30_000 + b"1\n b\n1")
    assert len(stacks._open) == 0
    source = Source(io.BytesIO(b"a\n" * 50_000), "x")
    assert list(source.chunks())
    found = stacks.profile(source, "t")
    assert found.lost == {"lines not understood": 20_000}
    assert [len(each.stack) for each in found.samples] == [10_000, 1]


def test_nothing_but_bad_lines() -> None:
    stacks = CountedStacks("x", EXPECTED, parse)
    stacks.add_lines(b"\n!a\n!b")
    with pytest.raises(StallscopeError, match="line 2: expected a frame"):
        profile(stacks)
