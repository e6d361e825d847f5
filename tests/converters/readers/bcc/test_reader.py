from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.bcc import reader as bcc


def read(text: str) -> Profile:
    return bcc.read(Source(io.BytesIO(text.encode(errors="surrogateescape")), "x"), ReadOptions())


def kinds(text: str) -> list[tuple[str, str]]:
    (sample,) = read(text).samples
    return [(frame.name, frame.kind) for frame in sample.stack]


def test_kernel_part_and_process() -> None:
    stem = "my app;main;read;-;entry"
    text = f"{stem};schedule 5\n{stem};io_schedule 2\n{stem};schedule 1\n"
    found = read(text)
    assert [(each.labels, each.values) for each in found.samples] == [
        ((("process", "my app"),), (6,)),
        ((("process", "my app"),), (2,)),
    ]
    expected = [("main", "native"), ("read", "native"), ("entry", "kernel"), ("schedule", "kernel")]
    assert [(frame.name, frame.kind) for frame in found.samples[0].stack] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;-;k 1", [("k", "kernel")]),
        ("a;u;- 1", [("u", "native")]),
        ("a;u 1", [("u", "native")]),
        ("a 1", []),
        ("a;u;k_[k] 1", [("u", "native"), ("k", "kernel")]),
        ("a;[Missed User Stack];e;k 1", [("[Missed User Stack]", "native"), ("e", "kernel"), ("k", "kernel")]),
        ("a;u;-;[Missed Kernel Stack] 1", [("u", "native"), ("[Missed Kernel Stack]", "kernel")]),
        (
            "t;u;-;k;--;wk;-;wu;waker 1",
            [("u", "native"), ("k", "kernel"), ("--", "other"), ("wk", "kernel"), ("wu", "native"), ("waker", "other")],
        ),
        ("t;--;wu;waker 1", [("--", "other"), ("wu", "native"), ("waker", "other")]),
        ("t;;-; 1", [("[unknown]", "native"), ("[unknown]", "kernel")]),
    ],
)
def test_kinds(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text + "\n") == expected


def test_losses() -> None:
    found = read("WARNING: x.\na;-;k 1.5\na;-;k 1.5\na;-;k -3\na;[Missed User Stack];[Missed Kernel Stack] 4\n")
    assert found.total("samples") == 4
    assert found.lost == {
        "lines without a count": 1,
        "stacks missed": 2,
        "weights with a fraction, rounded": 2,
    }
    with pytest.raises(StallscopeError, match="line 1: expected a folded stack of bcc"):
        read("a;-;b\n")


def test_bytes_that_are_no_text_survive() -> None:
    assert kinds("a;-;k\udcff 1\n") == [("k\udcff", "kernel")]


def test_callers_forgotten_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"a;u{i % 7};-;k{i % 5};s 1\n" for i in range(100))
    whole = read(text)
    monkeypatch.setattr(bcc, "_CACHE", 2)
    assert read(text) == whole


def test_sniff() -> None:
    assert bcc.sniff(b"WARNING: x\na;b;-;c 4\n")
    assert bcc.sniff(b"a;b;--;c 4")
    assert not bcc.sniff(b"a;b;c 4\n")
    assert not bcc.sniff(b"a;-b;c- 4\n")
    assert not bcc.sniff(b"a;b;-;c\n")
