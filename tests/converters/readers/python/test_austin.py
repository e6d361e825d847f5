from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.python import austin

DATA = Path(__file__).resolve().parents[3] / "data" / "austin"
COUNT = ValueType("count", "count")
F = Frame("f", "python", file="/a.py", line=3)
WHO = (("pid", 7), ("tid", 8))


def read(text: bytes) -> Profile:
    return austin.read(Source(io.BytesIO(text), "x"), ReadOptions())


def test_wall_time() -> None:
    profile = read(
        b"# austin: 3.7.0\n# mode: wall\n\nP7;T0:8;/a.py:f:3 20\nP7;T0:8;/a.py:f:3 5\nP7;T0:8 1\n# duration: 30\n"
    )
    assert profile.value_types == [ValueType("wall", "nanoseconds"), COUNT]
    assert profile.samples == [Sample((F,), (25_000, 2), WHO), Sample((), (1_000, 1), WHO)]
    assert profile.duration_ns == 30_000


def test_cpu_time_and_memory() -> None:
    assert read(b"# mode: cpu\nP7;T0:8;/a.py:f:3 20\n").value_types == [ValueType("cpu", "nanoseconds"), COUNT]
    profile = read(b"# mode: memory\nP7;T0:8;/a.py:f:3 4096\nP7;T0:8;/a.py:f:3 -100\nP7;T0:8;/a.py:f:3 1\n")
    assert profile.value_types == [ValueType("allocated", "bytes"), ValueType("freed", "bytes"), COUNT]
    assert profile.samples == [Sample((F,), (4097, 100, 3), WHO)]


def test_times_alone_under_mode_full_are_wall_time() -> None:
    profile = read(b"# mode: full\nP7;T0:8;/a.py:f:3 20\nP7;T0:8;/a.py:f:3 5\nP7;T0:8;/a.py:f:3 5,1,-7\n")
    assert profile.value_types == [ValueType("wall", "nanoseconds"), COUNT]
    assert profile.samples == [Sample((F,), (25_000, 2), WHO)]
    assert profile.lost == {"samples of another mode": 1}


@pytest.mark.parametrize("mode", [b"# mode: full\n", b""])
def test_full(mode: bytes) -> None:
    profile = read(mode + b"P7;T0:8;/a.py:f:3 20,0,4096\nP7;T0:8;/a.py:f:3 5,1,-7\nP7;T0:8;/a.py:f:3 5\n")
    assert [kind.name for kind in profile.value_types] == ["wall", "cpu", "allocated", "freed", "count"]
    assert profile.samples == [Sample((F,), (25_000, 20_000, 4096, 7, 2), WHO)]
    assert profile.lost == {"samples of another mode": 1}


def test_frames_and_threads_of_all_versions() -> None:
    text = (
        b"P7;T1:9;/a;b.py:<lambda>:4 1\n"
        b"P7;T7f12ab;g (/o.py:13);h (/o.py);L12 1\n"
        b"Process 7;Thread 8;g (/o.py:13) 1\n"
        b"P7;T8;libc.so.6:read:0;kernel:vfs_read:0;:GC:;:INVALID: 1\n"
    )
    samples = read(text).samples
    assert [s.labels for s in samples] == [
        (("interpreter", 1), ("pid", 7), ("tid", 9)),
        (("pid", 7), ("thread", "7f12ab")),
        WHO,
        WHO,
    ]
    g = Frame("g", "python", file="/o.py", line=13)
    assert [s.stack for s in samples] == [
        (Frame("<lambda>", "python", file="/a;b.py", line=4),),
        (g, Frame("h", "python", file="/o.py", line=12)),
        (g,),
        (
            Frame("read", "native", file="libc.so.6"),
            Frame("vfs_read", "kernel"),
            Frame("[garbage collection]", "other"),
            Frame("[invalid]", "other"),
        ),
    ]


def test_recorded_sums() -> None:
    text = (DATA / "full.austin").read_bytes()
    rows = [line.rpartition(b" ")[2].split(b",") for line in text.splitlines() if line[:1] == b"P"]
    profile = read(text)
    assert profile.total("count") == len(rows) > 30
    assert profile.total("wall") == 1000 * sum(int(row[0]) for row in rows)
    assert profile.total("cpu") == 1000 * sum(int(row[0]) for row in rows if row[1] == b"0")
    assert {s.label("pid") for s in profile.samples} == {13028, 13032}


def test_bad_lines_are_counted() -> None:
    profile = read(b"P7;T0:8;/a.py:f:3 1\nP7;X;/a.py:f:3 1\nP7;T0:8;no frame 1\nP7;T0:8;/a.py:f:3 " + b"9" * 30 + b"\n")
    assert profile.total("wall") == 1000
    assert profile.lost == {"lines not understood": 3}
    assert worded(profile.comments) == [f"x, line 2: expected {austin.EXPECTED}"]
    with pytest.raises(StallscopeError, match="x, line 1: expected a sample of austin"):
        read(b"hello\n")


def test_a_full_cache_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(b"P7;T0:%d;/a.py:f:%d;/b.py:g:1 2\n" % (i % 3, i % 50) for i in range(400))
    whole = sorted(read(text).samples)
    monkeypatch.setattr(austin, "_MAX_CACHED", 100)
    monkeypatch.setattr(austin, "_CACHE", 2)
    assert sorted(read(text).samples) == whole
    assert sum(s.values[0] for s in whole) == 800_000


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"# austin: 3.7.0\n", True),
        (b"# mode: wall\n\nP1;T2;a:b:3 4\n", True),
        (b"P1;T2 4\n", True),
        (b"Process 1;Thread 2;f (a);L3 4\n", True),
        (b"P1;T2;a:b:3 4,1,-5\n", True),
        (b"# a comment\nP1;T2;a:b:3 4\n", False),
        (b"Python;T2 4\n", False),
        (b"main;f 4\n", False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert austin.sniff(head) is known


PARTS = [
    b"P1;",
    b"T1:2",
    b"Thread 3",
    b";",
    b"/a.py:f:1",
    b"f (a)",
    b"L4",
    b":",
    b" 1",
    b" 1,0,-2",
    b"# mode: full",
    b"\n",
    b"\xff",
]


@given(st.lists(st.sampled_from(PARTS)))
def test_anything_is_read_or_refused(parts: list[bytes]) -> None:
    text = b"".join(parts)
    austin.sniff(text)
    try:
        profile = read(text)
    except StallscopeError:
        return
    assert all(frame.name for sample in profile.samples for frame in sample.stack)
