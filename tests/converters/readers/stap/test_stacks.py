"""Frames from the texts that the scripts print."""

from __future__ import annotations

import pytest
from stallscope.converters.readers.stap.lines import Lines


def read(text: bytes) -> Lines:
    lines = Lines()
    assert not list(lines.feed(text))
    return lines


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"main+0x10/0x20 [/bin/x]", "main"),
        (b"main+0x30/0x20 [/bin/x]", "[x]"),  # the nearest symbol, which ends before
        (b"memcpy@@GLIBC_2.14+0x1/0x9 [/lib/libc.so.6]", "memcpy"),
        (b"__GI___clone3+0x1/0x9 [/lib/libc.so.6]", "__clone3"),
        (b"_ZN3foo3barEv+0x1/0x9 [/lib/x.so]", "foo::bar()"),
        (b"0x7f0012345678 [/lib/x.so+0x1234/0x5678]", "[x.so+0x1234]"),
        (b"0x7f0012345678", "[unknown]"),
        (rb"a\nb+0x1/0x2 [/x]", "a\nb"),
    ],
)
def test_a_user_frame(text: bytes, name: str) -> None:
    lines = read(b"f 1 0 " + text + b"\n")
    assert [frame.name for frame in lines.stacks(None).of(0, 1)] == [name]


def test_a_kernel_frame_without_kallsyms() -> None:
    lines = read(b"k 1 0 0xffffffff81a47400\nk 1 1 schedule+0x1/0x2 [kernel]\n")
    assert [frame.name for frame in lines.stacks(None).of(1, 0)] == ["schedule", "[kernel]"]


def test_a_stack_for_which_there_was_no_room() -> None:
    lines = read(b"")
    assert [frame.name for frame in lines.stacks(None).of(0, -1)] == ["[other stacks]"]
    assert lines.stacks(None).of(0, 0) == ()
