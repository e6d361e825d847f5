from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.python import pyspy

DATA = Path(__file__).resolve().parents[3] / "data" / "pyspy"


def read(text: bytes, **options: object) -> Profile:
    return pyspy.read(Source(io.BytesIO(text), "x"), ReadOptions(**options))  # type: ignore[arg-type]


def python(name: str, file: str, line: int = 0) -> Frame:
    return Frame(name, "python", file=file, line=line)


def test_frames_of_python_c_and_libraries() -> None:
    profile = read(b"<module> (a.py:1);f (m.pyx:2);g (m.c:3);read (libc.so.6);0x7f12 (libc.so.6);alone 7\n")
    libc = Module("libc.so.6")
    assert profile.value_types == [ValueType("samples", "count")]
    frames = (python("<module>", "a.py", 1), python("f", "m.pyx", 2), Frame("g", "native", None, 0, "m.c", 3))
    native = (Frame("read", "native", libc), Frame("[libc.so.6]", "native", libc), Frame("alone"))
    assert profile.samples == [Sample(frames + native, (7,))]
    assert read(b"f (a.py);0x7f12 (libc.so.6) 1\n", addrs=True).samples[0].stack[-1].name == "[libc.so.6 <7f12>]"


def test_the_innermost_process_and_the_thread_become_labels() -> None:
    text = b'process 1:"sh; x";process 2:"py "a"";thread (3): io;pool;f (a.py:1) 4\n'
    labels = (("pid", 2), ("process", 'py "a"'), ("thread", "io;pool"), ("tid", 3))
    assert read(text).samples == [Sample((python("f", "a.py", 1),), (4,), labels)]


def test_a_process_without_a_command_does_not_get_that_of_its_parent() -> None:
    sample = read(b'process 1:"sh";process 2:"";f (a.py:1) 4\n').samples[0]
    assert sample.labels == (("pid", 2),)


def test_thread_names_have_semicolons() -> None:
    sample = read(b"thread (5): waiter;one;main (a.py:1) 2\n").samples[0]
    assert sample.labels == (("thread", "waiter;one"), ("tid", 5))
    assert sample.stack == (python("main", "a.py", 1),)


def test_recorded_threads() -> None:
    profile = read((DATA / "threads.raw").read_bytes())
    assert profile.total("samples") == 268
    assert {(s.label("pid"), s.label("thread")) for s in profile.samples} == {
        (pid, name) for pid in (12880, 12887) for name in ("MainThread", "cruncher", "waiter;one")
    } | {(12880, None)}
    assert all(frame.kind == "python" and frame.file for s in profile.samples for frame in s.stack)


def test_bad_lines_are_counted() -> None:
    profile = read(b"f (a.py:1) 1\nf (a.py:1) x\n\nf (a.py:1)\n 5\n")
    assert profile.total("samples") == 1
    assert profile.lost == {"lines not understood": 2, "samples without a stack": 5}
    assert worded(profile.comments)[0].startswith("x, line 2: expected a stack of py-spy")
    with pytest.raises(StallscopeError, match="x, line 1: expected a stack of py-spy"):
        read(b"hello\n")


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"f (a.py:1) 3\n", True),
        (b'process 5:"x";f 3\n', True),
        (b"thread (0x12): x;f 3\n", True),
        (b"bad\nf (a.py) 3\n", True),
        (b"read (libc.so.6) 3\n", False),
        (b"f (a.py:1);g 3\n", False),
        (b"main;f 3\n", False),
        (b"f (a.py:1)\n", False),
        (b"", False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert pyspy.sniff(head) is known


@given(
    st.lists(
        st.sampled_from([b"process 1:", b'"', b"thread (1)", b": ", b";", b" (a.py:1)", b"f", b" 1", b"\n", b"\xff"])
    )
)
def test_anything_is_read_or_refused(parts: list[bytes]) -> None:
    text = b"".join(parts)
    pyspy.sniff(text)
    try:
        profile = read(text)
    except StallscopeError:
        return
    assert all(frame.name for sample in profile.samples for frame in sample.stack)


def test_samples_of_threads_without_a_frame_are_told() -> None:
    profile = read(b"f (a.py:1) 3\n 2\n")
    assert profile.total("samples") == 3
    assert profile.lost == {"samples without a stack": 2}
    assert worded(profile.comments) == []
