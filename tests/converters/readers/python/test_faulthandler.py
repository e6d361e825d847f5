from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.python import faulthandler

DATA = Path(__file__).resolve().parents[3] / "data" / "faulthandler"
HEAD = b"Thread 0x%x (most recent call first):\n"


def read(text: bytes) -> Profile:
    return faulthandler.read(Source(io.BytesIO(text), "x"), ReadOptions())


def frames(*names: str) -> bytes:
    return b"".join(
        b'  File "/app/%b.py", line %d in %b\n' % (n.encode(), i + 1, n.encode()) for i, n in enumerate(names)
    )


def python(name: str, line: int) -> Frame:
    return Frame(name, "python", file=f"/app/{name}.py", line=line)


def test_each_thread_of_a_dump_is_a_sample() -> None:
    dump = b"Timeout (0:00:01)!\n" + HEAD % 1 + frames("leaf", "main") + b"\n" + HEAD % 2 + frames("wait")
    profile = read(dump * 3)
    assert profile.value_types == [ValueType("samples", "count")]
    assert profile.samples == [
        Sample((python("main", 2), python("leaf", 1)), (3,), (("thread", "0x1"),)),
        Sample((python("wait", 1),), (3,), (("thread", "0x2"),)),
    ]
    assert profile.lost == {}


def test_names_current_thread_and_c_stack() -> None:
    profile = read((DATA / "python3.14.txt").read_bytes())
    first, second, third = sorted(profile.samples, key=lambda sample: str(sample.label("thread")))
    assert first.labels == (("thread", "MainThread"),)
    crash, python_lib = Module("/app/crash.so"), Module("/usr/lib/libpython3.14.so.1.0")
    assert first.stack == (
        Frame("[unknown]", "python", file="/app/\\x1b.py"),
        Frame("middle", "python", file="/app/dump.py", line=3),
        Frame("[garbage collection]", "other"),
        Frame("crash_here", "native", crash),
        Frame("[crash.so]", "native", crash),
        Frame("_Py_DumpStack", "native", python_lib),
    )
    assert (second.stack, second.labels) == ((), (("thread", "native"),))
    assert third.labels == (("thread", "wait;er <b>"),)
    assert profile.lost == {
        "lines outside of dumps": 1,
        "stacks cut short": 1,
        "threads without a Python frame": 1,
    }
    assert profile.total("samples") == 3


def test_a_c_stack_without_the_interpreter_is_counted() -> None:
    c_stack = b'Current thread\'s C stack trace (most recent call first):\n  Binary file "/a", at f+0x1 [0x2]\n'
    profile = read(b"Stack (most recent call first):\n" + frames("f") + c_stack)
    assert profile.samples == [Sample((python("f", 1),), (1,))]
    assert profile.lost == {"C stacks that show no call from Python": 1}


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_recording_has_every_thread(version: str) -> None:
    text = (DATA / f"python{version}.txt").read_bytes()
    heads = re.findall(rb"^(?:Thread|Current thread|Stack).*most recent call first", text, re.MULTILINE)
    assert read(text).total("samples") == len(heads) == 13


def test_chunks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = random.Random(1)
    parts = [
        b"a word of the program\n",
        b"\n",
        b"Timeout (0:00:01)!\n",
        HEAD % 1,
        HEAD % 2,
        frames("f", "g"),
        frames("h"),
    ]
    parts += [b"Current thread 0x1 (most recent call first):\n", b"  ...\n", b"  <no Python frame>\n"]
    parts += [HEAD % 3 + frames("f", "g") + b"\n"] * 5
    text = HEAD % 1 + frames("f") + b"".join(choice.choice(parts) for _ in range(500))
    whole = read(text)
    lines = text.splitlines(keepends=True)
    for size in (1, 2, 17):
        tally = faulthandler._Tally("x")
        for i in range(0, len(lines), size):
            tally.add(b"".join(lines[i : i + size]))
        again = tally.profile()
        assert sorted(again.samples) == sorted(whole.samples)
        assert again.lost == whole.lost
    monkeypatch.setattr(faulthandler, "_MAX_CACHED", 0)
    assert read(text).samples == whole.samples


def test_stacks_that_python_3_13_cuts_short_are_counted() -> None:
    dump = HEAD % 1 + frames(*["f"] * 100) + b"\n" + HEAD % 2 + frames(*["f"] * 99) + b"\n"
    profile = read(dump * 3)
    assert [(len(each.stack), each.values) for each in profile.samples] == [(100, (3,)), (99, (3,))]
    assert profile.lost == {"stacks cut short": 3}


def test_no_dump_is_refused() -> None:
    with pytest.raises(StallscopeError, match="x, line 1: expected a dump of faulthandler"):
        read(b"hello\nworld\n")


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"hello\n" + HEAD % 1 + b'  File "a", line 1 in f\n', True),
        (b"Stack (most recent call first):\n  <no Python frame>\n", True),
        (HEAD % 1 + b"hello\n", False),
        (b'Traceback (most recent call last):\n  File "a", line 1, in f\n', False),
        (b"", False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert faulthandler.sniff(head) is known


LINES = [
    HEAD % 1,
    b"Current thread's C stack trace (most recent call first):\n",
    frames("f"),
    b"  ...\n",
    b"\n",
    b"\xff",
]


@given(st.lists(st.sampled_from([*LINES, b'  Binary file "a", at _PyEval_EvalFrame+0x1 [0x1]\n', b'  File "', b"x"])))
def test_anything_is_read_or_refused(parts: list[bytes]) -> None:
    text = b"".join(parts)
    try:
        profile = read(text)
    except StallscopeError:
        return
    assert profile.total("samples") == len(re.findall(rb"^Thread 0x1 \(most recent call first\):$", text, re.MULTILINE))
