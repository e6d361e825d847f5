"""Frames from the texts that the scripts print."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.readers.stap.lines import Lines
from stallscope.converters.readers.stap.stacks import UserPlace


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


class Names:
    """Knows one symbol, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: Sequence[Sequence[UserPlace]] = ()

    def frames(self, stacks: Sequence[Sequence[UserPlace]]) -> list[list[Frame | None]]:
        self.asked = stacks
        return [[Frame("right", "native") if each.symbol == "nearest" else None for each in stack] for stack in stacks]


def test_names_from_the_files_themselves() -> None:
    names = Names()
    lines = read(
        b"f 1 2 0x12\nf 1 0 inner+0x1/0x2 [/x]\nf 1 1 nearest+0xbc0/0xc00 [/y]\nk 2 0 0x1\nf 3 0 0x12 [/z+0x1/0x1000]\n"
    )
    stacks = lines.stacks(None, names)
    assert [frame.name for frame in stacks.of(0, 1)] == ["[unknown]", "right", "inner"]
    assert [frame.name for frame in stacks.of(0, 3)] == ["[z+0x1]"]
    assert names.asked == [
        [UserPlace("inner", 1, 2, "/x"), UserPlace("nearest", 0xBC0, 0xC00, "/y"), UserPlace("", 0, 0, "")],
        [UserPlace("", 1, 0x1000, "/z")],
    ]


def test_files_without_tables() -> None:
    lines = read(
        b"f 1 0 main+0x1/0x2 [/named]\nf 1 1 0x1 [/ends.so+0x1/0x2]\n"
        b"f 2 0 0x1 [/named+0x1/0x2]\n"  # before its first symbol
        b"f 3 0 0x5 [/stripped+0x1/0x2]\nf 3 1 0x6 [/stripped+0x2/0x2]\n"  # the walk goes on: the tables are there
        b"f 4 0 0x5 [[vdso]+0x1/0x2]\nf 5 0 0x5\n"
    )
    assert lines.stacks(None).without_tables == {"/ends.so"}
