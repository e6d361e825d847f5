from __future__ import annotations

import io

import pytest
from stallscope.converters.model import Frame, Sample
from stallscope.converters.readers.base import stack_tally
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.base.stack_tally import NotAFrame, StackTally, pieces


def parse(line: bytes) -> tuple[Frame, ...] | None:
    if line.startswith(b"!"):
        return None
    return tuple(Frame(name) for name in line.decode().split("->") if name)


def test_equal_stacks_are_one() -> None:
    tally = StackTally(parse)
    for lines, weight in (([b"leaf", b"main"], 2), ([b"leaf", b"", b"main"], 3), ([b"main"], 1)):
        tally.weights[tally.stack(lines)] += weight
    tally.weights[tally.stack([b"main"]) + tally.labels((("process", "a"),))] += 7
    main, leaf = Frame("main"), Frame("leaf")
    assert tally.samples() == [
        Sample((main, leaf), (5,)),
        Sample((main,), (1,)),
        Sample((main,), (7,), (("process", "a"),)),
    ]


def test_inlined_frames_and_empty_stacks() -> None:
    tally = StackTally(parse)
    tally.weights[tally.stack([b"b->c", b"a"])] += 1
    assert tally.samples()[0].stack == (Frame("a"), Frame("b"), Frame("c"))
    assert tally.stack([b"", b""]) == 0


def test_what_is_no_stack_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = StackTally(parse)
    with pytest.raises(NotAFrame):
        tally.stack([b"a", b"!"])
    monkeypatch.setattr(stack_tally, "_MAX_FRAMES", 3)
    with pytest.raises(NotAFrame):
        tally.stack([b"a"] * 4)
    assert tally.stack([b"a", b"", b"", b"b"]) > 0


def test_memory_of_the_caches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_tally, "_MAX_CACHED", 1000)
    monkeypatch.setattr(stack_tally, "_MAX_LINES", 5)
    tally = StackTally(parse)
    for i in range(100):
        text = b"x%d\nmain" % i
        tally.remember(text, tally.stack(text.split(b"\n")))
    tally.stack([b"y" * 2000])
    assert len(tally._texts) <= 5 and len(tally.lines) <= 5
    assert b"y" * 2000 not in tally.lines
    assert tally.known(text) == (tally.stack([b"x99", b"main"]), 1)
    assert tally.known(b"x0\nmain") is None


@pytest.mark.parametrize("text", [b"", b"a", b"a\n-b\n-c", b"\n-", b"a\n-\n-b\nc"])
def test_pieces_are_those_of_split(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 2, 5):
        source = Source(io.BytesIO(text), "x")
        data = io.BytesIO(source.read(100))
        monkeypatch.setattr(source, "read", lambda _, data=data, size=size: data.read(size))
        assert list(pieces(source, b"\n-")) == text.split(b"\n-")


def test_a_piece_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_tally, "_MAX_PIECE", 1000)
    text = b"frame\n" * (24 << 18)
    parts = list(pieces(Source(io.BytesIO(text), "x"), b"\n-"))
    assert b"".join(parts) == text
    assert len(parts) > 1 and all(part.endswith(b"\n") for part in parts if part)
