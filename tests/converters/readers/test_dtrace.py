from __future__ import annotations

import io

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers import dtrace
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source

HEAD = (
    b"dtrace: description 'profile-997 ' matched 1 probe\nCPU     ID                    FUNCTION:NAME\n"
    b"  0  64091                        :tick-60s \n\n"
)
BLOCK = b"\n              unix`halt+0xd\n              unix`idle+0x114\n             1641\n"
KEYED = b"  my shell                       77\n              a.out`read+0x1\n              a.out`main+0x2\n        3\n"


def read(text: bytes, size: int = 1 << 20, **options: bool) -> Profile:
    source = Source(io.BytesIO(text), "x")
    whole = io.BytesIO(text)
    source.read = lambda _=0: whole.read(size)  # type: ignore[method-assign, assignment]
    return dtrace.read(source, ReadOptions(**options))


def names(line: str, **options: bool) -> list[str]:
    (sample,) = read(f"\n   a.out`leaf+0x1\n   {line}\n   1\n".encode(), **options).samples
    return [frame.name for frame in sample.stack[:-1]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("libc.so.1`__read+0xa", ["libc.so.1`__read"]),
        ("l.so`std::vector<int>::push_back(int const&)+0x1b", ["l.so`std::vector<int>::push_back"]),
        ("l.so`ns::call(void (*)(int), B<int>)", ["l.so`ns::call"]),
        ("l.so`f(int)", ["l.so`f(int)"]),
        ("l.so`A::operator->()", ["l.so`A::operator->"]),
        (
            "l.so`std::_Function_handler<void (int), m::{lambda(int)#1}>::_M_invoke(std::_Any_data const&, int&&)+0x1",
            ["l.so`std::_Function_handler<void (int), m::{lambda(int)#1}>::_M_invoke"],
        ),
        ("l.so`a->b->c+0x1", ["l.so`a", "b_[i]", "c_[i]"]),
        ("Lorg/foo/Bar;.baz", ["org/foo/Bar:.baz"]),
        ("LWP_start", ["LWP_start"]),
        ("0xfffffd7fff1b2c3d", ["[unknown]"]),
        ("l.so`0x1234", ["[l.so]"]),
    ],
)
def test_names(line: str, expected: list[str]) -> None:
    assert names(line) == expected


def test_addresses_on_request() -> None:
    assert names("l.so`0x1234", addrs=True) == ["[l.so <1234>]"]


def test_kernel_and_module() -> None:
    (sample,) = read(HEAD + BLOCK).samples
    unix = Module("unix")
    assert sample.stack == (Frame("unix`idle", "kernel", unix), Frame("unix`halt", "kernel", unix))
    assert sample.values == (1641,)


def test_keys_are_labels() -> None:
    assert [each.labels for each in read(KEYED * 2).samples] == [(("process", "my shell"),)]
    found = read(KEYED * 2 + b"         4711\n" + KEYED.partition(b"\n")[2], pid=True).samples
    assert [(each.labels, each.values) for each in found] == [
        ((("pid", 77), ("process", "my shell")), (6,)),
        ((("pid", 4711),), (3,)),
    ]


def test_chunks_of_any_size_give_the_same() -> None:
    text = HEAD + (BLOCK + KEYED) * 3 + b"dtrace: 12 drops on CPU 3\n" + BLOCK * 2 + b"  a b`c\n\n - Distribution - \n"
    whole = read(text + b"  1 |@@@  2\n" + BLOCK, pid=True)
    assert whole.total("samples") == 6 * 1641 + 9
    assert whole.lost == {"drops": 12, "histograms": 1}
    for size in (1, 7, 50):
        assert read(text + b"  1 |@@@  2\n" + BLOCK, size, pid=True) == whole


def test_place_of_a_bad_line() -> None:
    found = read(HEAD + BLOCK * 2 + b"\n  a`b\n" + b" 9" * 10 + b"\n  99999999999999999999\n" + BLOCK)
    assert worded(found.comments)[0].startswith("x, line 16: expected a frame of DTrace")
    with pytest.raises(StallscopeError):
        read(b"  a`b\n  99999999999999999999\n")


def test_sniff() -> None:
    assert dtrace.sniff(HEAD + BLOCK)
    assert not dtrace.sniff(b"a 1/2 1.5: 1 cycles:\n\t ffffffff8103ce3b a`b+0xb ([kernel.kallsyms])\n\n")
    assert not dtrace.sniff(b"unix`a;unix`b 1\n")


def test_a_text_with_one_frame_is_no_profile() -> None:
    frame, count = b"   l.so`f+0x1\n", b"    3\n"
    assert dtrace.sniff(frame + count)
    assert dtrace.sniff(b"   Lorg/foo/Bar;.baz\n" * 10 + frame + count)
    assert not dtrace.sniff(b"some text\n" * 20 + b"    see <x>`name`_\n" + count)
