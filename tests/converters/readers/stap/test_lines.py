"""The stream of the scripts, and what can be wrong with it.

sleeps.txt: an excerpt of what offcpu.stp and oncpu.stp printed of the workload `sleeps` on kernel 6.1, folders renamed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.readers.stap.lines import Descriptor, Inside, IoctlCall, Lines, Sampled, Wait
from stallscope.tracers.symbols.kallsyms import Kallsyms

RECORDED = Path(__file__).with_name("sleeps.txt").read_bytes()
KALLSYMS = Kallsyms(
    b"ffffffff81000000 T _stext\nffffffff81a47400 t __schedule\nffffffff81a47a00 T schedule\n"
    b"ffffffff81a4df00 t do_nanosleep\nffffffff82000000 T _etext\n"
)


def stream(*chunks: bytes) -> tuple[Lines, list[object]]:
    lines = Lines()
    found: list[object] = [each for chunk in chunks for each in lines.feed(chunk)]
    lines.finish()
    return lines, found


def test_a_recorded_stream() -> None:
    lines, found = stream(RECORDED)
    waits = [each for each in found if isinstance(each, Wait)]
    assert lines.version == 1
    assert not any(lines.lost.values()), lines.lost
    assert waits[0].letter == "?"
    assert [wait.is_open for wait in waits] == [False] * (len(waits) - 1) + [True]
    stack = lines.stacks(KALLSYMS).of(waits[1].kernel, waits[1].user)
    names = [frame.name for frame in stack]
    assert names[:5] == ["_start", "__libc_start_main", "__libc_start_call_main", "main", "sleep_25ms"]
    assert names[-3:] == ["do_nanosleep", "schedule", "__schedule"]
    assert {frame.kind for frame in stack} == {"native", "kernel"}


def test_in_pieces_of_any_size() -> None:
    whole, found = stream(RECORDED)
    for size in (1, 7, 4096):
        parts, again = stream(*(RECORDED[at : at + size] for at in range(0, len(RECORDED), size)))
        assert again == found
        assert parts.lost == whole.lost


def test_lines_that_did_not_arrive_are_counted() -> None:
    rows = RECORDED.splitlines(keepends=True)
    rows = [row for number, row in enumerate(rows) if not (row.startswith(b"w") and number % 5 == 0)]
    lines, found = stream(b"".join(rows))
    assert lines.lost["events"] == len(RECORDED.splitlines()) - len(rows) > 0
    assert found


@pytest.mark.parametrize(
    "line",
    [
        b"w 1 2",
        b"w 1 2 S 0 0 1 2 3 4 5",
        b"w 1 2 S 0 0 1 2 3 99999999999999999999",
        b"s 1 2 3",
        b"s 1 2 3 4 5",
        b"f x 0 main",
        b"\xff\x00",
        b"stallscope one 2 3",
        b"w" * 40_000,
    ],
)
def test_what_is_not_understood_is_counted(line: bytes) -> None:
    lines, found = stream(line + b"\n", b"s 1 2 3 4\n")
    assert lines.lost["lines not understood"] == 1
    assert found == [Sampled(1, 2, 3, 4)]


def test_a_line_that_is_cut_at_the_end_is_counted() -> None:
    lines, _ = stream(b"s 1 2 3 4\nw 1 2 S 0")
    assert lines.lost["lines not understood"] == 1


def test_what_the_script_lost() -> None:
    lines, _ = stream(b"lost scope 3\nlost stacks 4\nlost threads 5\nend 10 0\n")
    assert (lines.lost["stacks"], lines.lost["threads"], lines.printed) == (4, 8, 0)


def test_a_script_that_was_stopped() -> None:
    lines, _ = stream(b"stallscope 1 1 2\n")
    assert not lines.stopped
    lines, _ = stream(b"stallscope 1 1 2\nb 1 2 3\nstop 7\nend 8 1\n")
    assert lines.stopped
    assert not any(lines.lost.values()), lines.lost


def test_a_script_that_did_not_end() -> None:
    lines, _ = stream(b"stallscope 1 2 3\n")
    assert lines.printed is None


def test_a_stack_of_two_thousand_characters_a_name() -> None:
    name = b"n" * 2048
    lines, _ = stream(b"f 1 0 " + name + b"+0x1/0x2 [/x]\nf 1 1 main+0x0/0x2 [/x]\n")
    assert [frame.name for frame in lines.stacks(None).of(0, 1)] == ["main", name.decode()]


def test_frames_of_one_stack_without_end_are_bounded() -> None:
    lines, _ = stream(b"".join(b"f 1 %d main+0x0/0x2 [/x]\n" % number for number in range(2000)))
    assert len(lines.stacks(None).of(0, 1)) == 1024
    assert lines.lost["frames"] == 976


def test_the_order_of_lines_of_two_cores() -> None:
    lines, (wait,) = stream(b"s 1 1 0 7\n", b"f 7 1 outer+0x0/0x2 [/x]\nf 7 0 inner+0x0/0x2 [/x]\n")
    assert isinstance(wait, Sampled)
    assert [frame.name for frame in lines.stacks(None).of(wait.kernel, wait.user)] == ["outer", "inner"]


def test_ioctls() -> None:
    """Ioctls as printed on kernel 6.1, and with a hostile name of a file."""
    text = b"""c 144 145 9031056350
d 145 5 8576 136 1 devpts 1
d 145 -1 0 0 0 -\x20
d 145 6 33188 8 1 ext4 a b\\nc\\377
i 144 145 5 21523 9041063003 78126 8 0
i 144 145 -1 4294967295 9041932682 151597 -1 -25 (ENOTTY)
I 144 145 5 21523 9041063003 78126 0 -
lost returns 3
"""
    lines, found = stream(text)
    assert found == [
        Inside(144, 145, 9031056350),
        Descriptor(145, 5, 8576, 136 << 20 | 1, b"devpts", b"1"),
        Descriptor(145, -1, 0, 0, b"", b""),
        Descriptor(145, 6, 33188, 8 << 20 | 1, b"ext4", b"a b\nc\xff"),
        IoctlCall(144, 145, 5, 21523, 9041063003, 78126, 8, 0, False),
        IoctlCall(144, 145, -1, 0xFFFFFFFF, 9041932682, 151597, -1, 25, False),
        IoctlCall(144, 145, 5, 21523, 9041063003, 78126, 0, 0, True),
    ]
    assert lines.lost["returns"] == 3
    assert not lines.lost["lines not understood"]
