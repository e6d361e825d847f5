from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.python import pyspy

HEAD = b"Process 7: python a.py\nPython v3.11.7 (/usr/bin/python3)\n\n"
MAIN = b'Thread 7 (active+gil): "MainThread"\n    busy (a.py:4)\n    <module> (a.py:9)\n'
OTHER = b"Thread 0x7F12 (idle)\n    wait (threading.py:3)\n    0x7f12 (libc.so.6)\n"


def read(text: bytes, **options: bool) -> Profile:
    return pyspy.read(Source(io.BytesIO(text), "x"), ReadOptions(**options))


def folded(profile: Profile) -> list[str]:
    return [";".join(frame.name for frame in each.stack) + f" {each.values[0]}" for each in profile.samples]


def test_every_thread_of_every_dump_is_a_sample() -> None:
    text = HEAD + MAIN + OTHER + HEAD + MAIN
    assert pyspy.sniff(text)
    assert pyspy.sniff(b"a warning\n" + text)
    profile = read(text)
    assert folded(profile) == ["<module>;busy 2", "[libc.so.6];wait 1"]
    labels = [dict(sample.labels) for sample in profile.samples]
    assert labels == [
        {"pid": 7, "process": "python a.py", "tid": 7, "thread": "MainThread"},
        {"pid": 7, "process": "python a.py", "thread": "0x7F12"},
    ]
    assert profile.samples[0].stack[1] == Frame("busy", "python", file="a.py", line=4)
    assert profile.lost == {}
    assert folded(read(text, addrs=True))[1] == "[libc.so.6 <7f12>];wait 1"


def test_processes_and_their_children() -> None:
    child = b"Process 8: python w.py\nPython v3.11.7 (/usr/bin/python3)\nParent Process 7: python a.py\n\n"
    profile = read(HEAD + MAIN + child + MAIN.replace(b"Thread 7", b"Thread 8"))
    assert [dict(sample.labels)["pid"] for sample in profile.samples] == [7, 8]
    assert profile.lost == {}


def test_local_variables_are_no_frames() -> None:
    text = MAIN.replace(b"    <mod", b"        Arguments:\n            s: 'f (b.py:3)'\n        Locals:\n    <mod")
    profile = read(HEAD + text)
    assert (folded(profile), profile.lost) == (["<module>;busy 1"], {})


def test_what_is_no_dump_is_counted_with_its_place() -> None:
    profile = read(HEAD + b"what\n" + MAIN + b"  odd\nThread 9 (idle)\n\n    lost (a.py:3)\n" + OTHER)
    assert folded(profile) == ["<module>;busy 1", "[libc.so.6];wait 1"]
    assert profile.lost == {"lines not understood": 3, "threads without a stack": 1}
    assert worded(profile.comments)[0].startswith("x, line 4: expected a line of py-spy dump")
    with pytest.raises(StallscopeError, match="line 4: expected a line of py-spy dump"):
        read(HEAD + b"Error: Failed to suspend process\n")


@pytest.mark.parametrize("end", [b"    bu", b"    busy (a.p", b"    busy (a.py:4)\n    <module> (a.py"])
def test_a_dump_that_is_cut_is_told(end: bytes) -> None:
    profile = read(HEAD + MAIN + b"Thread 9 (idle)\n" + end)
    assert (folded(profile), profile.lost) == (["<module>;busy 1"], {"stacks cut short at the end": 1})
    assert read(HEAD + MAIN.rstrip()).lost == {}
