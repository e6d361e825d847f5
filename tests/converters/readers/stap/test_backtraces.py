from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.stap import backtraces as stap

KERNEL = Module("kernel")
BLOCK = b" 0xffffffff8103ce3b : halt+0xb/0x10 [kernel]\n 0xffffffff8101c6a3 : idle+0x53/0x1d0 [kernel]\n\t24\n"


def read(text: bytes, size: int = 1 << 20, **options: bool) -> Profile:
    source = Source(io.BytesIO(text), "x")
    whole = io.BytesIO(text)
    source.read = lambda _=0: whole.read(size)  # type: ignore[method-assign, assignment]
    return stap.read(source, ReadOptions(**options))


def frame(line: str, **options: bool) -> Frame:
    (sample,) = read(f"{line}\n\t1\n".encode(), **options).samples
    (found,) = sample.stack
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (" 0xffffffff8103ce3b : halt+0xb/0x10 [kernel]", Frame("halt", "kernel", KERNEL)),
        (" 0xffffffff8103ce3b : halt+0xb/0x10 [kernel] (inexact)", Frame("halt", "kernel", KERNEL)),
        (" 0xffffffffa0012345 : nv+0x45/0x90 [nvidia]", Frame("nv", "kernel", Module("nvidia"))),
        (" 0x7f12 : operator+(A, B)+0x1/0x9 [/a b.so]", Frame("operator+(A, B)", "native", Module("/a b.so"))),
        (" 0x7f12 : f+0x1/0x9 at /s/f.c:12 [/b]", Frame("f", "native", Module("/b"), file="/s/f.c", line=12)),
        (" 0x7f12 : f+0x0/0x0 [/s/f.c:12]", Frame("f", file="/s/f.c", line=12)),
        (" 0x7f12 : f+0x1/0x9", Frame("f")),
        (" 0x7f12 [/lib/b.so+0x1f/0x90]", Frame("[b.so+0x1f]", "native", Module("/lib/b.so"))),
        (" 0x7f12", Frame("[unknown]")),
        (" 0x7f12  :  <unknown>", Frame("[unknown]")),
        ("f+0x1a/0x90 [kernel]", Frame("f", "kernel", KERNEL)),
        ("C:lj_ffh_pcall", Frame("C:lj_ffh_pcall")),
    ],
)
def test_frames(line: str, expected: Frame) -> None:
    assert frame(line) == expected


def test_addresses_on_request() -> None:
    assert frame(" 0x7f12", addrs=True).name == "[unknown <7f12>]"


def test_counts_add_up_over_chunks_of_any_size() -> None:
    text = b"WARNING: begins\n" + BLOCK * 3 + b" 0x7f12 : f+0x1/0x9 [/b]\n  7\n" + BLOCK + b"x y\n" + BLOCK
    whole = read(text)
    assert [(";".join(f.name for f in s.stack), s.values) for s in whole.samples] == [
        ("idle;halt", (120,)),
        ("f", (7,)),
    ]
    assert whole.lost == {"lines not understood": 1}
    assert worded(whole.comments)[0].startswith("x, line 16: expected a frame of SystemTap")
    for size in (1, 7, 50):
        assert read(text, size) == whole


def test_nothing_understood() -> None:
    with pytest.raises(StallscopeError, match="line 1: expected a frame of SystemTap"):
        read(b"what is this\n\t5\n")


def test_sniff() -> None:
    assert stap.sniff(b"WARNING: x\n" + BLOCK)
    assert not stap.sniff(b"a 1/2 1.5: 1 cycles:\n\t ffffffff8103ce3b halt+0xb ([kernel.kallsyms])\n\n")
    assert not stap.sniff(b"a;b 1\n")
