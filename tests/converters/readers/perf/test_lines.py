from __future__ import annotations

import time

import pytest
from stallscope.converters.model import Frame, Module
from stallscope.converters.readers.perf.lines import Header, parse_frames, parse_header, without_address

APP = Module("/bin/app")


@pytest.mark.parametrize(
    ("line", "header"),
    [
        (b"java 25607 4794564.109216: 1 cycles:", Header("java", None, 25607, b"cycles", 1)),
        (b"java 24636/25607 [000] 4.1:  235 cpu-clock:u: ", Header("java", 24636, 25607, b"cpu-clock:u", 235)),
        (b"V8 Worker 7/8 94.5: cycles:", Header("V8 Worker", 7, 8, b"cycles", 1)),
        (b"swapper     0/0 [001] 1.0: 3 cycles:", Header("swapper", None, 0, b"cycles", 3)),
        (b"app 71/72 cycles: ", Header("app", 71, 72)),
        (b"a   12 ", Header("a", None, 12)),
        (b"app 12 5.5: sched:sched_switch: prev_pid=1 next=b", Header("app", None, 12)),
    ],
)
def test_header(line: bytes, header: Header) -> None:
    assert parse_header(line, loose=False) == header


@pytest.mark.parametrize(
    ("line", "header"),
    [
        (b"my app  7376.5:    204 cpu-clock: ", Header("my app", None, None, b"cpu-clock", 204)),
        (b" 235  7376.5: cpu-clock: ", Header("", None, 235, b"cpu-clock", 1)),
        (b"app ", Header("app", None, None)),
        (b"garbage without a blank", None),
    ],
)
def test_header_without_a_process_id(line: bytes, header: Header | None) -> None:
    assert parse_header(line, loose=False) is None
    assert parse_header(line, loose=True) == header


@pytest.mark.parametrize(
    ("line", "frames"),
    [
        (b"\t 4011 main+0x1f (/bin/app)", (Frame("main", "native", APP),)),
        (b"\t 4011 f(int, char*) (/bin/app)", (Frame("f", "native", APP),)),
        (b"\t 4011 (anonymous namespace)::f(int) (/bin/app)", (Frame("(anonymous namespace)::f", "native", APP),)),
        (b"\t 4011 (app) (/bin/app)", ()),
        (
            b"\t 4011 x::(anonymous namespace)::f(int) (/bin/app)",
            (Frame("x::(anonymous namespace)::f", "native", APP),),
        ),
        (b"\t 4011 [unknown] (/bin/app)", (Frame("[app]", "native", APP),)),
        (b"\t 4011 [unknown] ([unknown])", (Frame("[unknown]"),)),
        (b"\t ff81 idle ([kernel.kallsyms])", (Frame("idle", "kernel", Module("[kernel.kallsyms]")),)),
        (b"\t 7f RegExp:[&<>\"'] (/tmp/perf-7.map)", (Frame("RegExp:[&<>]", "jit", Module("/tmp/perf-7.map")),)),
        (
            b"\t 40 a->b->c (/bin/app)",
            (Frame("a", "native", APP), Frame("b_[i]", "native", APP), Frame("c_[i]", "native", APP)),
        ),
        (b"\t 40 x::operator->*(int)+0x1 (/bin/app)", (Frame("x::operator->*", "native", APP),)),
        (b"\t 40 foo (inlined)", (Frame("foo"),)),
        (b"\t 40 f+0x1 (/bin/app (deleted))", (Frame("f", "native", Module("/bin/app (deleted)")),)),
        (b"\t 40 f(int)+0x1 (/dev/zero (deleted)) ", (Frame("f", "native", Module("/dev/zero (deleted)")),)),
        (b"\t 40 [unknown] (/bin/app (deleted))", (Frame("[app]", "native", Module("/bin/app (deleted)")),)),
        (b"\t 4011 main", (Frame("main"),)),
        (b"\t 4011", (Frame("[unknown]"),)),
        (b"what is this", None),
        (b"", None),
    ],
)
def test_frames(line: bytes, frames: tuple[Frame, ...] | None) -> None:
    assert parse_frames(line, addrs=False, java=False) == frames


def test_address_matters_only_if_asked_for() -> None:
    line = b"\t 4011 [unknown] (/bin/app)"
    assert parse_frames(line, addrs=True, java=False) == (Frame("[app <4011>]", "native", APP),)
    assert without_address(b"\t 1 f+0x1 (/a)") == without_address(b"\t 2 f+0x22 (/a)") == (b"f", b"/a)")
    assert without_address(line) == without_address(b"\t 40 [unknown] (/bin/app)") == (b"[unknown]", b"/bin/app)")
    gone = (b"f", b"/a (deleted))")
    assert without_address(b"\t 1 f (/a (deleted))") == without_address(b"\t 1 f+0x1 (/a (deleted))") == gone
    for odd in b"f+0xzz (/a),f+0x1 (/a) (b),+0x1 (/a),f+0x (/a),f+0x1 (/a) ,f (/a) ,f,(/a),".split(b","):
        assert without_address(b"\t 1 " + odd) is None


@pytest.mark.parametrize("line", [b"1" * 10**6, b" " * 10**6, b"a " * 10**6, b" (" * 10**6, b"a 1" + b":" * 10**6])
def test_long_lines_take_linear_time(line: bytes) -> None:
    begin = time.process_time()
    parse_header(line, loose=True)
    parse_frames(line, addrs=True, java=True)
    assert time.process_time() - begin < 5
