from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.perf import frames as perf_frames
from stallscope.converters.readers.perf.frames import BAD, EMPTY, JOINT, FrameLines, Frames, Mixed, join_places

A = Module("/bin/a")


def lines(*, joined: bool = False, java: bool = False, addrs: bool = False) -> tuple[Frames, FrameLines]:
    frames = Frames(ReadOptions(addrs=addrs))
    frames.joined = joined
    return frames, FrameLines(frames, java=java)


def test_equal_frames_have_one_number() -> None:
    frames, known = lines()
    number = known[b"\t 40 f+0x1 (/bin/a)"]
    assert known[b"\t 41 f+0x2 (/bin/a)"] == known[b"\t 41 f (/bin/a)"] == known[b"\t 41 f(int)+0x2 (/bin/a)"] == number
    assert frames.frames[number] == (Frame("f", "native", A),)
    assert known[b"\t 41 f+0x2 (/bin/b)"] != number
    assert frames.plain
    assert frames.frames[known[b"\t 41 f->g+0x2 (/bin/a)"]] == (Frame("f", "native", A), Frame("g_[i]", "native", A))
    assert not frames.plain


def test_addresses_are_told_apart_only_if_asked_for() -> None:
    one, other = b"\t 40 [unknown] (/bin/a)", b"\t 41 [unknown] (/bin/a)"
    _, known = lines()
    assert known[one] == known[other]
    _, known = lines(addrs=True)
    assert known[one] != known[other]


def test_what_is_no_frame() -> None:
    frames, known = lines()
    assert known[b""] == EMPTY and not frames.plain
    for line in (b"a 1/2 1.5: 1 cycles:", b"# comment", b"\t what?", b"  a.c:3 (inlined)", b" 0x1/0x2/P/-/-/0 "):
        with pytest.raises(Mixed):
            known[line]
    assert known.parse(b"f+0x1 (/bin/a)/g+0x2 (/bin/a)/P/-/-/0 ") == BAD


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_source_line_is_joined_to_the_line_above(end: bytes) -> None:
    joined = join_places(end.join([b"\t 40 f (/bin/a)", b"  a b.c:3", b"\t 41 g (/bin/a)", b"  [k][ff]"]))
    ended = end[:-1] + JOINT
    assert joined == end.join([b"\t 40 f (/bin/a)%ba b.c:3" % ended, b"\t 41 g (/bin/a)%b[k][ff]" % ended])
    for text in (
        b"  a.c:3\n\t 40 f",
        b"\t 40 f\n   a.c:3",
        b"\t 40 f\n  4011 main",
        b"\t 40 f\n\n  a.c:3",
        b"x\n  a.c:3",
    ):
        assert join_places(text) == text


@pytest.mark.parametrize(
    ("place", "file", "line"),
    [
        (b"a.c:3", "a.c", 3),
        (b"C:/a b.c:3", "C:/a b.c", 3),
        (b"??:0", "", 0),
        (b"[kernel.kallsyms][ffff]", "", 0),
        (b"<b>\xff.c:12", "<b>\udcff.c", 12),
    ],
)
def test_place(place: bytes, file: str, line: int) -> None:
    frames, known = lines(joined=True)
    number = known[b"\t 40 f+0x1 (/bin/a)\r  " + place]
    assert frames.frames[number] == (Frame("f", "native", A, 0, file, line),)
    number = known[b"\t 40 f+0x1\r  " + place + b" (inlined)"]
    assert frames.frames[number] == (Frame("f", "native", None, 0, file, line),)
    assert (known[b"\t 40 f+0x1 (/bin/a)"] == known[b"\t 40 f+0x1 (/bin/a)\r  " + place]) == (not file)


def test_memory_of_the_lines_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_frames, "_MAX_LINES", 5)
    _, known = lines()
    numbers = {known[b"\t %x f+0x1 (/bin/a)" % i] for i in range(100)}
    assert len(numbers) == 1 and len(known) <= 5
