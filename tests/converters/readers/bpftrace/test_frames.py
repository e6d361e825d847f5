from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module
from stallscope.converters.readers.bpftrace.frames import is_kernel, parse_frame


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    vfs_read+142", Frame("vfs_read")),
        ("operator+(A, B)+12", Frame("operator+(A, B)")),
        ("    a+b+1", Frame("a+b")),
        ("    0x7f12a4b10000", Frame("[unknown]")),
        ("7f12a4b10000", Frame("[unknown]")),
        ("    0x7", Frame("[unknown]")),
        ("\t7 0x7 ([unknown])", Frame("[unknown]")),
        ("ffffffff8103ce3b", Frame("[unknown]", "kernel")),
        ("face", Frame("face")),
        ("\tffffffff8123456a nv_ioctl+42", Frame("nv_ioctl", "kernel")),
        ("\t7f5b8c1d2e3f ioctl+15 (/usr/lib/c.so)", Frame("ioctl", "native", Module("/usr/lib/c.so"))),
        ("\t55e0c0001c00 0x55e0c0001c00 ([unknown])", Frame("[unknown]")),
        ("    run+128@/src/pool.cc:88", Frame("run", file="/src/pool.cc", line=88)),
        ("    [inlined] size@/src/vec.h:12", Frame("size_[i]", file="/src/vec.h", line=12)),
        ("\t7f5b8c1d2e3f size (inlined)", Frame("size_[i]")),
    ],
)
def test_frames(line: str, expected: Frame) -> None:
    assert parse_frame(line.encode(), addrs=False) == (expected,)


def test_addresses_on_request() -> None:
    assert parse_frame(b"  0x7f12a4b10000", addrs=True) == (Frame("[unknown <7f12a4b10000>]"),)


def test_blank_and_endless_lines() -> None:
    assert parse_frame(b"  ", addrs=False) == ()
    assert parse_frame(b"x" * 20_000, addrs=False) is None


@pytest.mark.parametrize("name", ["entry_SYSCALL_64_after_hwframe", "ret_from_fork_asm", "asm_sysvec_reschedule_ipi"])
def test_the_kernel_is_told_by_its_entry_points(name: str) -> None:
    assert is_kernel(Frame(name))
    assert not is_kernel(Frame("main"))
    assert is_kernel(Frame("any", "kernel"))
