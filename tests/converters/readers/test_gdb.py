from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers import gdb
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source

LIBC = Module("/lib/libc.so.6")
EU = (
    b"PID 7 - process\nTID 7:\n#0  0x00007f6a78175df2 pause\n#1  0x000055a44a72f185 main\nTID 8:\n#0  0x00007f6a poll\n"
)
GDB = (
    b'\nThread 2 (Thread 0x7f6a (LWP 8) "io"):\n#0  0x00007f6a in poll () at poll.c:29\n'
    b'\nThread 1 (Thread 0x7f6b (LWP 7) "app"):\n#0  pause () at pause.c:29\n#1  0x000055a4 in main () at a.c:3\n'
    b"[Inferior 1 (process 7) detached]\n"
)


def read(text: bytes, size: int = 1 << 20, **options: bool) -> Profile:
    source = Source(io.BytesIO(text), "x")
    whole = io.BytesIO(text)
    source.read = lambda _=0: whole.read(size)  # type: ignore[method-assign, assignment]
    return gdb.read(source, ReadOptions(**options))


def frame(line: str, **options: bool) -> Frame:
    (sample,) = read(f"{line}\n".encode(), **options).samples
    (found,) = sample.stack
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#0  0x00007f6a in poll () from /lib/libc.so.6", Frame("poll", "native", LIBC)),
        ("#0  0x00007f6a in ?? () from /lib/libc.so.6", Frame("[libc.so.6]", "native", LIBC)),
        ("#0  0x00007f6a in ?? ()", Frame("[unknown]")),
        ('#0  f (s=0x1 "a) at b.c:3", n=...) at /s/a b.c:77', Frame("f", file="/s/a b.c", line=77)),
        ("#0  (anonymous namespace)::f (x=1) at a.cc:7", Frame("(anonymous namespace)::f", file="a.cc", line=7)),
        ("#0  0x1 in F<void (int)>::operator()(int) const (a=1)", Frame("F<void (int)>::operator()(int) const")),
        ("#0  <signal handler called>", Frame("<signal handler called>")),
        ("#0  0x00007f6a poll", Frame("poll")),
        ("#0  0x00007f6a", Frame("[unknown]")),
        ("#0  0x00007f6a poll@@GLIBC_2.2.5", Frame("poll")),
        ("#0  0x00007f6a     memcpy@GLIBC_2.2.5 - /lib/libc.so.6", Frame("memcpy", "native", LIBC)),
        ("#0  0x00007f6a - 1 _ZNSo6sentryC1ERSo@@GLIBCXX_3.4", Frame("_ZNSo6sentryC1ERSo")),
        ("#0  0x00007f6a poll@plt", Frame("poll@plt")),
        ("#0  0x00007f6a @GLIBC_2.2.5", Frame("@GLIBC_2.2.5")),
        ("#0  0x00007f6a std::f(int, long) const", Frame("std::f(int, long) const")),
        ("#0  0x00007f6a     poll - /lib/libc.so.6", Frame("poll", "native", LIBC)),
        ("#0  0x00007f6a - 1 poll - /lib/libc.so.6 [eh_frame]", Frame("poll", "native", LIBC)),
        ("#0  0x00007f6a - /lib/libc.so.6", Frame("[libc.so.6]", "native", LIBC)),
        ("#0  0x00007f6a - 1", Frame("[unknown]")),
    ],
)  # fmt: skip
def test_frames(line: str, expected: Frame) -> None:
    assert frame(line) == expected


def test_addresses_on_request() -> None:
    assert frame("#0  0x00007f6a in ?? ()", addrs=True).name == "[unknown <00007f6a>]"
    assert frame("#0  0x00007f6a - /lib/libc.so.6", addrs=True).name == "[libc.so.6 <00007f6a>]"


def folded(profile: Profile) -> list[str]:
    return [";".join(frame.name for frame in each.stack) + f" {each.values[0]}" for each in profile.samples]


def test_every_thread_of_every_dump_is_a_sample() -> None:
    assert folded(read(EU * 3)) == ["main;pause 3", "poll 3"]
    assert folded(read(GDB * 3)) == ["poll 3", "main;pause 3"]


def test_processes_and_threads() -> None:
    app, io_ = ("process", "app"), ("pid", 7)
    assert [each.labels for each in read(EU, tid=True).samples] == [(io_, ("tid", 7)), (io_, ("tid", 8))]
    assert [each.labels for each in read(EU, pid=True).samples] == [(io_,), (io_,)]
    assert [each.labels for each in read(GDB, tid=True).samples] == [
        (io_, app, ("thread", "io"), ("tid", 8)),
        (io_, app, ("thread", "app"), ("tid", 7)),
    ]
    other = GDB.replace(b"process 7", b"process 9").replace(b"LWP 7", b"LWP 9").replace(b'"app"', b'"b"x"')
    pairs = [each.labels for each in read(GDB + other, pid=True).samples]
    assert pairs == [(io_, app)] * 2 + [(("pid", 9), ("process", 'b"x'))] * 2


def test_lines_between_frames_do_not_cut_a_stack() -> None:
    text = b"#0  0x1 in f (a=1) at a.c:1\n        x = 5\nNo locals.\n--Type <RET> for more--\n#1  0x2 in main ()\n\n"
    assert folded(read(text)) == ["main;f 1"]
    verbose = (
        b"TID 5:\n#0  0x1     f - /b\n    [a8]@0x1+0x2\n    /s/a.c:1:2\n#1  0x2 - 1 main - /b\n    /s/a.c:9:1\nTID 6:\n"
    )
    found = read(verbose)
    assert (folded(found), found.lost) == (["main;f 1"], {})


def test_what_is_cut_short_is_counted() -> None:
    text = EU + b"eu-stack: tid 8: shown max number of frames (1, use -n 0 for unlimited)\n" + EU
    text += b"#0  0x1 in f ()\nBacktrace stopped: previous frame inner to this frame\n\n"
    found = read(text, pid=True)
    assert found.lost == {"stacks cut short": 2}
    assert found.total("samples") == 5


CUT = {"dumps cut short at the end": 1}


@pytest.mark.parametrize(
    ("end", "stacks"),
    [
        (b"", []),
        (b"#", []),
        (b"#1  0x000055a4 in ru", []),
        (b"#1  0x000055a4 in run (p=1) at a.c:20", []),
        (b"#1  0x000055a4 in main () at thr", []),
        (b"#1  0x000055a4 in run (p=1) at a.c:20\n", []),
        (b"#1  0x000055a4 in clone3 () at x.S:81", ["clone3;read 1"]),
        (b"#1  0x000055a4 in ?? ()\n", ["[unknown];read 1"]),
        (b"#1  0x000055a4 in ?? ()", []),
        (b"#1  0x000055a4 in main () at a.c:7", ["main;read 1"]),
        (b"#1  0x000055a4 in clone3 () at x.S:81\n\n", ["clone3;read 1"]),
        (b'#1  0x000055a4 in clone3 () at x.S:81\n\nThread 2 (LWP 9 "i', ["clone3;read 1"]),
        (b'#1  0x000055a4 in clone3 () at x.S:81\n\nThread 2 (LWP 9 "io"):\n', ["clone3;read 1"]),
    ],
)
def test_the_last_stack_of_a_dump_that_is_cut_has_no_wrong_root(end: bytes, stacks: list[str]) -> None:
    whole = b"Thread 4 (LWP 7):\n#0  0x1 in poll ()\n#1  0x2 in clone3 () at x.S:81\n\nThread 3 (LWP 8):\n"
    found = read(whole + b"#0  0x1 in read ()\n" + end)
    assert (folded(found), found.lost) == (["clone3;poll 1", *stacks], CUT)


def test_the_last_stack_alone_that_does_not_end_where_threads_begin_is_cut() -> None:
    thread = b"TID 8:\n#0  0x1 poll\n#1  0x2 run\n#2  0x3 __clone3\n"
    assert read(thread * 2).lost == {}
    for end in (b"TID 9:\n#0  0x1 poll\n", b"TID 9:\n#0  0x1 poll\n#1  0x2 run\n"):
        found = read(thread + end)
        assert (folded(found), found.lost) == (["__clone3;run;poll 1"], CUT)
        assert read(end).lost == {}
        assert read(end.replace(b"run", b"main") + end).lost == {}
    stopped = b"Backtrace stopped: Cannot access memory at address 0x8"
    for end in (stopped, stopped + b"\n"):
        found = read(thread + b"#0  0x1 in f ()\n#1  0x2 in g ()\n" + end)
        assert (found.total("samples"), found.lost) == (2, {"stacks cut short": 1})


@pytest.mark.parametrize("end", [b"", b"\n", b"\n[Inferior 1 (process 7) detached]", b"\n[Inferior 1 (proc"])
def test_a_dump_without_its_last_line_end_is_whole(end: bytes) -> None:
    text = (
        b"Thread 2 (LWP 7):\n#0  0x1 in poll ()\n#1  0x2 in clone ()\n\nThread 1 (LWP 7):\n#0  0x1 in main () at a.c:3"
    )
    found = read(text + end)
    assert (folded(found), found.lost) == (["clone;poll 1", "main 1"], {})
    assert read(EU.rstrip() + b"\n#1  0x00007f6a000055a4 _start").lost == {}
    assert read(EU.rstrip() + b"\n#1  0x00007f6a000055a4 _sta").lost == CUT
    assert read(EU + b"TID 9").lost == CUT


def test_chunks_of_any_size_give_the_same() -> None:
    text = b"#3  0x1 in cut ()\n" + GDB + EU * 2 + b"garbage\n" + GDB + b"#0  0x1 in f ()\nwhat\n#1  0x2 in g ()\n" + EU
    whole = read(text, tid=True)
    assert whole.total("samples") == 11
    assert whole.lost == {"frames without a beginning": 1, "lines not understood": 1}
    assert worded(whole.comments)[0].startswith("x, line 1: expected a frame of gdb")
    assert worded(read(EU + b"#0  0x1 f\nwhat\n#1  0x2 g\n").comments)[0].startswith("x, line 8: ")
    for size in (1, 7, 50):
        assert read(text, size, tid=True) == whole


def test_nothing_understood() -> None:
    with pytest.raises(StallscopeError, match="line 2: expected a frame of gdb"):
        read(b"\n#4  0x1 in f ()\n")


def test_sniff() -> None:
    assert gdb.sniff(b"[New LWP 5]\n" + GDB)
    assert gdb.sniff(EU)
    assert not gdb.sniff(b"# captured on\n#0 is a comment\na 1/2 1.5: 1 cycles:\n\t 40 f (/bin/a)\n\n")
