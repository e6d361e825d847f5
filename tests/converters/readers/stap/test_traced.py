"""Text of the scripts in stap/ as an input of trace-convert."""

from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.stap import traced

BEGIN = b"stallscope 1 1000 1700000000000000000\nn 5 5 one\nn 5 6 two\\nlines\n"
STACKS = b"f 1 0 inner+0x1/0x2 [/x]\nf 1 1 main+0x1/0x2 [/x]\nk 2 0 schedule+0x1/0x9\n"
END = b"lost returns 0\nlost scope 0\nlost stacks 0\nlost threads 0\n"


def read(text: bytes, **options: bool) -> Profile:
    return traced.read(Source(io.BytesIO(text), "x"), ReadOptions(**options))


def whole(*lines: bytes) -> bytes:
    body = b"".join(line + b"\n" for line in lines)
    return BEGIN + STACKS + body + END + b"end 9000 %d\n" % (2 + 3 + len(lines))


def rows(profile: Profile) -> dict[tuple[str, ...], tuple[int, ...]]:
    return {tuple(frame.name for frame in sample.stack): sample.values for sample in profile.samples}


def test_waits() -> None:
    profile = read(whole(b"w 5 6 S 2 1 2000 10 300 40", b"o 5 6 D 2 1 3000 10 50 0"), tid=True)
    assert profile.title == "Off-CPU time"
    states = {sample.label("state"): (sample.values, sample.label("open")) for sample in profile.samples}
    assert states == {
        "interruptible": ((300, 1), None),
        "runnable-woken": ((40, 1), None),
        "uninterruptible": ((50, 1), "yes"),
    }
    assert {sample.label("thread") for sample in profile.samples} == {"two\nlines"}
    assert {sample.label("tid") for sample in profile.samples} == {6}
    assert profile.lost == {"events": 0}


def test_lines_before_the_first_one() -> None:
    """Lines of another core may come before the first one."""
    early = b"n 5 7 early\nw 5 7 S 0 0 1500 10 300 0\n"
    profile = read(early + BEGIN + STACKS + b"w 5 6 S 2 1 2000 10 300 40\n" + END + b"end 9000 8\n", tid=True)
    assert {(s.label("thread"), s.label("state"), s.values) for s in profile.samples} == {
        ("early", "interruptible", (300, 1)),
        ("two\nlines", "interruptible", (300, 1)),
        ("two\nlines", "runnable-woken", (40, 1)),
    }
    assert profile.lost == {"events": 0}


def test_a_wait_whose_begin_was_skipped() -> None:
    profile = read(whole(b"w 5 6 S 2 1 2000 10 300 0", b"w 5 6 - 0 0 2300 0 900 0"))
    assert [sample.values for sample in profile.samples] == [(300, 1)]
    assert profile.lost["intervals"] == 1


def test_samples() -> None:
    profile = read(whole(b"s 5 5 0 1", b"s 5 5 0 1", b"w 5 5 S 0 0 2000 10 300 40"))
    assert rows(profile) == {("main", "inner"): (2,)}


def test_calls() -> None:
    lines = (b"d 5 3 8630 10 200 devtmpfs tun", b"i 5 5 3 21523 2000 300 1 0", b"a 5 5 2000 400 1 0 cudaMalloc")
    assert rows(read(whole(*lines))) == {
        ("main", "inner", "ioctl 0x5413 devtmpfs tun"): (300, 1),
        ("main", "inner", "cudaMalloc"): (400, 1),
    }


def test_a_call_that_goes_on() -> None:
    assert rows(read(whole(b"A 5 5 2000 400 1 0 inner"))) == {("main", "inner"): (400, 0)}


def test_who_ended_a_wait() -> None:
    lines = (
        b"u 5 6 2300 5 5 2 1 t 0",
        b"w 5 6 S 2 1 2000 10 300 40",
        b"u 5 6 2300 0 0 2 0 h 0",
        b"w 5 6 S 2 1 2000 10 7 0",
    )
    own = ("main", "inner", "schedule", "--")
    assert rows(read(whole(*lines))) == {
        (*own, "schedule", "inner", "main", "one-5"): (300, 1),
        (*own, "schedule", "[interrupt]"): (7, 1),
    }


def test_what_is_missing_is_counted() -> None:
    text = whole(b"s 5 5 0 1", b"s 5 5 0 1").replace(b"s 5 5 0 1\n", b"", 1)
    assert read(text).lost["events"] == 1
    profile = read(text.replace(b"n 5 5 one", b"n 5 x one").rpartition(b"end")[0])
    assert profile.lost["lines not understood"] == 1
    assert "the script did not come to its end: what it lost is not known" in worded(profile.comments)
    assert any("line 2: expected" in comment for comment in worded(profile.comments))


def test_another_version() -> None:
    with pytest.raises(StallscopeError, match="version 1 of the lines, not 2"):
        read(b"stallscope 2 1 1\n")


def test_no_line_that_is_understood() -> None:
    with pytest.raises(StallscopeError):
        read(b"hello\n" * 20)


def test_sniffing() -> None:
    assert traced.sniff(BEGIN)
    assert traced.sniff(b"WARNING: something\n" + BEGIN)
    assert traced.sniff(b"n 5 5 one\nf 1 0 inner+0x1/0x2 [/x]\n" + BEGIN)
    assert not traced.sniff(b"n 5 5 one\n")
    assert not traced.sniff(b"stallscope;main 1\n")
    assert not traced.sniff(b"stallscope 1 2\n")


def test_that_names_may_be_other_functions_is_told() -> None:
    wait = b"w 5 6 S 2 1 2000 10 300 40"
    assert any("nearest symbols that SystemTap knew" in comment for comment in read(whole(wait)).comments)
    nameless = whole(wait).replace(b"inner+0x1/0x2", b"0x5").replace(b"main+0x1/0x2 [/x]", b"0x6 [/x+0x1/0x2]")
    assert not any("nearest" in comment for comment in worded(read(nameless).comments))
